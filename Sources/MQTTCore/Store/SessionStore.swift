// Stores throw errors of any type, which Embedded Swift does not have.
#if !hasFeature(Embedded)
    /// Where a client stores its session, so that it survives the process: messages that were accepted and not finally
    /// acknowledged, the identifiers of received QoS 2 messages, and the topic filters that the server may have.
    ///
    /// All calls come from one thread that the client has for them, one at a time; they may block. Records are read in order
    /// and added at the end. Records have to survive the end of the process at any moment after `append` has returned.
    /// An error stops the client, which could not keep its promises; its next `connect()` closes the store and opens it
    /// again. The ends of messages that could not be stored before are then added first.
    ///
    /// One client uses a store at a time, from its first request that needs the store until `disconnect()`. A store belongs to
    /// one client identifier.
    public protocol SessionStore: Sendable {
        /// The bounds of what waits in the store to be sent; the client refuses messages beyond them.
        var limits: SessionStoreLimits { get }
        /// Opens the store and returns its contents; called again after ``close()``.
        func open() throws -> StoredSession
        /// Stores the client identifier of the session; called again when the server assigns another one.
        func setClientID(_ clientID: String) throws
        /// Adds records and returns when they are stored.
        func append(_ records: [MQTTStoreRecord]) throws
        /// Deletes everything; the store stays open.
        func removeAll() throws
        /// The client has disconnected or is released; another one may open the store.
        func close()
    }
#endif

/// The bounds of what waits in a ``SessionStore`` to be sent. Messages in flight come on top: they are bounded by number alone,
/// by ``MQTTConfiguration/maximumInFlight``.
public struct SessionStoreLimits: Sendable, Equatable {
    /// Messages that wait to be sent. Default: 10,000.
    public var maximumMessages: Int
    /// Bytes of their topics, payloads and properties. Default: 16,777,216 bytes (16 MiB).
    public var maximumBytes: Int

    /// Makes limits. Default: 10,000 messages and 16 MiB.
    public init(maximumMessages: Int = 10_000, maximumBytes: Int = 16 << 20) {
        self.maximumMessages = maximumMessages
        self.maximumBytes = maximumBytes
    }
}

/// The contents of a ``SessionStore`` when it was opened.
public struct StoredSession: Sendable {
    /// The client identifier of the session; nil for a new store.
    public var clientID: String?
    /// The session's records, oldest first.
    public var records: [MQTTStoreRecord]
    /// The part that could not be read, if any.
    public var damage: StoredSession.Damage?

    /// The part of a store that could not be read. Everything before it was read.
    public struct Damage: Sendable, Equatable {
        /// Where the first damaged record begins, in bytes.
        public var offset: Int
        /// The number of bytes from there to the end, which are lost.
        public var bytesLost: Int
        /// What was wrong; with a ``FileSessionStore`` also why the damaged file could not be copied.
        public var reason: String

        /// Makes a description of what could not be read.
        public init(offset: Int, bytesLost: Int, reason: String) {
            self.offset = offset
            self.bytesLost = bytesLost
            self.reason = reason
        }
    }

    /// Makes a session of what a store holds.
    public init(clientID: String? = nil, records: [MQTTStoreRecord] = [], damage: StoredSession.Damage? = nil) {
        self.clientID = clientID
        self.records = records
        self.damage = damage
    }
}

/// A store cannot be used: a sentence about what happened, then what to do.
public struct SessionStoreError: Error, Sendable, CustomStringConvertible {
    public var description: String

    /// Makes an error with its description.
    public init(_ description: String) {
        self.description = description
    }
}
