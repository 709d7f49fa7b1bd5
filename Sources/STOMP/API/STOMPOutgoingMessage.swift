public import MessagingShell
import MessagingWire
import STOMPCore

/// A message to send.
///
/// `send("pizza", to: "/queue/orders")` sends `STOMPOutgoingMessage("pizza", to: "/queue/orders")`; the calls that have no
/// such short form take a message.
public struct STOMPOutgoingMessage: Sendable, Equatable {
    /// The body.
    public var body: [UInt8]
    /// The destination in the broker's notation.
    public var destination: String
    /// What the message asks of the broker.
    public var options: STOMPSendOptions
    /// How the destination's queue is declared at the broker, whose kind is known when the message is sent.
    var queue = STOMPQueueOptions()

    /// Makes a message of any sequence of bytes, such as an array or `Data`.
    public init(_ body: some Sequence<UInt8>, to destination: String, options: STOMPSendOptions = STOMPSendOptions()) {
        self.body = Array(body)
        self.destination = destination
        self.options = options
    }

    /// Makes a message of text in UTF-8.
    public init(_ text: String, to destination: String, options: STOMPSendOptions = STOMPSendOptions()) {
        self.init(Array(text.utf8), to: destination, options: options)
    }

    /// Makes a message of a value in a format, with its `content-type` unless `options` have another.
    ///
    /// - Parameters:
    ///   - value: the value in the body.
    ///   - coding: the format of the body. Default: JSON.
    ///   - destination: the destination in the broker's notation.
    ///   - options: the headers besides the destination.
    /// - Throws: ``STOMPError/Code/invalidRequest`` if the value cannot be encoded.
    @_disfavoredOverload
    public init(
        _ value: some Encodable & Sendable, as coding: some PayloadCoding = .json, to destination: String,
        options: STOMPSendOptions = STOMPSendOptions()
    ) throws(STOMPError) {
        let body = try coding.payload(of: value, throwing: STOMPError.self)
        self.init(body, to: destination, options: options.declaring(coding.contentType))
    }

    /// Makes a message of a value for a destination of its type, with the destination's format and declaration of its queue.
    ///
    ///     let receipt = try await client.sendForReceipt(STOMPOutgoingMessage(order, to: .orders))
    ///
    /// - Parameters:
    ///   - value: the value in the body.
    ///   - destination: a destination of this type.
    ///   - options: the `content-type` is the destination's unless it is set here.
    /// - Throws: ``STOMPError/Code/invalidRequest`` if the value cannot be encoded.
    public init<Value>(
        _ value: Value, to destination: STOMPDestination<Value>, options: STOMPSendOptions = STOMPSendOptions()
    ) throws(STOMPError) {
        let body = try destination.format.payload(of: value, for: destination.name, throwing: STOMPError.self)
        self.init(body, to: destination.name, options: options.declaring(destination.contentType))
        queue = destination.queue
    }

    /// Whether both have the same destination, body and options; destinations are compared by their bytes.
    public static func == (one: Self, other: Self) -> Bool {
        one.destination.hasSameBytes(as: other.destination) && one.body == other.body && one.options == other.options
            && one.queue == other.queue
    }

    /// The message with the headers that declare its queue at a kind of broker.
    func declaringQueue(at profile: STOMPBrokerProfile) -> STOMPOutgoingMessage {
        let headers = queue.headers(for: profile, ofSubscription: false)
        guard !headers.fields.isEmpty else { return self }
        var message = self
        message.options.headers.fields += headers.fields
        return message
    }
}

extension STOMPOutgoingMessage: CustomStringConvertible {
    /// Destination and the beginning of the body.
    public var description: String {
        "STOMPOutgoingMessage(\(OneLine.text(destination)), \(OneLine.payload(body[...])))"
    }
}
