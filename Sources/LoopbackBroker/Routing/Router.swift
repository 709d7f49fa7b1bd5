package import MQTTCore
import MessagingWire

/// Who gets what: sessions, subscriptions, retained messages and queues, without sockets, clocks or threads.
///
/// Connections are integers here. Every operation appends what is to be sent to ``RouterEffects``; the caller performs
/// that after it has released the lock that the router lives under.
package struct Router: Sendable {
    /// A connection, by the number that it was given; numbers are never used again.
    package typealias ConnectionID = Int

    let limits: LoopbackBrokerLimits
    let keepsSessions: Bool

    var sessions: [SessionRecord?] = []
    var freeSessions: [Int] = []
    /// Counts sessions that lost their connections.
    var sessionsLeft = 0
    var times = SessionTimes()
    var sessionsByClient: [ByteKey: Int] = [:]

    var filters = MQTTFilterTree<Int>()
    var lists: [FilterList] = []
    var freeLists: [Int] = []

    var retained = RetainedMessages()

    var stompConnections: [ConnectionID: STOMPConnectionRecord] = [:]
    var consumers: [Int: Consumer] = [:]
    var nextConsumer = 0
    /// Consumers of topics that have no queue.
    var topicConsumers = TopicIndex<Int>()
    /// Consumers of queues by pattern, in the order of their subscriptions.
    var wildcardConsumers: [Int] = []
    var queues: [ByteKey: QueueRecord] = [:]
    /// Queues that collect the messages of topics.
    var topicQueues = TopicIndex<ByteKey>()
    /// The queues of the transaction that is being committed: they are not removed however idle they are.
    var committedQueues: Set<ByteKey> = []
    var nextMessage: UInt64 = 0
    var nextDelivery: UInt64 = 0
    let refused: LoopbackBrokerOptions.RefusedMessages

    /// Routes that were looked up, good until a subscription changes.
    var routes: [ByteKey: Route] = [:]
    static let routeLimit = 4_096

    /// When `handleTimeout` has something to do; `Int64.max` for never.
    package internal(set) var nextDeadline = Int64.max

    package init(
        limits: LoopbackBrokerLimits = LoopbackBrokerLimits(), keepsSessions: Bool = true,
        refused: LoopbackBrokerOptions.RefusedMessages = .discard
    ) {
        self.limits = limits
        self.refused = refused
        self.keepsSessions = keepsSessions
    }

    init(_ options: LoopbackBrokerOptions) {
        self.init(limits: options.limits, keepsSessions: options.keepsSessions, refused: options.refusedMessages)
    }

    /// The number of MQTT sessions, connected or not.
    package var sessionCount: Int { sessionsByClient.count }
    /// The number of messages that wait in a queue of STOMP.
    package func queuedCount(_ destination: String) -> Int { queues[ByteKey(destination)]?.count ?? 0 }
    /// The number of retained messages that have not expired.
    package func retainedCount(at now: Int64) -> Int { retained.all.lazy.filter { $0.expiry > now }.count }

    /// The names of some queues, in an order that is the same in each process.
    func queueNames(where isIncluded: (ByteKey, QueueRecord) -> Bool) -> [ByteKey] {
        queues.filter(isIncluded).keys.sorted { $0.text < $1.text }
    }

    /// Forgets who gets the messages of each topic, because a subscription has changed.
    mutating func forgetRoutes() { routes.removeAll(keepingCapacity: true) }
}

/// What is to be sent to whom.
package struct RouterEffects: Sendable {
    /// In order for each connection.
    package var publishes: [(connection: Router.ConnectionID, item: OutgoingPublish)] = []
    package var messages: [STOMPDelivery] = []
    /// Messages that found a queue full.
    package var dropped = 0

    package init() {}
}

/// What a client subscribed with.
package struct HeldSubscription: Sendable {
    package var qos: QoS
    /// Whether the client does not get its own messages. Its retained ones it gets when it subscribes, as from Mosquitto.
    package var noLocal = false
    package var retainAsPublished = false
    /// 0 for none.
    package var identifier: UInt32 = 0
}

/// All that subscribe to one filter.
struct FilterList: Sendable {
    var filter: String
    var subscribers = Subscribers()
    var groups: [ShareGroup] = []

    var isEmpty: Bool { subscribers.isEmpty && groups.isEmpty }
}

/// The sessions that subscribe to the same, in the order of their numbers.
struct Subscribers: Sendable {
    private(set) var all: [(session: Int, subscription: HeldSubscription)] = []

    var isEmpty: Bool { all.isEmpty }
    var count: Int { all.count }

    mutating func set(_ subscription: HeldSubscription, of session: Int) {
        let place = place(of: session)
        if place < count, all[place].session == session {
            all[place].subscription = subscription
        } else {
            all.insert((session, subscription), at: place)
        }
    }

    mutating func remove(_ session: Int) {
        let place = place(of: session)
        if place < count, all[place].session == session { all.remove(at: place) }
    }

    private func place(of session: Int) -> Int {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if all[middle].session < session { low = middle + 1 } else { high = middle }
        }
        return low
    }
}

/// The members of one shared subscription; each message goes to one of them.
struct ShareGroup: Sendable {
    var name: String
    var members = Subscribers()
    /// The member whose turn it is.
    var cursor = 0
}

/// Who gets the messages of one topic.
struct Route: Sendable {
    struct Target: Sendable {
        var session: Int
        /// For the messages of others: what all its subscriptions that matched ask for.
        var terms = Terms()
        /// For its own messages: the same without subscriptions with No Local; nil if there is no other [MQTT-3.8.3-3].
        var ownTerms: Terms?

        init(session: Int) { self.session = session }

        mutating func add(_ subscription: HeldSubscription) {
            terms.add(subscription)
            guard !subscription.noLocal else { return }
            var own = ownTerms ?? Terms()
            own.add(subscription)
            ownTerms = own
        }
    }

    /// How a session gets a message that several of its subscriptions match: at the highest QoS of them, and with all their
    /// identifiers [MQTT-3.3.5-1, 3.3.4-4].
    struct Terms: Sendable {
        var qos = QoS.atMostOnce
        var retainAsPublished = false
        var identifiers: [UInt32] = []

        mutating func add(_ subscription: HeldSubscription) {
            qos = max(qos, subscription.qos)
            if subscription.retainAsPublished { retainAsPublished = true }
            if subscription.identifier != 0 { identifiers.append(subscription.identifier) }
        }
    }

    var targets: [Target] = []
    /// Shared subscriptions as places in `lists`.
    var groups: [(list: Int, group: Int)] = []
    /// Subscriptions of STOMP clients.
    var consumers: [Int] = []
    /// The queues of those that are durable or acknowledge.
    var queues: [ByteKey] = []
}
