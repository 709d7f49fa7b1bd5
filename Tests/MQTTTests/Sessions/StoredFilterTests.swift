import MQTT
import MQTTCore
import Synchronization
import TestSupport
import Testing
import Transport

/// What a process finds in its session of the subscriptions of one that died.
@Suite("Client: filters of an earlier process", .turns)
struct StoredFilterTests {
    /// A server that has the client's session from the second connection on.
    private final class KeepingServer: Sendable {
        let requests = Mutex<[String]>([])
        let answersUnsubscribe = Atomic(true)
        private let scripted = Mutex<ScriptedServer?>(nil)
        var server: ScriptedServer { scripted.withLock { $0! } }

        init() {
            let server = ScriptedServer { [weak self] step in self?.handle(step) }
            scripted.withLock { $0 = server }
        }

        private func handle(_ step: ScriptedServer.Step) {
            switch step.event {
            case .connectReceived: step.accept(sessionPresent: step.connection > 1)
            case .subscribeReceived(let packet):
                requests.withLock { $0 += packet.subscriptions.map { "+" + $0.filter } }
                step.perform {
                    let codes = packet.subscriptions.map { _ in MQTTReasonCode.success }
                    try? $0.engine.acknowledgeSubscribe(packet.packetID, codes: codes, at: MonotonicClock.now)
                }
            case .unsubscribeReceived(let packet):
                requests.withLock { $0 += packet.filters.map { "-" + $0 } }
                guard answersUnsubscribe.load(ordering: .relaxed) else { return }
                step.perform {
                    let codes = packet.filters.map { _ in MQTTReasonCode.success }
                    try? $0.engine.acknowledgeUnsubscribe(packet.packetID, codes: codes, at: MonotonicClock.now)
                }
            default: break
            }
        }

        func client(_ store: MemorySessionStore, _ version: MQTTVersion) -> MQTTClient {
            server.client {
                $0.version = version
                $0.cleanStart = false
                if version == .v5_0 { $0.sessionExpiry = .seconds(3600) }
                $0.sessionStore = store
            }
        }
    }

    /// What a process leaves that dies now.
    private func remains(of store: MemorySessionStore) throws -> MemorySessionStore {
        let copy = MemorySessionStore()
        store.close()
        let session = try store.open()
        try copy.setClientID(session.clientID ?? "")
        try copy.append(session.records)
        return copy
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0])
    func `a subscription that the next process does not repeat stays for later`(version: MQTTVersion) async throws {
        let server = KeepingServer()
        var store = MemorySessionStore()
        let first = server.client(store, version)
        try await first.connect()
        let kept = try await first.subscribe(to: [.init(filter: "kept"), .init(filter: "too")])
        store = try remains(of: store)
        let second = server.client(store, version)
        try await second.connect()
        let other = try await second.subscribe(to: "other")
        #expect(server.requests.withLock { $0 } == ["+kept", "+too", "+other"])
        store = try remains(of: store)
        let third = server.client(store, version)
        try await third.connect()
        let again = try await third.subscribe(to: "kept")
        try await again.unsubscribe()
        #expect(server.requests.withLock { $0.suffix(2) } == ["+kept", "-kept"])
        // A filter that no process uses any more is removed by its name.
        try await third.unsubscribe(from: "too")
        #expect(server.requests.withLock { $0.last } == "-too")
        let last = store
        #expect(
            await eventually {
                (try? remains(of: last).open().records == [.established, .filterWanted("other")]) ?? false
            })
        withExtendedLifetime((kept, other)) {}
        for client in [first, second, third] { await client.disconnect() }
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0], [false, true])
    func `a subscription that ended is unsubscribed by the next process`(
        version: MQTTVersion, isConnected: Bool
    ) async throws {
        let server = KeepingServer()
        var store = MemorySessionStore()
        let first = server.client(store, version)
        try await first.connect()
        let kept = try await first.subscribe(to: "kept")
        let ended = try await first.subscribe(to: "ended")
        server.answersUnsubscribe.store(false, ordering: .relaxed)
        let end = Task {
            if !isConnected { await first.suspend() }
            try await ended.unsubscribe()
        }
        let log = store
        #expect(await eventually { (try? remains(of: log).open().records.contains(.filterEnded("ended"))) ?? false })
        store = try remains(of: store)
        if isConnected { #expect(await eventually { server.requests.withLock { $0.last } == "-ended" }) }
        server.answersUnsubscribe.store(true, ordering: .relaxed)
        server.requests.withLock { $0 = [] }
        let second = server.client(store, version)
        try await second.connect()
        let last = store
        #expect(
            await eventually {
                (try? remains(of: last).open().records == [.established, .filterWanted("kept")]) ?? false
            })
        #expect(server.requests.withLock { $0 } == ["-ended"])
        withExtendedLifetime(kept) {}
        for client in [first, second] { await client.disconnect() }
        _ = try? await end.value
    }

    @Test func `a filter with a subscription that ends with its client stays for the next client`() async throws {
        let server = KeepingServer()
        let store = MemorySessionStore()
        let first = server.client(store, .v5_0)
        try await first.connect()
        let kept = try await first.subscribe(to: "kept")
        await first.disconnect()
        let second = server.client(store, .v5_0)
        try await second.connect()
        let again = try await second.subscribe(to: "kept")
        await second.disconnect()
        try await first.connect()
        // The other client has used the store, and so have these.
        try await kept.unsubscribe()
        #expect(server.requests.withLock { $0 } == ["+kept", "+kept", "-kept"])
        await first.disconnect()
        withExtendedLifetime(again) {}
    }
}
