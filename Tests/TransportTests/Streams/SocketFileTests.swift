import Foundation
import TestSupport
import Testing
import Transport

/// What stands at the path where a socket is to be.
@Suite(.turns) struct SocketFileTests {
    private func listen(at path: String, _ setting: Setting) async throws(TransportError) -> Listener {
        try await Listener.listen(on: .unix(path: path), loop: setting.loop) { _ in }
    }

    @Test func `a socket that a killed process left is replaced`() async throws {
        let scratch = try ScratchDirectory("socket")
        let path = scratch.file("left")
        var owner: SilentServer? = try SilentServer(unixPath: path)
        let setting = try Setting(.automatic)
        let refused = await #expect(throws: TransportError.self) { try await listen(at: path, setting) }
        withExtendedLifetime(owner) {}
        #expect(refused?.code == .cannotListen && refused?.message.contains("another program listens there") == true)
        // As at the end of a process: the socket is closed, and its file remains.
        owner = nil
        #expect(FileManager.default.fileExists(atPath: path))
        let listener = try await listen(at: path, setting)
        let client = try await RawConnection.open(unix: path)
        withExtendedLifetime(client) {}
        await listener.close()
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func `anything else is left alone`() async throws {
        let scratch = try ScratchDirectory("socket")
        let path = try scratch.write("precious", to: "file")
        let refused = await #expect(throws: TransportError.self) { try await listen(at: path, try Setting(.automatic)) }
        #expect(refused?.code == .cannotListen && refused?.message.contains("is not a socket") == true)
        #expect(try String(contentsOfFile: path, encoding: .utf8) == "precious")
    }

    @Test func `a listener removes its own socket, not one that took its place`() async throws {
        let scratch = try ScratchDirectory("socket")
        let setting = try Setting(.automatic)
        let first = try await listen(at: scratch.file("a"), setting)
        try FileManager.default.moveItem(atPath: scratch.file("a"), toPath: scratch.file("b"))
        let second = try await listen(at: scratch.file("a"), setting)
        await first.close()
        #expect(FileManager.default.fileExists(atPath: scratch.file("a")))
        await second.close()
        #expect(!FileManager.default.fileExists(atPath: scratch.file("a")))
    }
}
