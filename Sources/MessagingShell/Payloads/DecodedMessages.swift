/// A message and the value in it, or why it cannot be decoded.
///
/// The properties of the message can be read from here too: `element.topic` is `element.message.topic`. Elements also
/// have the methods that acknowledge their message, and in STOMP those that reject it or read one of its headers.
@dynamicMemberLookup
public struct DecodedMessage<Message: Sendable, Value: Sendable>: Sendable {
    /// The message as it arrived.
    public let message: Message
    /// The value in the message's payload, or why it cannot be decoded.
    public let result: Result<Value, DecodeFailure>

    package init(message: Message, result: Result<Value, DecodeFailure>) {
        self.message = message
        self.result = result
    }

    /// A member of the message.
    public subscript<Property>(dynamicMember property: KeyPath<Message, Property>) -> Property {
        message[keyPath: property]
    }

    /// The value; reading it throws ``DecodeFailure`` if the payload is not such a value.
    public var value: Value { get throws(DecodeFailure) { try result.get() } }

    /// The value, as ``value``.
    ///
    /// - Throws: ``DecodeFailure`` if the payload is not such a value.
    public func get() throws(DecodeFailure) -> Value { try result.get() }
}

/// The messages of a subscription with their values.
///
/// A payload that cannot be decoded is an element too, and does not end the sequence.
public struct DecodedMessages<Messages: AsyncSequence & Sendable, Value: Sendable>: AsyncSequence, Sendable
where Messages.Element: Sendable {
    public typealias Element = DecodedMessage<Messages.Element, Value>
    public typealias Failure = Messages.Failure

    /// The subscription below, to unsubscribe and for what the server answered.
    public let subscription: Messages
    private let decode: @Sendable (Messages.Element) -> Result<Value, DecodeFailure>

    package init(
        _ subscription: Messages, decode: @escaping @Sendable (Messages.Element) -> Result<Value, DecodeFailure>
    ) {
        self.subscription = subscription
        self.decode = decode
    }

    public func makeAsyncIterator() -> Iterator {
        Iterator(messages: subscription.makeAsyncIterator(), decode: decode)
    }

    /// The reader of the messages.
    public struct Iterator: AsyncIteratorProtocol {
        var messages: Messages.AsyncIterator
        let decode: @Sendable (Messages.Element) -> Result<Value, DecodeFailure>

        public mutating func next() async throws(Failure) -> Element? { try await next(isolation: nil) }

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(Failure) -> Element? {
            guard let message = try await messages.next(isolation: actor) else { return nil }
            return DecodedMessage(message: message, result: decode(message))
        }
    }
}

extension DecodedMessages where Messages: MessageSubscription {
    /// The number of messages that were dropped because the reader was slow; see ``MessageSubscription/droppedCount``.
    public var droppedCount: Int { subscription.droppedCount }

    /// Unsubscribes and waits for the server's answer, as the subscription does. This sequence ends, even if the call throws.
    public nonisolated(nonsending) func unsubscribe() async throws(Failure) { try await subscription.unsubscribe() }
}

extension DecodedMessage: CustomStringConvertible {
    /// The message, which shows the beginning of its payload.
    public var description: String { "\(message)" }
}

extension DecodedMessages: CustomStringConvertible {
    /// The subscription, with the type of its values.
    public var description: String { "\(subscription) as \(Value.self)" }
}
