public import STOMPCore

/// A message that arrived: a view into the batch it came with, cheap to copy and to pass on.
///
/// A message keeps the memory of its whole batch alive (up to what one read brought). Take ``bytes`` to keep one
/// message for long.
public struct STOMPMessage: Sendable {
    @usableFromInline let batch: STOMPBatch
    @usableFromInline let index: Int

    @inlinable
    init(batch: STOMPBatch, index: Int) {
        self.batch = batch
        self.index = index
    }

    /// The body, without a copy.
    @inlinable public var body: ArraySlice<UInt8> { batch.bytes[batch.records[index].body] }

    /// The body, copied out.
    @inlinable public var bytes: [UInt8] { Array(body) }

    /// The body as text, or nil if it is not UTF-8.
    public var text: String? { String(validating: body, as: UTF8.self) }

    /// All headers, decoded, in the order of the wire.
    public var headers: STOMPHeaders {
        let bytes = batch.bytes
        return reader.headers(in: bytes.span.bytes.extracting(batch.records[index].headers))
    }

    /// The value of the first header of that name.
    public func header(_ name: String) -> String? {
        let bytes = batch.bytes
        return reader.value(of: name, in: bytes.span.bytes.extracting(batch.records[index].headers))
    }

    /// Where the message was sent to; brokers may name it otherwise than it was subscribed.
    public var destination: String { header("destination") ?? "" }
    public var messageID: String? { header("message-id") }
    public var contentType: String? { header("content-type") }

    /// How many messages were dropped just before this one, because its receiver was slow.
    @inlinable public var droppedBefore: Int { index == 0 ? batch.gap : 0 }

    /// Tells the broker that the message is done with (ACK); in mode `client` together with all before it.
    ///
    /// - Parameter transaction: makes it part of a transaction.
    /// - Throws: ``STOMPError``: for a message of an `auto` subscription, or one that came over an earlier connection,
    ///   which the broker hands out again.
    public func acknowledge(in transaction: STOMPTransactionHandle? = nil) throws(STOMPError) {
        try answer(transaction) { engine, headers, now throws(STOMPUsageError) in
            try engine.ack(
                messageHeaders: headers, connection: batch.connection, transaction: transaction?.transaction, at: now)
        }
    }

    /// Tells the broker that the message was not dealt with (NACK); what becomes of it is the broker's decision.
    ///
    /// - Parameters:
    ///   - requeue: asks brokers that listen (RabbitMQ) to hand the message out again, or not; nil leaves it to them.
    ///   - transaction: makes it part of a transaction.
    public func reject(requeue: Bool? = nil, in transaction: STOMPTransactionHandle? = nil) throws(STOMPError) {
        try answer(transaction) { engine, headers, now throws(STOMPUsageError) in
            let more = requeue.map { engine.profile.nackHeaders(requeue: $0) } ?? [:]
            try engine.nack(
                messageHeaders: headers, connection: batch.connection, headers: more,
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
        try core.answer(bytes.span.bytes.extracting(batch.records[index].headers), body)
    }
}
