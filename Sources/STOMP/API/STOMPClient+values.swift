public import Messaging
import STOMPCore

extension STOMPClient {
    /// Sends a value in a format, with its `content-type`; otherwise as
    /// ``send(_:to:options:in:)-([UInt8],_,_,_)``.
    public nonisolated(nonsending) func send(
        _ value: some Encodable & Sendable, as coding: some PayloadCoding, to destination: String,
        options: STOMPSendOptions = STOMPSendOptions(), in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        let (body, options) = try Self.encode(value, coding, options)
        try await send(body, to: destination, options: options, in: transaction)
    }

    /// Sends a value in a format, with its `content-type`, and returns when the broker has processed it.
    public nonisolated(nonsending) func sendAndConfirm(
        _ value: some Encodable & Sendable, as coding: some PayloadCoding, to destination: String,
        options: STOMPSendOptions = STOMPSendOptions(), in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        let (body, options) = try Self.encode(value, coding, options)
        try await sendAndConfirm(body, to: destination, options: options, in: transaction)
    }

    private static func encode<Value: Encodable>(
        _ value: Value, _ coding: some PayloadCoding, _ options: STOMPSendOptions
    ) throws(STOMPError) -> ([UInt8], STOMPSendOptions) {
        var options = options
        options.contentType = options.contentType ?? coding.contentType
        do {
            return (try coding.encode(value), options)
        } catch {
            throw STOMPError(
                .invalidRequest, "the \(Value.self) cannot be written as \(coding.contentType): \(error)",
                underlying: error)
        }
    }
}

extension STOMPMessage {
    /// The value in the body. A message that says another `content-type` is not tried; one that says none is.
    public func value<Value: Decodable>(
        _ type: Value.Type = Value.self, as coding: some PayloadCoding
    ) throws(DecodeFailure) -> Value {
        let mediaType = contentType.map { STOMPContentType($0).mediaType }
        return try coding.value(of: type, from: body, mediaType: mediaType).get()
    }
}

extension STOMPSubscription {
    /// The messages with their values. What cannot be decoded is an element too, and what comes after it follows.
    public func values<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, as coding: some PayloadCoding
    ) -> STOMPDecodedMessages<Value> {
        STOMPDecodedMessages(subscription: self, coding: coding)
    }
}

/// A message and the value in it, or why there is none.
public struct STOMPDecodedMessage<Value: Sendable>: Sendable {
    public let message: STOMPMessage
    public let result: Result<Value, DecodeFailure>

    /// The value.
    public func get() throws(DecodeFailure) -> Value { try result.get() }
}

/// The messages of a subscription with their values; made by ``STOMPSubscription/values(_:as:)``.
public struct STOMPDecodedMessages<Value: Decodable & Sendable>: AsyncSequence, Sendable {
    public typealias Failure = STOMPError

    let subscription: STOMPSubscription
    let coding: any PayloadCoding

    public func makeAsyncIterator() -> Iterator {
        Iterator(messages: subscription.makeAsyncIterator(), coding: coding)
    }

    public struct Iterator: AsyncIteratorProtocol {
        var messages: STOMPSubscription.Iterator
        let coding: any PayloadCoding

        public mutating func next() async throws(STOMPError) -> STOMPDecodedMessage<Value>? {
            try await messages.next().map { element($0) }
        }

        public mutating func next(isolation actor: isolated (any Actor)?) async throws(STOMPError)
            -> STOMPDecodedMessage<
                Value
            >?
        {
            try await messages.next(isolation: actor).map { element($0) }
        }

        private func element(_ message: STOMPMessage) -> STOMPDecodedMessage<Value> {
            let result = Result { () throws(DecodeFailure) in try message.value(Value.self, as: coding) }
            return STOMPDecodedMessage(message: message, result: result)
        }
    }
}
