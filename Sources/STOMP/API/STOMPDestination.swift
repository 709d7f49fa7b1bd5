public import MessagingShell
import MessagingWire
public import STOMPCore

/// A destination together with the type of the values that are sent to it, and their format.
///
///     extension STOMPDestination<Order> {
///         static let orders = STOMPDestination("/queue/orders", as: .json)
///     }
///
///     try await client.sendAndConfirm(order, to: .orders)
///     for try await element in try await client.subscribe(to: .orders) {
///         print(element.messageID ?? "", try element.get())
///     }
public struct STOMPDestination<Value: Sendable>: Sendable {
    /// The destination in the broker's notation, such as `/topic/a.b` or `/queue/c`.
    public let name: String
    /// The `content-type` that messages declare and may declare. Nil declares none and accepts every type.
    public var contentType: String? { format.contentType }

    /// How the queue is declared at the broker, which compares that of all frames. Default: as the broker does by itself.
    public var queue: STOMPQueueOptions

    let format: ValueFormat<Value>

    /// A destination of values in a format of the application's own, such as that of generated types:
    ///
    ///     STOMPDestination<Order>(
    ///         "/queue/orders", contentType: "application/protobuf", encode: { try $0.serializedBytes() },
    ///         decode: { try Order(serializedBytes: $0) })
    public init(
        _ name: String, contentType: String? = nil, queue: STOMPQueueOptions = STOMPQueueOptions(),
        encode: @escaping @Sendable (Value) throws -> [UInt8], decode: @escaping @Sendable ([UInt8]) throws -> Value
    ) {
        self.init(name, ValueFormat(contentType: contentType, encode: encode, decode: decode), queue)
    }

    private init(_ name: String, _ format: ValueFormat<Value>, _ queue: STOMPQueueOptions) {
        self.name = name
        self.format = format
        self.queue = queue
    }
}

extension STOMPDestination where Value: Codable {
    /// A destination of values in a format: `STOMPDestination<Order>("/queue/orders", as: .json)`.
    public init(_ name: String, as coding: some PayloadCoding, queue: STOMPQueueOptions = STOMPQueueOptions()) {
        self.init(name, ValueFormat(coding), queue)
    }
}

extension STOMPDestination<String> {
    /// A destination of text in UTF-8.
    public static func text(
        _ name: String, queue: STOMPQueueOptions = STOMPQueueOptions()
    ) -> STOMPDestination { STOMPDestination(name, .text, queue) }
}

extension STOMPDestination<[UInt8]> {
    /// A destination of bytes as they are.
    public static func bytes(
        _ name: String, queue: STOMPQueueOptions = STOMPQueueOptions()
    ) -> STOMPDestination { STOMPDestination(name, .bytes, queue) }
}

/// How a queue is declared at the broker, beyond the specification: dead letters, limits, consumers.
///
///     extension STOMPDestination<Order> {
///         static let orders = STOMPDestination(
///             "/queue/orders", as: .json,
///             queue: .rabbitMQ(deadLetterExchange: "amq.topic", deadLetterRoutingKey: "orders.dead"))
///     }
///
/// A destination has them once, and they are sent with each of its messages and subscriptions: RabbitMQ refuses a frame
/// whose arguments differ from those that the queue has. Options of one broker are not sent to another.
public struct STOMPQueueOptions: Sendable, Equatable {
    /// Headers of SEND and SUBSCRIBE to RabbitMQ.
    var rabbitMQ = STOMPHeaders()
    /// Headers of SUBSCRIBE to ActiveMQ.
    var activeMQ = STOMPHeaders()

    /// Makes options with which the broker declares a queue as it does by itself.
    public init() {}

