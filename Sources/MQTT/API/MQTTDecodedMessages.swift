public import Messaging

/// A message and the value in it, or why there is none.
public struct MQTTDecodedMessage<Value: Sendable>: Sendable {
    /// The message as it came: its topic, captures, properties.
    public let message: MQTTMessage
    public let result: Result<Value, DecodeFailure>

    /// What the wildcards of the subscription's filter stand for; see ``MQTTMessage/captures``.
    public var captures: [String] { message.captures }

    /// The value.
    public func get() throws(DecodeFailure) -> Value { try result.get() }
}

/// The messages of a subscription with their values; made by ``MQTTSubscription/values(_:as:)``, and by subscribing to
/// an ``MQTTTopic``.
public struct MQTTDecodedMessages<Value: Sendable>: AsyncSequence, Sendable {
    public typealias Element = MQTTDecodedMessage<Value>
    public typealias Failure = MQTTError

    /// The subscription below, to end it and for what the server granted.
    public let subscription: MQTTSubscription
    let decode: @Sendable (MQTTMessage) -> Result<Value, DecodeFailure>

    public func makeAsyncIterator() -> Iterator {
        Iterator(messages: subscription.makeAsyncIterator(), decode: decode)
    }

    public struct Iterator: AsyncIteratorProtocol {
        var messages: MQTTSubscription.Iterator
        let decode: @Sendable (MQTTMessage) -> Result<Value, DecodeFailure>

        public mutating func next() async throws(MQTTError) -> MQTTDecodedMessage<Value>? {
            try await messages.next().map { MQTTDecodedMessage(message: $0, result: decode($0)) }
        }

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(MQTTError) -> MQTTDecodedMessage<
            Value
        >? {
            try await messages.next(isolation: actor).map { MQTTDecodedMessage(message: $0, result: decode($0)) }
        }
    }
}
