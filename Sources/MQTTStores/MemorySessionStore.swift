public import MQTTCore
import Synchronization
import Transport

/// A session store in memory, which lasts as long as this object: within a process one client passes its session on to the
/// next.
public final class MemorySessionStore: SessionStore {
    private struct State {
        var clientID: String?
        var image = MQTTSessionImage()
        var isOpen = false
    }

    public let limits: SessionStoreLimits
    private let state = Lock(State())

    /// Makes an empty store.
    public init(limits: SessionStoreLimits = SessionStoreLimits()) {
        self.limits = limits
    }

    /// The number of messages that are not finally acknowledged.
    public var messageCount: Int { state.withLock { $0.image.messageCount } }

    public func open() throws -> StoredSession {
        try state.withLock { state in
            guard !state.isOpen else {
                throw SessionStoreError(
                    "Another client uses this session store. Disconnect that client, or give each a store of its own.")
            }
            state.isOpen = true
            return StoredSession(clientID: state.clientID, records: state.image.records)
        }
    }

    public func setClientID(_ clientID: String) throws {
        state.withLock { $0.clientID = clientID }
    }

    public func append(_ records: [MQTTStoreRecord]) throws {
        state.withLock { state in
            for record in records { state.image.apply(record) }
        }
    }

    public func removeAll() throws {
        state.withLock { state in
            state.image = MQTTSessionImage()
            state.clientID = nil
        }
    }

    public func close() {
        state.withLock { $0.isOpen = false }
    }
}
