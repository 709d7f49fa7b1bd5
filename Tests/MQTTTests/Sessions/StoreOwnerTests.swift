import LoopbackBroker
import MQTT
import Synchronization
import TestSupport
import Testing

/// A session store belongs to a client until that client disconnects or is released.
@Suite("Client: the owner of a session store", .turns)
struct StoreOwnerTests {
    private final class CountedStore: SessionStore {
        private let store = MemorySessionStore()
        let opened = Atomic(0)
        let closed = Atomic(0)
        var limits: SessionStoreLimits { store.limits }
        func open() throws -> StoredSession {
            opened.add(1, ordering: .relaxed)
            return try store.open()
        }
        func setClientID(_ clientID: String) throws { try store.setClientID(clientID) }
        func append(_ records: [MQTTStoreRecord]) throws { try store.append(records) }
        func removeAll() throws { try store.removeAll() }
        func close() {
            closed.add(1, ordering: .relaxed)
            store.close()
        }
    }

    @Test func `disconnect() right after start() leaves no store open`() async throws {
        let bench = try await Bench()
        let store = CountedStore()
        let client = client(bench, store)
        for _ in 0..<300 {
            await client.start()
            await client.disconnect()
            let counts = (store.opened.load(ordering: .relaxed), store.closed.load(ordering: .relaxed))
            guard counts.0 == counts.1 else {
                Issue.record("opened \(counts.0) times and closed \(counts.1) times")
                break
            }
        }
        await bench.stop()
    }

