// Observed against RabbitMQ 3.10.8 and ActiveMQ Classic 5.17.2; Artemis from its documentation.

extension STOMPBrokerProfile {
    /// What the specification promises, and nothing else.
    public static let generic = STOMPBrokerProfile(name: "generic", serverPrefix: "")

    public static let rabbitMQ: STOMPBrokerProfile = {
        var profile = STOMPBrokerProfile(name: "RabbitMQ", serverPrefix: "RabbitMQ")
        profile.wildcards = STOMPWildcards(
            separator: UInt8(ascii: "."), oneWord: UInt8(ascii: "*"), manyWords: UInt8(ascii: "#"),
            prefixes: ["/topic/"])
        profile.durable = .flags
        profile.deletableDurablePrefixes = ["/topic/"]
        profile.expiry = .relative
        profile.prefetchHeader = "prefetch-count"
        profile.prefetchNeedsAcknowledgement = true
        profile.temporaryQueues = .implicit
        profile.nackRequeueHeader = "requeue"
        profile.nackRedeliversAtOnce = true
        profile.acknowledgesWholeConnection = true
        profile.receiptFollowsError = true
        // The last two: a message was under way, or its queue was deleted, when UNSUBSCRIBE arrived.
        profile.errorsAboutNoFrame = [
            "connection_forced", "amqp connection died", "amqp channel died", "delivery acknowledgement on channel",
            "credential expired", "no current subscription with tag", "server cancelled unknown subscription",
        ]
        profile.confirmsCommitEarly = true
        profile.unanswered = .keptUntilConnectionEnds
        profile.unescapesConnect = true
        profile.sendsBytesAsText = true
        profile.refusedCredentials = ["access refused for user"]
        return profile
    }()

    /// Before ``activeMQ`` in the table, whose name its own begins with.
    public static let artemis: STOMPBrokerProfile = {
        var profile = STOMPBrokerProfile(name: "ActiveMQ Artemis", serverPrefix: "ActiveMQ-Artemis")
        profile.durable = .named(header: "durable-subscription-name")
        profile.prefetchHeader = "consumer-window-size"
        profile.prefetchUnit = .bytes
        profile.supportsSelectors = true
        profile.acknowledgesRejected = true
        profile.missingContentLengthMeansText = true
        profile.refusedCredentials = ["unable to validate user", "password is invalid"]
        return profile
    }()

    public static let activeMQ: STOMPBrokerProfile = {
        var profile = STOMPBrokerProfile(name: "ActiveMQ Classic", serverPrefix: "ActiveMQ")
        profile.wildcards = STOMPWildcards(
            separator: UInt8(ascii: "."), oneWord: UInt8(ascii: "*"), manyWords: UInt8(ascii: ">"),
            prefixes: ["/topic/", "/queue/"])
        profile.durable = .named(header: "activemq.subscriptionName")
        profile.deletesDurableApart = true
        profile.rejectsOneByOne = true
        profile.unanswered = .redelivered
        profile.prefetchHeader = "activemq.prefetchSize"
        profile.supportsSelectors = true
        profile.temporaryQueues = .subscribeFirst
        profile.missingContentLengthMeansText = true
        profile.errorNamesReceipt = true
        profile.unescapesConnect = true
        profile.longestHeaderLine = 10 * 1_024 - 1
        profile.mostHeaders = 1_000
        profile.refusedCredentials = ["password is invalid", "user name ["]
        return profile
    }()

    /// The in-process broker of this package.
    public static let loopback: STOMPBrokerProfile = {
        var profile = STOMPBrokerProfile(name: "loopback", serverPrefix: "swift-messaging")
        profile.wildcards = activeMQ.wildcards
        profile.durable = .named(header: "durable-subscription-name")
        profile.prefetchHeader = "prefetch-count"
        profile.prefetchNeedsAcknowledgement = true
        profile.supportsSelectors = true
        profile.temporaryQueues = .subscribeFirst
        profile.nackRequeueHeader = "requeue"
        profile.unanswered = .redelivered
        profile.refusedCredentials = ["invalid user credentials"]
        return profile
    }()

    /// The simple broker of Spring, which sends no receipts. Its CONNECTED has no `server` header, so it has to be chosen.
    ///
    /// Not for Spring's relay to another broker: that passes on what the other broker sends.
    public static let springSimple: STOMPBrokerProfile = {
        var profile = STOMPBrokerProfile(name: "Spring's simple broker", serverPrefix: "")
        profile.supportsSelectors = true
        profile.sendsReceipts = false
        return profile
    }()

    /// In the order in which `server` headers are tried.
    public static let known: [STOMPBrokerProfile] = [.rabbitMQ, .artemis, .activeMQ, .loopback]

    /// Whether an ERROR before CONNECTED refuses the user or the password. The broker has not introduced itself then,
    /// so every profile is asked. Brokers without a profile have texts of their own: "Authentication failed" is coilmq's.
    public static func refusesCredentials(_ error: STOMPServerError) -> Bool {
        error.mentions(anyOf: ["authentication failed"])
            || known.contains { error.mentions(anyOf: $0.refusedCredentials) }
    }
}
