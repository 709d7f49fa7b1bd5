/// One thing that happened, other than messages and receipts, and where between the messages of its batch.
public struct STOMPEngineEvent: Sendable {
    /// The number of messages in the same ``STOMPEffects`` that came before.
    public var messagesBefore: Int
    /// What happened.
    public var kind: Kind

    public init(messagesBefore: Int, kind: Kind) {
        self.messagesBefore = messagesBefore
        self.kind = kind
    }

    /// What can happen.
    public enum Kind: Sendable {
        // At a client.
        /// CONNECTED came, and its version was one of those offered.
        indirect case connected(STOMPConnected)
        /// An ERROR frame; ``connectionFailed(_:)`` follows.
        indirect case errorReceived(STOMPServerError)

        /// The server sent no RECEIPT for this many nanoseconds while some were awaited, this one for longest;
        /// ``connectionFailed(_:)`` follows. See ``STOMPEngineConfiguration/acknowledgementTimeout``.
        indirect case acknowledgementTimedOut(receiptID: String, after: Int64)

        // At both.
        /// The end that was asked for: RECEIPT of DISCONNECT, the end of the stream after it, or its deadline. At a server:
        /// the client closed after DISCONNECT. Comes once per connection, or ``connectionFailed(_:)`` does.
        case disconnected
        /// The connection is over. Comes once per connection, and before the transport is closed when the engine noticed.
        indirect case connectionFailed(STOMPConnectionFailure)
        /// A frame that the specification does not list for this direction. The frame is ignored.
        indirect case unknownFrameReceived(STOMPFrame)

        // At a server.
        /// CONNECT or STOMP: answer with `accept` or `refuse`. Frames that the client sent without waiting may follow in
        /// the same batch; after `refuse` they are to be dropped.
        indirect case connectReceived(STOMPConnectRequest)
        indirect case subscribeReceived(STOMPSubscribeRequest)
        indirect case unsubscribeReceived(STOMPUnsubscribeRequest)
        indirect case ackReceived(STOMPAckRequest)
        indirect case nackReceived(STOMPAckRequest)
        indirect case beginReceived(STOMPTransactionRequest)
        indirect case commitReceived(STOMPTransactionRequest)
        indirect case abortReceived(STOMPTransactionRequest)
        /// DISCONNECT: send the receipt when there is one. The connection is closed shortly after.
        indirect case disconnectReceived(receipt: String?)
    }
}

/// What CONNECTED contained.
public struct STOMPConnected: Sendable, Hashable {
    public var version: STOMPVersion
    public var session: String?
    public var server: String?
    /// What both sides agreed on, in milliseconds, seen from here.
    public var heartBeat: STOMPHeartBeat
    public var profile: STOMPBrokerProfile
    public var headers: STOMPHeaders
}

/// Why a connection failed.
public struct STOMPConnectionFailure: Error, Sendable, Hashable, CustomStringConvertible {
    public enum Reason: Sendable, Hashable {
        /// ERROR before CONNECTED that is not known to be about credentials. Transient: try again later.
        case refused
        /// ERROR before CONNECTED about the user or the password: ask for fresh ones once, then stop.
        case credentialsRefused
        /// ERROR in the session.
        case error
        /// No version in common, or CONNECTED with a version that was not offered. Trying again does not help.
        case versionMismatch
        /// The peer broke the protocol.
        case violation(STOMPProtocolError.Code)
        /// Nothing was read for longer than the heart-beats allow.
        case heartBeatLost
        /// No RECEIPT came for too long while some were awaited.
        case acknowledgementTimeout
        /// CONNECTED, or at a server CONNECT, did not come in time.
        case connectTimeout
        /// The stream ended before CONNECTED.
        case closedBeforeConnected
        /// The stream ended in the session.
        case closed
    }

    public var reason: Reason
    /// What happened, which value, and what to do.
    public var message: String
    /// The ERROR frame, where there was one.
    public var error: STOMPServerError?
    /// The token of the subscription whose message is beyond the limits, where that is the reason.
    package var subscription: UInt64?

    public init(_ reason: Reason, _ message: String, error: STOMPServerError? = nil) {
        self.reason = reason
        self.message = message
        self.error = error
    }

    public var description: String { message }
}

// What clients ask of a server. Each keeps all headers of its frame, since brokers read extensions of their own there.

/// CONNECT or STOMP.
public struct STOMPConnectRequest: Sendable, Hashable {
    /// The highest version that both sides know; it goes for every frame from here on.
    public var version: STOMPVersion
    /// Mandatory from 1.1 on, but passed over when missing, as real brokers do.
    public var host: String?
    public var login: String?
    public var passcode: String?
    public var clientID: String?
    /// What the client promises and asks, in milliseconds, seen from the client.
    public var heartBeat: STOMPHeartBeat
    public var headers: STOMPHeaders
}

public struct STOMPSubscribeRequest: Sendable, Hashable {
    /// Nil only in STOMP 1.0, where it is optional.
    public var id: String?
    public var destination: String
    public var ackMode: STOMPAckMode
    public var selector: String?
    public var receipt: String?
    public var headers: STOMPHeaders
}

public struct STOMPUnsubscribeRequest: Sendable, Hashable {
    /// Nil only in STOMP 1.0, where ``destination`` may name the subscription.
    public var id: String?
    public var destination: String?
    public var receipt: String?
    public var headers: STOMPHeaders
}

/// ACK or NACK. Which headers are there depends on the version: 1.0 `message-id`, 1.1 also `subscription`, 1.2 `id`.
public struct STOMPAckRequest: Sendable, Hashable {
    /// What `deliver` was given as `ackID`; from 1.2 on.
    public var id: String?
    public var messageID: String?
    public var subscription: String?
    public var transaction: String?
    public var receipt: String?
    public var headers: STOMPHeaders
}

/// BEGIN, COMMIT or ABORT.
public struct STOMPTransactionRequest: Sendable, Hashable {
    public var transaction: String
    public var receipt: String?
    public var headers: STOMPHeaders
}
