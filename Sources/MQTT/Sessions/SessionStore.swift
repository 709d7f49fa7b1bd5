public import MQTTCore

/// Where a client keeps its session, so that it survives the process: messages that were accepted and not finally
/// acknowledged, and the identifiers of received QoS 2 messages.
///
/// All calls come from one thread that the client has for them, one at a time; they may block. Records are read in order
/// and added at the end. What was appended when `append` returned has to be there after the process was killed at any
/// moment after that. An error ends the client's connection for good: its promises could not be kept.
///
/// One client uses a store at a time; a store belongs to one client identifier.
public protocol SessionStore: Sendable {
    /// What the store keeps at most; the client refuses messages beyond it.
    var limits: SessionStoreLimits { get }
    /// Gets the store ready and returns what is there.
    func open() throws -> StoredSession
    /// Notes whose session it is; called again when the server assigns another identifier.
    func setClientID(_ clientID: String) throws
    /// Adds records and returns when they are safe.
    func append(_ records: [MQTTStoreRecord]) throws
    /// Forgets everything; the store stays open.
    func removeAll() throws
    /// The client is gone; another one may open the store.
    func close()
}

/// How much a ``SessionStore`` keeps.
public struct SessionStoreLimits: Sendable, Equatable {
    /// Messages that are not done.
    public var maximumMessages: Int
    /// Bytes of their topics and payloads.
    public var maximumBytes: Int

    public init(maximumMessages: Int = 10_000, maximumBytes: Int = 16 << 20) {
        self.maximumMessages = maximumMessages
        self.maximumBytes = maximumBytes
    }
}

/// What a ``SessionStore`` held when it was opened.
public struct StoredSession: Sendable {
    /// Whose session it is; nil for a new store.
    public var clientID: String?
    /// What happened to the session, oldest first.
    public var records: [MQTTStoreRecord]
    /// What could not be read, if anything.
    public var damage: StoredSession.Damage?

    public init(clientID: String? = nil, records: [MQTTStoreRecord] = [], damage: StoredSession.Damage? = nil) {
        self.clientID = clientID
        self.records = records
        self.damage = damage
    }
}

extension StoredSession {
    /// The part of a store that could not be read. Everything before it was.
    public struct Damage: Sendable, Equatable {
        /// Where the first bad byte's record begins.
        public var offset: Int
        /// The bytes from there to the end, which were given up.
        public var bytesLost: Int
        /// What was wrong.
        public var reason: String

        public init(offset: Int, bytesLost: Int, reason: String) {
            self.offset = offset
            self.bytesLost = bytesLost
            self.reason = reason
        }
    }
}

/// A store that cannot be used: what happened and what to do.
public struct SessionStoreError: Error, Sendable, CustomStringConvertible {
    public var description: String

    public init(_ description: String) {
        self.description = description
    }
}