    private func client(
        _ bench: Bench, _ store: any SessionStore, _ version: MQTTVersion = .v3_1_1, clientID: String = "owner"
    ) -> MQTTClient {
        bench.client(clientID) {
            $0.version = version
            $0.cleanStart = false
            $0.sessionExpiry = .seconds(60)
            $0.sessionStore = store
        }
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `disconnect() gives the store back, and the next request takes it again`(version: MQTTVersion) async throws {
        let bench = try await Bench()
        let scratch = try ScratchDirectory()
        let first = client(bench, FileSessionStore(directory: scratch.file("s")), version)
        let second = client(bench, FileSessionStore(directory: scratch.file("s")), version)
        for _ in 0..<10 {
            try await first.connect()
            await expectTaken { try await second.connect() }
            await first.disconnect()
            try await second.connect()
            await expectTaken { try await first.connect() }
            await expectTaken { try await first.enqueue(MQTTOutgoingMessage([1], to: "a")) }
            await second.disconnect()
            // Without a connection too.
            try await first.enqueue(MQTTOutgoingMessage([1], to: "a"))
            await expectTaken { try await second.enqueue(MQTTOutgoingMessage([1], to: "a")) }
            await first.disconnect()
        }
        try await second.enqueue(MQTTOutgoingMessage([1], to: "a"))
        try await second.discardSession()
        try await first.connect()
        await first.disconnect()
        await bench.stop()
    }

    private func expectTaken(_ body: () async throws -> Void) async {
        await #expect { try await body() } throws: { error in
            let error = error as? MQTTError
            return error?.code == .storeFailed && error?.message.contains("Disconnect that client") == true
        }
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a client continues with what another one has left in the store`(version: MQTTVersion) async throws {
        let bench = try await Bench()
        let store = MemorySessionStore()
        let receiver = try await bench.connected()
        let messages = try await receiver.subscribe(to: "a", qos: .exactlyOnce)
        let first = client(bench, store, version)
        let second = client(bench, store, version)
        try await first.enqueue(MQTTOutgoingMessage([1], to: "a", qos: .exactlyOnce))
        await first.disconnect()
        try await second.enqueue(MQTTOutgoingMessage([2], to: "a", qos: .exactlyOnce))
        await second.disconnect()
        try await first.enqueue(MQTTOutgoingMessage([3], to: "a", qos: .exactlyOnce))
        try await first.connect()
        #expect(try await messages.first(3).map { Array($0.payload) } == [[1], [2], [3]])
        #expect(await eventually { store.messageCount == 0 })
        await first.disconnect()
        try await second.connect()
        try await second.publish("end", to: "a", qos: .exactlyOnce)
        #expect(try await messages.first(1).map(\.text) == ["end"])
        await second.disconnect()
        await receiver.disconnect()
        await bench.stop()
    }

    @Test func `a store is closed once, and not again when the client is released`() async throws {
        let bench = try await Bench()
        let store = CountedStore()
        var first: MQTTClient? = client(bench, store)
        try await first?.connect()
        await first?.disconnect()
        await first?.disconnect()
        #expect(store.closed.load(ordering: .relaxed) == 1)
        let second = client(bench, store)
        try await second.connect()
        first = nil
        try await second.publish("kept", to: "a", qos: .atLeastOnce)
        await second.suspend()
        #expect(store.closed.load(ordering: .relaxed) == 1)
        await second.disconnect()
        #expect(store.opened.load(ordering: .relaxed) == 2)
        #expect(store.closed.load(ordering: .relaxed) == 2)
        await bench.stop()
    }

    @Test func `all that is enqueued while the client connects and disconnects is delivered once`() async throws {
        let bench = try await Bench()
        let store = MemorySessionStore()
        let receiver = try await bench.connected()
        let messages = try await receiver.subscribe(to: "a", qos: .exactlyOnce)
        let client = client(bench, store)
        let writers = (0..<4).map { writer in
            Task {
                for number in 0..<50 {
                    try await client.enqueue(
                        MQTTOutgoingMessage(Array("\(writer * 50 + number)".utf8), to: "a", qos: .exactlyOnce))
                    if number % 5 == 0 { await client.disconnect() }
                }
            }
        }
        let connecting = Task {
            while !Task.isCancelled {
                try? await client.connect()
                await Task.yield()
            }
        }
        for writer in writers { try await writer.value }
        connecting.cancel()
        await connecting.value
        // The broker may process the CONNECT of an abandoned attempt after that of this one.
        await client.start()
        let received = try await messages.first(200)
        #expect(Set(received.compactMap(\.text)).count == 200)
        #expect(await eventually { store.messageCount == 0 })
        #expect(receiver.counters.messagesReceived == 200)
        await client.disconnect()
        await receiver.disconnect()
        await bench.stop()
    }

    @Test func `an acknowledgement of before disconnect() is not taken for one of a newer delivery`() async throws {
        let bench = try await Bench()
        let client = client(bench, MemorySessionStore())
        try await client.connect()
        let messages = try await client.subscribe(to: "a", qos: .atLeastOnce, acknowledgement: .manual)
        await bench.broker.publish("1", to: "a")
        let old = try await messages.first(1)
        await client.disconnect()
        #expect(await bench.broker.forgetSession(of: "owner"))
        try await client.connect()
        let newer = try await client.subscribe(to: "a", qos: .atLeastOnce, acknowledgement: .manual)
        await bench.broker.publish("2", to: "a")
        #expect(try await newer.first(1).map(\.text) == ["2"])
        old[0].acknowledge()
        // A PUBACK would arrive before this.
        try await client.publish("x", to: "b", qos: .atLeastOnce)
        await bench.cut()
        let again = try await withTimeout(.patience, "the message again") { try await newer.first(1) }
        #expect(again.map(\.isDuplicate) == [true])
        await client.disconnect()
        await bench.stop()
    }

    @Test func `discarding the session empties the store of a client that is not connected`() async throws {
        let bench = try await Bench()
        let store = MemorySessionStore()
        let client = client(bench, store)
        try await client.enqueue(MQTTOutgoingMessage([1], to: "a"))
        await client.disconnect()
        #expect(store.messageCount == 1)
        try await client.discardSession()
        #expect(store.messageCount == 0)
        #expect(client.backlog.queuedMessages == 0)
        await bench.stop()
    }
}
