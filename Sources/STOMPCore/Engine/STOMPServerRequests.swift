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

extension STOMPConnectRequest: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// For people: login and passcode are not shown.
    public var description: String { "CONNECT in \(version): \(headers)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror {
        Mirror(
            self,
            children: [
                "version": version, "host": host as Any, "clientID": clientID as Any, "heartBeat": heartBeat,
                "headers": headers,
            ])
    }
}
