import MessagingShell
import STOMP
import Synchronization
import TestSupport
import Transport

@testable import STOMP

/// A server of hand-written frames: the test reads what the client says and answers what it likes.
final class FakeServer: Sendable {
    private let opened = Mutex<[FakeConnection]>([])

    /// The connections so far.
    var count: Int { opened.withLock { $0.count } }

    /// A client whose every connection ends here.
    func client(
        urls: [String] = ["stomp://fake"], clock: ManualClock? = nil,
        _ change: (inout STOMPConfiguration) -> Void = { _ in }
    ) -> STOMPClient {
        var configuration = STOMPConfiguration.impatient
        if clock == nil { configuration.allowSlowMachines() }
        change(&configuration)
        return STOMPClient(
            urls, configuration: configuration, loop: clock?.loop ?? .shared,
            override: { () throws(TransportError) in
                let (client, server) = MemoryPair.make()
                self.opened.withLock { $0.append(FakeConnection(server, client: client)) }
                return OpenedStream(stream: client)
            }, clock: clock)
    }

    /// A client that is connected, and the server's end of its connection.
    func connected(
        clock: ManualClock? = nil, server: String = "fake/1", _ change: (inout STOMPConfiguration) -> Void = { _ in }
    ) async throws -> (STOMPClient, FakeConnection) {
        let client = client(clock: clock, change)
        async let connecting: Void = client.connect()
        let connection = try await accept(0, server: server)
        try await connecting
        return (client, connection)
    }

    /// The connection of that number, from 0, once it is there.
    func connection(_ number: Int) async throws -> FakeConnection {
        guard await eventually({ self.count > number }) else { throw TimeoutError("no connection \(number)") }
        return opened.withLock { $0[number] }
    }

    /// The same, with CONNECT read and answered.
    @discardableResult
    func accept(_ number: Int, server: String = "fake/1", headers: String = "") async throws -> FakeConnection {
        let connection = try await connection(number)
        try await connection.expect("CONNECT")
        connection.send("CONNECTED\nversion:1.2\nserver:\(server)\n\(headers)\n\0")
        return connection
    }
}

/// The server's end of one connection.
final class FakeConnection: Sendable {
    let stream: MemoryStream
    /// The client's end.
    let client: MemoryStream
    private let unread = Mutex<[UInt8]>([])

    init(_ stream: MemoryStream, client: MemoryStream) {
        (self.stream, self.client) = (stream, client)
    }

    func send(_ text: String) {
        let bytes = Array(text.utf8)
        _ = bytes.withUnsafeBytes { stream.write(from: $0) }
    }

    /// Reads some of what the client sent, and forgets it; returns false when the client has ended the connection.
    func read(atMost count: Int) -> Bool {
        var buffer = [UInt8](repeating: 0, count: count)
        switch buffer.withUnsafeMutableBytes({ stream.read(into: $0) }) {
        case .bytes, .wouldBlock: return true
        case .endOfStream, .failed: return false
        }
    }

    /// Reads exactly so many bytes and forgets them; returns the receipt that the frame at their beginning asks for.
    func receipt(ofFirstIn count: Int) async throws -> String {
        var bytes: [UInt8] = []
        let isRead = await eventually {
            while bytes.count < count {
                var buffer = [UInt8](repeating: 0, count: min(65_536, count - bytes.count))
                guard case .bytes(let read) = buffer.withUnsafeMutableBytes({ stream.read(into: $0) }) else { break }
                bytes += buffer[..<read]
            }
            return bytes.count == count
        }
        guard isRead else { throw TimeoutError("the client sent \(bytes.count) bytes instead of \(count)") }
        let head = String(decoding: bytes.prefix { $0 != 0 }.prefix(300), as: UTF8.self)
        let line = head.split(separator: "\n").first { $0.hasPrefix("receipt:") }
        return line.map { String($0.dropFirst("receipt:".utf8.count)) } ?? ""
    }

    /// Ends the connection as a server would.
    func close() { stream.close() }

    /// Whether the client has ended the connection.
    func isEnded() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            switch buffer.withUnsafeMutableBytes({ stream.read(into: $0) }) {
            case .bytes(let count): unread.withLock { $0 += buffer[..<count] }
            case .wouldBlock: return false
            case .endOfStream, .failed: return true
            }
        }
    }

    /// Whether heart-beats have come since the last frame.
    func hasHeartBeats() -> Bool {
        _ = isEnded()
        return unread.withLock { $0.first == 10 }
    }

    /// The next frame without its NUL; heart-beats are passed over.
    func frame() async throws -> String {
        var frame: String?
        let found = await eventually {
            _ = self.isEnded()
            frame = self.unread.withLock { unread in
                while unread.first == 10 { unread.removeFirst() }
                guard let end = unread.firstIndex(of: 0) else { return nil }
                defer { unread.removeSubrange(...end) }
                return String(decoding: unread[..<end], as: UTF8.self)
            }
            return frame != nil
        }
        guard found, let frame else { throw TimeoutError("the client sent no frame") }
        return frame
    }

    /// The next frame, which is a `command`, and the value of its header `name`.
    @discardableResult
    func expect(_ command: String, _ name: String = "receipt") async throws -> String {
        let frame = try await frame()
        guard frame.hasPrefix(command + "\n") else { throw TimeoutError("'\(frame)' came instead of \(command)") }
        let line = frame.split(separator: "\n").first { $0.hasPrefix(name + ":") }
        return line.map { String($0.dropFirst(name.utf8.count + 1)) } ?? ""
    }

    /// Confirms the next frame, which is a `command`.
    func confirm(_ command: String) async throws {
        send("RECEIPT\nreceipt-id:\(try await expect(command))\n\n\0")
    }
}
