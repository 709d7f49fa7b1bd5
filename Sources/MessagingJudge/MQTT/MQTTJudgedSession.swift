import MQTTCore
import MessagingWire

/// What outlives the connections of a client: its exchanges with the server, what it has subscribed, and what its last CONNECT
/// promised.
struct MQTTJudgedSession: Sendable {
    /// A message of QoS 1 or 2 from the client to the server.
    struct Exchange: Sendable {
        enum State: Sendable {
            /// PUBLISH was written, and has no answer.
            case published
            /// The server has written PUBREC.
            case received
            /// The client has written PUBREL.
            case released
            /// The server has written the last packet, which the client may not have received.
            case answered
        }

        /// As it was first written, with its topic and without an alias.
        var message: MQTTPacket.Publish
        var state = State.published
        /// The connection on which PUBLISH was last written, and PUBREL.
        var publishedOn: Int
        var releasedOn = 0
        /// When PUBLISH was first written.
        var time: Int64
        /// The position among all that were first written; nil for one whose first PUBLISH was lost.
        var number: Int?
        /// The position of PUBREC among all that were written.
        var receipt: Int?
        /// Whether the process that wrote it may still run: another one counts its packet identifiers from anywhere.
        var isOfThisProcess = true
        /// A server with smaller limits has not allowed the message since it was last written: the client may have reported it
        /// as undelivered.
        var mayBeAbandoned = false
    }

    /// A filter that the server has granted.
    struct Subscription: Sendable {
        var request: MQTTSubscriptionRequest
        var identifier: UInt32?
        var isGrantedWhole: Bool
        /// Whether the client knows that the server holds it.
        var isKnown = true
    }

    /// By packet identifier.
    var exchanges: [UInt16: Exchange] = [:]
    var subscriptions: [ByteKey: Subscription] = [:]
    /// Counts first PUBLISH packets, and PUBREC packets.
    private(set) var published = 0
    private(set) var received = 0
    /// A connection of this session has ended: packets may have been lost with it, or another process continues the session,
    /// which does not know what was written.
    var mayHaveLost = false

    /// Whether the last connection on which the client sent anything began with a SUBSCRIBE that nobody needed.
    var askedNeedlessly = false

    // What a new session does not change.

    /// The last CONNECT; nil if the client has taken its leave since then.
    var lastConnect: MQTTPacket.Connect?
    /// Whether the client has shown that it received the last CONNACK.
    var connackArrived = false
    /// The identifier of each filter in the last SUBSCRIBE that named it.
    var identifiers: [ByteKey: UInt32] = [:]

    /// How many connections have ended, and how many while messages to a topic were unanswered: after three of them
    /// others may pass what alone was unanswered at the next, so that a message which the server refuses does not hold them up.
    private var (ends, endsOfTopics): (Int, [ByteKey: Int]) = (0, [:])

    /// The connection has ended.
    mutating func ended(_ number: Int) {
        let open = exchanges.values.filter { $0.publishedOn == number && $0.state != .answered }
        ends += 1
        for topic in Set(open.map { ByteKey($0.message.topic) }) { endsOfTopics[topic, default: 0] += 1 }
    }

    /// Whether others may pass a message.
    func mayBePassed(_ message: MQTTPacket.Publish) -> Bool {
        ends >= 4 && endsOfTopics[ByteKey(message.topic), default: 0] >= 2
    }

    /// The server has no session, or begins a new one.
    mutating func discard() {
        exchanges = [:]
        subscriptions = [:]
        mayHaveLost = false
    }

    /// Another process, or one with another configuration, may connect next.
    mutating func forgetProcess() {
        // It may not know which messages of its store were written.
        mayHaveLost = true
        for id in exchanges.keys { exchanges[id]?.isOfThisProcess = false }
        lastConnect = nil
        doubtSubscriptions()
    }

    /// The client cannot know what the server holds until it has asked for it again.
    mutating func doubtSubscriptions() {
        for key in subscriptions.keys { subscriptions[key]?.isKnown = false }
    }

    mutating func nextNumber() -> Int {
        published += 1
        return published
    }

    mutating func nextReceipt() -> Int {
        received += 1
        return received
    }
}
