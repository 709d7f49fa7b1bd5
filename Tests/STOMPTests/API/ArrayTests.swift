import LoopbackBroker
import STOMPCore
import TestSupport
import Testing

@testable import STOMP

/// Arrays of messages, some of which cannot be sent.
@Suite("Client: arrays of messages", .turns)
struct ArrayTests {
    /// The codes of the results; nil for success.
    private func errorCodes(_ results: STOMPClient.SendResults) -> [STOMPError.Code?] {
        results.map { if case .failure(let error) = $0 { error.code } else { nil } }
    }

    /// A client that the server has accepted, whose receipts never come.
    private func connected(
        to server: FakeServer, _ change: (inout STOMPConfiguration) -> Void
    ) async throws -> (STOMPClient, FakeConnection) {
        let client = server.client {
            $0.requestTimeout = .patience
            $0.outgoingHeartBeat = .zero
            $0.incomingHeartBeat = .zero
            change(&$0)
        }
        async let connecting: Void = client.connect()
        let connection = try await server.accept(0)
        try await connecting
        return (client, connection)
    }

    /// Ends the connection, and lets the sender continue before or after there is another one.
    private func reconnect(
        _ client: STOMPClient, _ server: FakeServer, _ connection: FakeConnection, first resume: () async -> Void
    ) async throws -> FakeConnection {
        connection.close()
        #expect(await eventually { !client.state.isConnected })
        await resume()
        let next = try await server.accept(1)
        #expect(await eventually { client.state.isConnected })
        return next
    }

    @Test(arguments: [true, false])
    func `when the connection ends, each message was sent and lost or not sent, however soon there is another one`(
        isConnectedAgain: Bool
    ) async throws {
        let server = FakeServer()
        let (client, connection) = try await connected(to: server) { $0.maximumReceipts = 10 }
        let executor = HeldExecutor()
        let sending = Task(executorPreference: executor) {
            await client.sendAndConfirm((0..<30).map { STOMPOutgoingMessage("\($0)", to: "/queue/a") })
        }
        await executor.run()
        for number in 0..<10 {
            let frame = try await connection.frame()
            #expect(frame.hasPrefix("SEND\n") && frame.hasSuffix("\n\(number)"))
        }
        let next = try await reconnect(client, server, connection) { if !isConnectedAgain { await executor.run() } }
        let results = await executor.run(until: sending)
        #expect(errorCodes(results) == (0..<30).map { $0 < 10 ? .connectionLost : .notConnected })
        #expect(throws: STOMPError.self) { try results.check() }
        try await client.send("end", to: "/queue/a")
        #expect(try await next.frame().hasSuffix("\nend"))
        next.close()
        await client.disconnect()
    }

    @Test(arguments: [true, false])
    func `an array without receipts throws when its connection ends, however soon there is another one`(
        isConnectedAgain: Bool
    ) async throws {
        let server = FakeServer()
        let (client, connection) = try await connected(to: server) { $0.maximumOutboxBytes = 10_000 }
        let executor = HeldExecutor()
        // More than the outbox and the connection hold.
        let sending = Task(executorPreference: executor) {
            let body = String(repeating: "x", count: 100_000)
            do throws(STOMPError) {
                try await client.send((0..<100).map { _ in STOMPOutgoingMessage(body, to: "/queue/a") })
                return nil as STOMPError?
            } catch {
                return error
            }
        }
        await executor.run()
        let next = try await reconnect(client, server, connection) { if !isConnectedAgain { await executor.run() } }
        #expect(await executor.run(until: sending)?.code == .notConnected)
        try await client.send("end", to: "/queue/a")
        #expect(try await next.frame().hasSuffix("\nend"))
        next.close()
        await client.disconnect()
    }

    @Test func `what exceeds the receipts leaves as they arrive, while the task waits once`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected {
                $0.requestTimeout = .patience
                $0.maximumReceipts = 10
            }
            let executor = HeldExecutor()
            let count = 1_000
            let sending = Task(executorPreference: executor) {
                errorCodes(
                    await client.sendAndConfirm(
                        (0..<count).map { STOMPOutgoingMessage("\($0)", to: "/queue/a") }))
            }
            await executor.run()
            // The task is not run meanwhile.
            #expect(await eventually { broker.statistics.messagesIn == count })
            #expect(await executor.run(until: sending) == Array(repeating: nil, count: count))
            await client.disconnect()
        }
    }

    @Test func `refused messages hold the lock for a bounded number of them`() async throws {
        let server = FakeServer()
        let (client, connection) = try await connected(to: server) { _ in }
        let batch = STOMPSendBatch(
            (0..<250).map { _ in
                STOMPReadySend(body: [], destination: "", headers: [:], omitsContentLength: false, transaction: nil)
            })
        for refused in [0..<100, 100..<200, 200..<250] {
            var unsent: [STOMPMachine.Unsent] = []
            _ = client.core.link.perform { machine in
                machine.feed(
                    batch, isConfirmed: true, outputLimit: 1_000, maximumUnsent: STOMPSendBatch.maximumUnsent, &unsent,
                    at: 0)
            }
            #expect(batch.next == refused.upperBound)
            #expect(unsent.map(\.place) == Array(refused))
        }
        #expect(batch.unansweredCount == 0)
        connection.close()
        await client.disconnect()
    }

    @Test func `of very many messages each has its own result, in whatever way it is refused`() async throws {
        try await withBroker { broker in
            let client = try await broker.connected { $0.requestTimeout = .patience }
            var invalid = STOMPSendOptions()
            invalid.headers = ["destination": "/queue/b"]
            var expired = STOMPSendOptions()
            expired.expiresAfter = .seconds(-1)
            let count = 10_000
            let messages = (0..<count).map { number in
                switch number % 1_000 {
                case 0: STOMPOutgoingMessage("\(number)", to: "/queue/a")
                case 1: STOMPOutgoingMessage("\(number)", to: "/queue/a", options: expired)
                case 2: STOMPOutgoingMessage("\(number)", to: "/queue/a", options: invalid)
                default: STOMPOutgoingMessage("\(number)", to: "")
                }
            }
            let codes = errorCodes(await client.sendAndConfirm(messages))
            #expect(codes == (0..<count).map { $0 % 1_000 == 0 ? nil : .invalidRequest })
            #expect(broker.statistics.messagesIn == 10)
            await client.disconnect()
        }
    }
}
