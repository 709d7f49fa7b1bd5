import MQTT
import Synchronization

/// A store that cannot be emptied.
final class StuckStore: SessionStore {
    struct Stuck: Error {}

    private let store = MemorySessionStore()
    private let isStuck: Bool
    let isOpen = Mutex(false)
    var limits: SessionStoreLimits { store.limits }

    init(isStuck: Bool = true) { self.isStuck = isStuck }

    func open() throws -> StoredSession {
        isOpen.withLock { $0 = true }
        return try store.open()
    }

    func setClientID(_ clientID: String) throws { try store.setClientID(clientID) }
    func append(_ records: [MQTTStoreRecord]) throws { try store.append(records) }

    func removeAll() throws {
        if isStuck { throw Stuck() }
        try store.removeAll()
    }

    func close() {
        isOpen.withLock { $0 = false }
        store.close()
    }
}
