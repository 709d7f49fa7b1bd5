/// A value that mostly is not there, and takes the room of a reference then.
///
/// A change allocates: for values that are seldom changed and seldom read.
struct Boxed<Value: Sendable>: Sendable {
    private indirect enum Box: Sendable {
        case value(Value)
    }

    private var box: Box?

    var value: Value? {
        get { if case .value(let value)? = box { value } else { nil } }
        set { box = newValue.map { .value($0) } }
    }
}

/// What an engine has to know between CONNECT and CONNACK, and not after that.
struct MQTTOpening: Sendable {
    /// Of CONNECT, or assigned by the server.
    var clientID = ""
    /// Whether CONNECT had Clean Start set.
    var cleanStart = false
    var keepAlive: UInt16 = 0
    /// PINGREQ that came before a server had answered CONNECT.
    var deferredPings = 0
    /// CONNECT, which waits until it is stored that the server may hold a session of ours; and the ticket of that.
    var heldConnect: [UInt8] = []
    var heldConnectTicket: UInt64 = 0
}

/// Whose turn it is in an enhanced authentication, and until when.
struct MQTTAuthenticationTurns: Sendable, Equatable {
    enum Turn: UInt8 {
        /// No authentication is under way.
        case none
        /// Our next AUTH is awaited.
        case ours
        /// The peer's next AUTH is awaited, or its CONNACK.
        case peers
    }

    var turn = Turn.none
    /// When the step that is awaited is late; `Int64.max` for never.
    var deadline = Int64.max
    /// When the whole exchange has to be over, however many steps it has.
    var limit = Int64.max

    /// The peer has sent the first step.
    mutating func begin(until limit: Int64) {
        self = MQTTAuthenticationTurns(turn: .ours, deadline: limit, limit: limit)
    }
}

/// How far a connection is with the subscriptions that have to come before its messages.
enum SubscribingStage: UInt8, Sendable {
    /// The caller is about to write SUBSCRIBE packets.
    case writing
    /// They are written, and some are not answered.
    case awaitingAnswers
    /// Nothing holds messages back.
    case done
}

/// What a client sends in DISCONNECT once the exchanges before it are finished.
struct MQTTLeaving: Sendable {
    var reason: MQTTReasonCode
    var properties: MQTTProperties
    /// When DISCONNECT is written although exchanges are open.
    var deadline: Int64
}
