public import STOMPCore
import Synchronization
import Transport
import Wire

/// What a message asks of the broker beyond its body and destination.
public struct STOMPSendOptions: Sendable {
    /// A MIME type, such as `application/json;charset=utf-8`.
    public var contentType: String? {
        get { fixed.contentType }
        set { fixed.contentType = newValue }
    }
    /// Whether the broker keeps the message over a restart.
    public var persistent: Bool? {
        get { fixed.persistent }
        set { fixed.persistent = newValue }
    }
    /// 0 (least) to 9; 4 is what brokers take when nothing is said.
    public var priority: Int? {
        get { fixed.priority }
        set { fixed.priority = newValue }
    }
    /// After how long the broker drops the message, in whole milliseconds from when it is sent.
    public var expiresAfter: Duration?
    /// When the broker drops the message, in milliseconds since 1970; `expiresAfter` wins. RabbitMQ, which wants the
    /// time that is left, is told that.
    public var expiresAt: Int64?
    /// Where answers are to be sent.
    public var replyTo: String? {
        get { fixed.replyTo }
        set { fixed.replyTo = newValue }
    }
    /// Tells which answer belongs to which question.
    public var correlationID: String? {
        get { fixed.correlationID }
        set { fixed.correlationID = newValue }
    }
    /// Further headers, sent as they are, in order.
    public var headers: STOMPHeaders {
        get { fixed.headers }
        set { fixed.headers = newValue }
    }
    /// Leaves `content-length` out, which makes ActiveMQ and Artemis take the message for text.
    public var omitsContentLength = false
    /// All that does not depend on the time.
    private struct Fixed: Sendable {
        var contentType: String?
        var persistent: Bool?
        var priority: Int?
        var replyTo: String?
        var correlationID: String?
        var headers: STOMPHeaders = [:]

        func makeHeaders() -> STOMPHeaders {
            var result: STOMPHeaders = [:]
            if let contentType { result.add("content-type", contentType) }
            if let persistent { result.add("persistent", persistent ? "true" : "false") }
            if let priority { result.add("priority", "\(priority)") }
            if let replyTo { result.add("reply-to", replyTo) }
            if let correlationID { result.add("correlation-id", correlationID) }
            result.fields += headers.fields
            return result
        }
    }

    // Behind computed properties, whose setters run everywhere: an observer would be passed over where an initializer
    // of the user's own sets a property.
    private var fixed: Fixed { didSet { prepared = fixed.makeHeaders() } }
    /// Made once for the many messages that are sent with the same options.
    private var prepared: STOMPHeaders

    /// Makes options; what is nil is not sent.
    public init(
        contentType: String? = nil, persistent: Bool? = nil, priority: Int? = nil, expiresAfter: Duration? = nil,
        replyTo: String? = nil, correlationID: String? = nil, headers: STOMPHeaders = [:]
    ) {
        fixed = Fixed(
            contentType: contentType, persistent: persistent, priority: priority, replyTo: replyTo,
            correlationID: correlationID, headers: headers)
        prepared = fixed.makeHeaders()
        self.expiresAfter = expiresAfter
    }

    /// The options with this `content-type`, unless they have one.
    func declaring(_ contentType: String?) -> STOMPSendOptions {
        guard self.contentType == nil, let contentType else { return self }
        var options = self
        options.contentType = contentType
        return options
    }

    /// The headers to send, if they are the same each time and nothing is wrong with them: looked at where they lie.
    @inline(__always)
    var constantHeaders: STOMPHeaders? {
        expiresAfter == nil && expiresAt == nil && (0...9).contains(fixed.priority ?? 0) ? prepared : nil
    }

    /// The headers to send, once: expiry is a point in time.
    func allHeaders(expiringRelatively: borrowing Atomic<Bool>) throws(STOMPError) -> STOMPHeaders {
        if let priority, !(0...9).contains(priority) {
            throw STOMPError(
                .invalidRequest, "The priority \(priority) is out of range. Use a number from 0 (lowest) to 9.")
        }
        guard let (left, at) = try expiry() else { return prepared }
        var result = prepared
        // In front, where it wins over one among the further headers.
        let isRelative = expiringRelatively.load(ordering: .relaxed)
        let field = isRelative ? ("expiration", "\(left)") : ("expires", "\(at)")
        result.fields.insert(STOMPHeaders.Field(field.0, field.1), at: 0)
        return result
    }

    /// The milliseconds left, and the time of day.
    private func expiry() throws(STOMPError) -> (left: Int64, at: Int64)? {
        if let expiresAfter {
            let left = expiresAfter.inNanoseconds / 1_000_000
            guard left > 0 else {
                throw STOMPError(
                    .invalidRequest,
                    "A message cannot expire after \(expiresAfter). Set expiresAfter to one millisecond or more.")
            }
            let (at, overflow) = WallClock.milliseconds.addingReportingOverflow(left)
            return (left, overflow ? .max : at)
        }
        guard let expiresAt else { return nil }
        let (left, overflow) = expiresAt.subtractingReportingOverflow(WallClock.milliseconds)
        guard !overflow, left > 0 else {
            throw STOMPError(
                .invalidRequest,
                "The message has expired already: expiresAt, \(expiresAt) ms since 1970, is in the past. Set a later time."
            )
        }
        return (left, expiresAt)
    }
}
