import Foundation
import MQTT
import Synchronization

/// A store that does not answer while a test holds it.
final class GatedStore: SessionStore {
    private let store = MemorySessionStore()
    /// Whether `open()` returns.
    let opens = Atomic(true)
    /// Whether `append` returns.
    let appends = Atomic(true)
    /// Whether `removeAll` returns.
    let removals = Atomic(true)
    /// Whether `removeAll` was called.
    let isRemoving = Atomic(false)
    var limits: SessionStoreLimits { store.limits }

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
        while !gate.load(ordering: .acquiring) { Thread.sleep(forTimeInterval: 0.001) }
    }
}
