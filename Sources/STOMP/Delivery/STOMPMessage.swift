public import MessagingShell
public import MessagingWire
public import STOMPCore

/// A received message: a view into the batch that it arrived in, cheap to copy and to pass on.
///
/// A message keeps the memory of its whole batch alive, up to the bytes of one read. To keep a single message for long,
/// keep its ``bytes`` instead.
public struct STOMPMessage: ReplyMessage {
    @usableFromInline let batch: STOMPBatch
    @usableFromInline let index: Int

    @inlinable
    init(batch: STOMPBatch, index: Int) {
        self.batch = batch
        self.index = index
    }

    /// The body, without a copy.
    @inlinable public var body: ArraySlice<UInt8> { batch.bytes[batch.records[index].body] }

    /// A copy of the body.
    @inlinable public var bytes: [UInt8] {
        let all = batch.bytes
        return [UInt8](copying: batch.records[index].body, of: all.span)
    }

    /// The body as text, or nil if it is not UTF-8.
    public var text: String? { String(validating: body, as: UTF8.self) }

    /// All headers, decoded, in the order in which they were sent.
    public var headers: STOMPHeaders {
        let bytes = batch.bytes
        return unsafe reader.headers(in: bytes.span.bytes.extracting(batch.records[index].headers))
    }

    /// The value of the first header of that name.
    public func header(_ name: String) -> String? {
        let bytes = batch.bytes
        return unsafe reader.value(of: name, in: bytes.span.bytes.extracting(batch.records[index].headers))
    }

    /// The destination that the message was sent to; a broker may write it differently from the subscription's.
    public var destination: String {
        batch.text(in: batch.records[index].destination)
    }
    /// The `message-id` header.
    public var messageID: String? {
        let range = batch.records[index].messageID
        return range.isEmpty ? header("message-id") : batch.text(in: range)
    }
    /// The `content-type` header.
    public var contentType: String? {
        let range = batch.records[index].contentType
        return range.isEmpty ? header("content-type") : batch.text(in: range)
    }

    /// How many messages were dropped just before this one because its receiver was slow.
    @inlinable public var droppedBefore: Int { index == 0 ? batch.gap : 0 }

    /// Whether the broker has delivered the message before, as the header `redelivered:true` of ActiveMQ, Artemis, RabbitMQ and
    /// the loopback broker tells. A hint: the first delivery may have ended before anybody worked on the message.
    public var isRedelivered: Bool { header("redelivered")?.utf8.elementsEqual("true".utf8) ?? false }

    /// Whether the connection that brought the message has ended. Unless it was answered before, the broker delivers it again: skip it
    /// instead of working on it in vain. False for messages of an `auto` subscription, which are not delivered again.
    ///
    /// The connection may end at any time afterwards; ``acknowledge(in:)`` then throws ``STOMPError/Code/stale``.
    public var isStale: Bool {
        guard batch.firstNumber != nil else { return false }
        return batch.core.map { $0.link.perform { $0.engine.isStale(batch.connection) } } ?? true
    }

    @usableFromInline package var correlation: [UInt8]? { header("correlation-id").map { Array($0.utf8) } }

    public var content: ArraySlice<UInt8> { body }
    public var mediaType: String? { contentType.map { STOMPContentType($0).mediaType } }

    /// Acknowledges the message (ACK); in mode `client` together with all before it.
    ///
    /// - Parameter transaction: the transaction that the acknowledgement is part of.
    /// - Throws: ``STOMPError``: ``STOMPError/Code/invalidRequest`` for a message of an `auto` subscription or of one that
    ///   has ended, and for a message that has been acknowledged or rejected before; ``STOMPError/Code/stale`` for one of an
    ///   earlier connection, which the broker delivers again. Nothing is sent then.
    public func acknowledge(in transaction: STOMPTransactionHandle? = nil) throws(STOMPError) {
        try answer(transaction) { engine, headers, now throws(STOMPUsageError) in
            try engine.ack(
                messageHeaders: headers, connection: batch.connection, message: batch.number(at: index),
                transaction: transaction?.transaction, at: now)
        }
    }

    /// Rejects the message (NACK); the broker decides what becomes of it.
    ///
    /// - Parameters:
    ///   - requeue: whether RabbitMQ or the loopback broker delivers the message again; nil, the default, leaves it to the
    ///     broker. With others false has no effect.
    ///   - transaction: the transaction that the rejection is part of.
    /// - Throws: as ``acknowledge(in:)``; ``STOMPError/Code/unsupportedByBroker`` if `requeue` is true and the broker is known
    ///   not to put a rejected message back, as ActiveMQ, which would move it to its dead-letter queue. Nothing is sent then.
    public func reject(requeue: Bool? = nil, in transaction: STOMPTransactionHandle? = nil) throws(STOMPError) {
        try answer(transaction) { engine, headers, now throws(STOMPUsageError) in
            try engine.profile.checkRequeue(requeue)
            let more = requeue.map { engine.profile.nackHeaders(requeue: $0) } ?? [:]
            try engine.nack(
                messageHeaders: headers, connection: batch.connection, message: batch.number(at: index), headers: more,
                transaction: transaction?.transaction, at: now)
        }
    }

    private var reader: STOMPHeaderReader { STOMPHeaderReader(version: batch.version) }

    private func answer(
        _ transaction: STOMPTransactionHandle?,
        _ body: (inout STOMPEngine, RawSpan, Int64) throws(STOMPUsageError) -> Void
    ) throws(STOMPError) {
        guard let core = batch.core else { throw .disconnectedByUser }
        let bytes = batch.bytes
        unsafe try core.sender.answer(bytes.span.bytes.extracting(batch.records[index].headers), body)
    }

    /// The same message with another body, for a ``STOMPConfiguration/messageHook`` that decompresses or decrypts.
    public func with(body: some Sequence<UInt8>) -> STOMPMessage {
        STOMPMessage(batch: batch.with(Array(body), at: index), index: 0)
    }

    /// Destination, number and the beginning of the body.
    public var description: String {
        let id = messageID.map { ", id \(OneLine.text($0))" } ?? ""
        return "STOMPMessage(\(OneLine.text(destination))\(id), \(OneLine.payload(body)))"
    }
}

/// Sees each message of a ``STOMPClient``; see ``STOMPConfiguration/messageHook``.
public typealias STOMPMessageHook = MessageHook<STOMPOutgoingMessage, STOMPMessage, STOMPError>
