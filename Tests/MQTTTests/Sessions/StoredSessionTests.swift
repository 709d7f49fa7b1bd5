import LoopbackBroker
import MQTT
import Synchronization
import TestSupport
import Testing

/// Clients that go on with the session of an earlier one.
@Suite("Client: stored sessions", .turns)
struct StoredSessionTests {
    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0], [false, true])
    func `a session is lost only if a server can have had it`(version: MQTTVersion, wasConnected: Bool) async throws {
        let bench = try await Bench { if wasConnected { $0.faults.withholdsAcknowledgements = true } }
        let store = MemorySessionStore()
        func client() -> MQTTClient {
            bench.client("phoenix") {
                $0.version = version
                $0.cleanStart = false
                $0.sessionExpiry = .seconds(60)
                $0.sessionStore = store
            }
        }
        let first = client()
        for number in 0..<3 {
            try await first.enqueue(MQTTOutgoingMessage("\(number)", to: "a", qos: .exactlyOnce))
        }
        if wasConnected { try await first.connect() }
        await first.disconnect()
        bench.broker.changeFaults { $0.withholdsAcknowledgements = false }
        if wasConnected { #expect(await bench.broker.forgetSession(of: "phoenix")) }
        let receiver = try await bench.connected()
        let messages = try await receiver.subscribe(to: "a", qos: .exactlyOnce)
        let second = client()
        let events = second.events
        try await second.connect()
        #expect(try await messages.first(3).map(\.text) == ["0", "1", "2"])
        await second.disconnect()
        var lost: [Int] = []
        for await event in events {
            if case .sessionLost(let republished, _) = event { lost.append(republished) }
            if case .stateChanged(.disconnected) = event { break }
        }
        #expect(lost == (wasConnected ? [3] : []))
        await receiver.disconnect()
        await bench.stop()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `QoS 2 stays exactly once over clients that vanish in the middle`(version: MQTTVersion) async throws {
        let bench = try await Bench()
        let scratch = try ScratchDirectory()
        let receiver = try await bench.connected()
        let messages = try await receiver.subscribe(to: "a", qos: .exactlyOnce)
        for round in 0..<10 {
            let client = bench.client("phoenix") {
                $0.version = version
                $0.cleanStart = false
                $0.sessionExpiry = .seconds(60)
                $0.sessionStore = FileSessionStore(directory: scratch.file("s"))
            }
            // The client before lets go of the store when it is gone, which is soon.
            let first = Array("\(round * 20)".utf8)
            #expect(
                await eventually {
                    (try? await client.enqueue(MQTTOutgoingMessage(first, to: "a", qos: .exactlyOnce))) != nil
                })
            for number in 1..<20 {
                try await client.enqueue(
                    MQTTOutgoingMessage(Array("\(round * 20 + number)".utf8), to: "a", qos: .exactlyOnce))
                if number == 5 {
                    try await client.connect()
                    bench.damage(client) { $0.bytesUntilCut = 40 + round * 37 }
                }
            }
            await client.disconnect()
        }
        let last = bench.client("phoenix") {
            $0.version = version
            $0.cleanStart = false
            $0.sessionExpiry = .seconds(60)
            $0.sessionStore = FileSessionStore(directory: scratch.file("s"))
        }
        #expect(await eventually { (try? await last.connect()) != nil })
        let received = try await messages.first(200)
        #expect(received.map(\.text) == (0..<200).map { "\($0)" })
        try await Task.sleep(for: .milliseconds(100))
        #expect(receiver.counters.messagesReceived == 200)
        await last.disconnect()
        await receiver.disconnect()
        await bench.stop()
    }

    /// Shows what was appended.
    private final class WatchedStore: SessionStore {
        private let store = MemorySessionStore()
        private let log = Mutex<[MQTTStoreRecord]>([])
        var records: [MQTTStoreRecord] { log.withLock { $0 } }
        var limits: SessionStoreLimits { store.limits }
        func open() throws -> StoredSession { try store.open() }
        func setClientID(_ clientID: String) throws { try store.setClientID(clientID) }
        func append(_ records: [MQTTStoreRecord]) throws {
            try store.append(records)
            log.withLock { $0 += records }
        }
        func removeAll() throws { try store.removeAll() }
        func close() { store.close() }
    }

    @Test func `a received QoS 2 message that was not acknowledged comes again, one that was does not`() async throws {
        let bench = try await Bench()
        let store = WatchedStore()
        func client() -> MQTTClient {
            bench.client("reader") {
                $0.cleanStart = false
                $0.sessionStore = store
            }
        }
        let sender = try await bench.connected()
        do {
            let first = client()
            try await first.connect()
            let messages = try await first.subscribe(to: "a", qos: .exactlyOnce, acknowledgement: .manual)
            for text in ["one", "two"] { try await sender.publish(text, to: "a", qos: .exactlyOnce) }
            let received = try await messages.first(2)
            received[0].acknowledge()
            #expect(
                await eventually {
                    store.records.contains { if case .receivedReleased = $0 { true } else { false } }
                })
            await first.suspend()
        }
        let reader = client()
        var rest = await reader.unmatchedMessages()
        // The one before lets go of the store when it is gone; an attempt that fails before ends all sequences.
        #expect(
            await eventually {
                rest = await reader.unmatchedMessages()
                return (try? await reader.connect()) != nil
            })
        let again = try await rest.first(1)
        #expect(again.map(\.text) == ["two"])
        #expect(again.first?.isDuplicate == true)
        try await Task.sleep(for: .milliseconds(100))
        #expect(reader.counters.messagesReceived == 1)
        await reader.disconnect()
        await sender.disconnect()
        await bench.stop()
    }

    @Test func `a store belongs to a client identifier, and one made at random is kept with it`() async throws {
        let bench = try await Bench()
        let scratch = try ScratchDirectory()
        func client(_ id: String) -> MQTTClient {
            bench.client(id) { $0.sessionStore = FileSessionStore(directory: scratch.file("s")) }
        }
        var ids: [String] = []
        for _ in 0..<2 {
            let client = client("random-%%%%")
            #expect(await eventually { (try? await client.connect()) != nil })
            ids.append(client.clientID)
            await client.disconnect()
        }
        #expect(ids[0] == ids[1])
        #expect(
            await eventually {
                do throws(MQTTError) {
                    try await client("another").connect()
                    return false
                } catch {
                    return error.message.contains(ids[0])
                }
            })
        await bench.stop()
    }

    @Test func `a store that fails ends the client, and every promise with it`() async throws {
        final class FailingStore: SessionStore {
            struct Full: Error {}
            let limits = SessionStoreLimits()
            let fails = Atomic(false)
            func open() throws -> StoredSession { StoredSession() }
            func setClientID(_ clientID: String) throws {}
            func append(_ records: [MQTTStoreRecord]) throws { if fails.load(ordering: .relaxed) { throw Full() } }
            func removeAll() throws {}
            func close() {}
        }
        let bench = try await Bench()
        let store = FailingStore()
        let client = try await bench.connected { $0.sessionStore = store }
        try await client.enqueue(MQTTOutgoingMessage([1], to: "a"))
        store.fails.store(true, ordering: .relaxed)
        await #expect { try await client.enqueue(MQTTOutgoingMessage([2], to: "a")) } throws: {
            ($0 as? MQTTError)?.code == .storeFailed
        }
        #expect(await eventually { !client.state.isConnected })
        await #expect { try await client.publish("x", to: "a", qos: .atLeastOnce) } throws: {
            ($0 as? MQTTError)?.code == .storeFailed
        }
        await bench.stop()
    }

    @Test func `the store's limits bound the queue`() async throws {
        let bench = try await Bench()
        let client = bench.client {
            $0.sessionStore = MemorySessionStore(limits: SessionStoreLimits(maximumMessages: 2))
        }
        try await client.enqueue(MQTTOutgoingMessage([1], to: "a"))
        try await client.enqueue(MQTTOutgoingMessage([2], to: "a"))
        await #expect { try await client.enqueue(MQTTOutgoingMessage([3], to: "a")) } throws: {
            ($0 as? MQTTError)?.code == .queueFull
        }
        await bench.stop()
    }

    @Test func `a message of QoS 0 that pushes a stored one out of the queue takes it out of the store`() async throws {
        let bench = try await Bench()
        let store = MemorySessionStore()
        let client = try await bench.connected {
            ($0.cleanStart, $0.sessionExpiry, $0.sessionStore) = (false, .seconds(60), store)
            ($0.queuesQoS0WhileOffline, $0.queueOverflow, $0.maximumQueuedMessages) = (true, .dropOldest, 2)
        }
        await client.suspend()
        for text in ["one", "two"] { try await client.enqueue(MQTTOutgoingMessage(text, to: "a")) }
        #expect(await eventually { store.messageCount == 2 })
        try await client.publish("three", to: "a")
        #expect(await eventually { store.messageCount == 1 })
        for text in ["four", "five", "six"] { try await client.publish(text, to: "a") }
        #expect(await eventually { store.messageCount == 0 })
        #expect(client.backlog.queuedMessages == 2)
        await client.disconnect()
        await bench.stop()
    }
}
