import MQTT
import MessagingShell
import Synchronization
import TestSupport
import Testing
import Transport

/// A CONNECT that nobody has answered may still be read, and then takes the session over: the system of the server hears
/// that its connection is void.
@Suite("Client: abandoned CONNECT", .turns)
struct AbandonedConnectTests {
    /// What a server sees that reads nothing until the client has left.
    private func end(
        of leaving: (_ connecting: Task<Void, any Error>, ManualClock) async -> Void
    ) async throws -> IOResult {
        let loop = EventLoop.shared
        let accepted = Mutex<[SocketStream]>([])
        let listener = try await Listener.listen(on: .host("127.0.0.1", port: 0), loop: loop) { stream in
            accepted.withLock { $0.append(stream) }
        }
        var configuration = MQTTConfiguration()
        configuration.reconnect.firstConnectAttempts = 1
        let clock = try ManualClock()
        let client = MQTTClient("mqtt://127.0.0.1:\(listener.port)", configuration: configuration, clock: clock)
        let connecting = Task { try await client.connect() }
        // Nothing could be read late before CONNECT has left.
        #expect(await eventually { client.counters.bytesSent > 0 && accepted.withLock { !$0.isEmpty } })
        await leaving(connecting, clock)
        await #expect(throws: MQTTError.self) { try await connecting.value }
        await client.disconnect()
        let stream = try #require(accepted.withLock { $0.first })
        var result = IOResult.wouldBlock
        #expect(
            await eventually {
                withUnsafeTemporaryAllocation(byteCount: 1024, alignment: 1) { buffer in
                    result = stream.read(into: buffer)
                    while case .bytes = result { result = stream.read(into: buffer) }
                }
                return result != .wouldBlock
            })
        await listener.close()
        return result
    }

    @Test func `a server that does not answer in time is left with a reset`() async throws {
        let result = try await end { _, clock in await clock.advance(by: .seconds(60)) }
        #expect(result == .failed(ECONNRESET))
    }

    @Test func `a connect that is cancelled leaves with a reset`() async throws {
        let result = try await end { connecting, _ in connecting.cancel() }
        #expect(result == .failed(ECONNRESET))
    }
}
