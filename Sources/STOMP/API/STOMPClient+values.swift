public import Messaging
import STOMPCore

extension STOMPClient {
    /// Sends a value in a format, with its `content-type` unless `options` have another; otherwise as
    /// ``send(_:to:options:in:)-([UInt8],_,_,_)``.
    ///
    /// - Throws: ``STOMPError``; ``STOMPError/Code/invalidRequest`` if the value cannot be encoded.
    public nonisolated(nonsending) func send(
        _ value: some Encodable & Sendable, as coding: some PayloadCoding, to destination: String,
        options: STOMPSendOptions = STOMPSendOptions(), in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        let body = try coding.payload(of: value, throwing: STOMPError.self)
        try await send(body, to: destination, options: options.declaring(coding.contentType), in: transaction)
    }

    /// Sends a value in a format and returns when the broker has processed it; otherwise as
    /// ``sendAndConfirm(_:to:options:in:)-([UInt8],_,_,_)``.
    ///
    /// - Throws: ``STOMPError``; ``STOMPError/Code/invalidRequest`` if the value cannot be encoded.
    public nonisolated(nonsending) func sendAndConfirm(
        _ value: some Encodable & Sendable, as coding: some PayloadCoding, to destination: String,
        options: STOMPSendOptions = STOMPSendOptions(), in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        let body = try coding.payload(of: value, throwing: STOMPError.self)
        try await sendAndConfirm(body, to: destination, options: options.declaring(coding.contentType), in: transaction)
    }

    /// Sends a value to a destination of its type.
    ///
    /// - Parameters:
    ///   - value: what is sent.
    ///   - destination: a destination of this type.
    ///   - options: the `content-type` is the destination's unless it is set here.
    ///   - transaction: makes it part of a transaction.
    /// - Throws: ``STOMPError``; ``STOMPError/Code/invalidRequest`` if the value cannot be encoded.
    public nonisolated(nonsending) func send<Value>(
        _ value: Value, to destination: STOMPDestination<Value>, options: STOMPSendOptions = STOMPSendOptions(),
        in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        let body = try destination.format.payload(of: value, for: destination.name, throwing: STOMPError.self)
        let options = options.declaring(destination.contentType)
        try await send(body, to: destination.name, options: options, in: transaction)
    }

    /// Sends a value to a destination of its type and returns when the broker has processed it.
    ///
    /// - Parameters:
    ///   - value: what is sent.
    ///   - destination: a destination of this type.
    ///   - options: the `content-type` is the destination's unless it is set here.
    ///   - transaction: makes it part of a transaction.
    /// - Throws: ``STOMPError``; ``STOMPError/Code/invalidRequest`` if the value cannot be encoded.
    public nonisolated(nonsending) func sendAndConfirm<Value>(
        _ value: Value, to destination: STOMPDestination<Value>, options: STOMPSendOptions = STOMPSendOptions(),
        in transaction: STOMPTransactionHandle? = nil
    ) async throws(STOMPError) {
        let body = try destination.format.payload(of: value, for: destination.name, throwing: STOMPError.self)
        let options = options.declaring(destination.contentType)
        try await sendAndConfirm(body, to: destination.name, options: options, in: transaction)
    }

    /// Subscribes to a destination and returns its messages with their values. A body that is not such a value is an
    /// element too.
    ///
    /// - Throws: as ``subscribe(to:acknowledgement:options:buffer:)``.
    public nonisolated(nonsending) func subscribe<Value>(
        to destination: STOMPDestination<Value>, acknowledgement: STOMPAckMode = .auto,
        options: STOMPSubscribeOptions = STOMPSubscribeOptions(), buffer: BufferPolicy = BufferPolicy()
    ) async throws(STOMPError) -> STOMPDecodedMessages<Value> {
        let subscription = try await subscribe(
            to: destination.name, acknowledgement: acknowledgement, options: options, buffer: buffer)
        return DecodedMessages(subscription) { [format = destination.format] in
            format.value(in: $0.body, mediaType: $0.mediaType)
        }
    }
}