    /// Arguments of a queue of RabbitMQ; what is nil is the broker's choice.
    ///
    /// - Parameters:
    ///   - durable: whether the queue survives a restart of the broker.
    ///   - autoDelete: whether the queue is deleted with its last subscription.
    ///   - exclusive: whether only this connection may use the queue.
    ///   - deadLetterExchange: the exchange that gets what is rejected, expires or is dropped.
    ///   - deadLetterRoutingKey: the routing key of dead letters; nil keeps that of the message.
    ///   - timeToLive: the time after which a message in the queue expires, in whole milliseconds.
    ///   - unusedTime: the time after which the queue is deleted when it is not used, in whole milliseconds.
    ///   - maximumMessages: the number of messages in the queue; the oldest is dropped for the newest.
    ///   - maximumBytes: the bytes of all bodies in the queue.
    ///   - maximumPriority: the highest priority that the queue distinguishes, from 1 to 255.
    ///   - headers: other arguments, such as `x-queue-type`.
    public static func rabbitMQ(
        durable: Bool? = nil, autoDelete: Bool? = nil, exclusive: Bool? = nil, deadLetterExchange: String? = nil,
        deadLetterRoutingKey: String? = nil, timeToLive: Duration? = nil, unusedTime: Duration? = nil,
        maximumMessages: Int? = nil, maximumBytes: Int? = nil, maximumPriority: Int? = nil, headers: STOMPHeaders = [:]
    ) -> STOMPQueueOptions {
        var options = STOMPQueueOptions()
        options.rabbitMQ = Self.headers([
            ("durable", durable), ("auto-delete", autoDelete), ("exclusive", exclusive),
            ("x-dead-letter-exchange", deadLetterExchange), ("x-dead-letter-routing-key", deadLetterRoutingKey),
            ("x-message-ttl", timeToLive.map { $0.inNanoseconds / 1_000_000 }),
            ("x-expires", unusedTime.map { $0.inNanoseconds / 1_000_000 }), ("x-max-length", maximumMessages),
            ("x-max-length-bytes", maximumBytes), ("x-max-priority", maximumPriority),
        ])
        options.rabbitMQ.fields += headers.fields
        return options
    }

    /// How ActiveMQ Classic delivers from a queue or topic; what is nil is the broker's choice. The broker's
    /// configuration says where its dead letters go.
    ///
    /// - Parameters:
    ///   - exclusive: whether one consumer gets all messages, and another one only when it is gone.
    ///   - priority: messages go to the consumers of the highest priority first, from 0 to 127.
    ///   - retroactive: whether a topic delivers messages from before the subscription, if its policy keeps some.
    ///   - maximumPendingMessages: how many messages of a topic wait for a slow consumer; older ones are dropped.
    ///   - headers: other options of a consumer, such as `activemq.dispatchAsync`.
    public static func activeMQ(
        exclusive: Bool? = nil, priority: Int? = nil, retroactive: Bool? = nil, maximumPendingMessages: Int? = nil,
        headers: STOMPHeaders = [:]
    ) -> STOMPQueueOptions {
        var options = STOMPQueueOptions()
        options.activeMQ = Self.headers([
            ("activemq.exclusive", exclusive), ("activemq.priority", priority), ("activemq.retroactive", retroactive),
            ("activemq.maximumPendingMessageLimit", maximumPendingMessages),
        ])
        options.activeMQ.fields += headers.fields
        return options
    }

    /// These options, and those for other brokers.
    public func and(_ others: STOMPQueueOptions) -> STOMPQueueOptions {
        var all = self
        all.rabbitMQ.fields += others.rabbitMQ.fields
        all.activeMQ.fields += others.activeMQ.fields
        return all
    }

    private static func headers(_ options: [(name: String, value: (any CustomStringConvertible)?)]) -> STOMPHeaders {
        var headers = STOMPHeaders()
        for (name, value) in options { if let value { headers.add(name, value.description) } }
        return headers
    }

    /// The headers for a kind of broker.
    func headers(for profile: STOMPBrokerProfile, ofSubscription: Bool) -> STOMPHeaders {
        switch profile.name {
        case STOMPBrokerProfile.rabbitMQ.name: rabbitMQ
        case STOMPBrokerProfile.activeMQ.name: ofSubscription ? activeMQ : [:]
        default: [:]
        }
    }
}

extension STOMPDestination: CustomStringConvertible {
    /// The name and the type of its values.
    public var description: String { "STOMPDestination<\(Value.self)>(\(OneLine.text(name)))" }
}
