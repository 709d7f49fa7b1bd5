import Foundation
import MQTT
import Synchronization
import Transport

/// A store that does not answer while a test holds it.
final class GatedStore: SessionStore {
    private let store = MemorySessionStore()
    private let clock: ManualClock?
    private let holds = Atomic(0)
    /// Whether `open()` returns.
    let opens = Atomic(true)
    /// Whether `append` returns.
    let appends = Atomic(true)
    /// Whether `removeAll` returns.
    let removals = Atomic(true)
    /// Whether `removeAll` was called.
    let isRemoving = Atomic(false)
    /// Whether a call waits for its gate.
    var isHeld: Bool { holds.load(ordering: .acquiring) > 0 }
    var limits: SessionStoreLimits { store.limits }

    /// - Parameter clock: its time may pass while the store is held. It waits for the end of other work of a store.
    init(_ clock: ManualClock? = nil) { self.clock = clock }

    func open() throws -> StoredSession {
        wait(for: opens)
        return try store.open()
    }

    func setClientID(_ clientID: String) throws { try store.setClientID(clientID) }

    func append(_ records: [MQTTStoreRecord]) throws {
        wait(for: appends)
        try store.append(records)
    }

    func removeAll() throws {
        isRemoving.store(true, ordering: .releasing)
        wait(for: removals)
        try store.removeAll()
    }

    func close() { store.close() }

    private func wait(for gate: borrowing Atomic<Bool>) {
        if gate.load(ordering: .acquiring) { return }
        if let loop = clock?.loop { loop.execute { loop.endWork() } }
        holds.add(1, ordering: .releasing)
        while !gate.load(ordering: .acquiring) { Thread.sleep(forTimeInterval: 0.001) }
        holds.subtract(1, ordering: .releasing)
        clock?.loop.beginWork()
    }
}
