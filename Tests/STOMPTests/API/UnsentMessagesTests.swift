import STOMP
import STOMPCore
import Synchronization
import TestSupport
import Testing
import Transport

@testable import MessagingShell

@Suite(.turns)
struct UnsentMessagesTests {
    @Test(arguments: [true, false])
    func `messages without a receipt that a saturated link did not take before it ended are reported`(
        whileSending: Bool
    ) async throws {
        let (near, far) = MemoryPair.make()
        near.changeFaults { $0.capacity = 10_000 }
        let attempts = Mutex(0)
        let client = STOMPClient(["stomp://saturated"], configuration: .impatient, loop: .shared) {
            () throws(TransportError) in
            let attempt = attempts.withLock { attempts in
                attempts += 1
                return attempts
            }
            guard attempt == 1 else { throw TransportError(.connectionRefused, "no second connection") }
            return OpenedStream(stream: near)
        }
        var events = client.events.makeAsyncIterator()
        let server = FakeConnection(far, client: near)
        async let connected: Void = client.connect()
        try await server.expect("CONNECT")
        server.send("CONNECTED\nversion:1.2\n\n\0")
        try await connected

        let sent = Count()
        await withTaskGroup { group in
            for sender in 0..<4 {
                group.addTask {
                    for number in 0..<500 {
                        // The outbox has room for one that is large.
                        let count = sender == 0 && number == 499 ? 300_000 : number % 300
                        let body = [UInt8](repeating: UInt8(sender), count: count)
                        guard (try? await client.send(body, to: "/t")) != nil else { continue }
                        sent.value.add(1, ordering: .relaxed)
                    }
                }
            }
            if !whileSending { await group.waitForAll() }
            _ = await eventually { sent.value.load(ordering: .relaxed) > 200 }
            // Its caller gets an error.
            group.addTask { _ = try? await client.sendAndConfirm("x", to: "/t") }
            near.changeFaults {
                $0.capacity = .max
                $0.bytesUntilCut = 12_345
            }
        }
        var decoder = STOMPDecoder()
        var reported = 0
        var received = 0
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while sent.value.load(ordering: .relaxed) != received + reported, let event = await events.next() {
            if case .unsentMessagesDiscarded(let count) = event { reported += count }
            while case .bytes(let count) = buffer.withUnsafeMutableBytes({ far.read(into: $0) }) {
                decoder.push(Array(buffer[..<count]))
            }
            while let frame = try decoder.next() {
                if frame.command == .send, frame.headers["receipt"] == nil { received += 1 }
            }
        }
        #expect(reported > 0)
        #expect(received > 10)
        await client.disconnect()
    }
}

/// Messages that were accepted so far.
private final class Count: Sendable {
    let value = Atomic(0)
}
