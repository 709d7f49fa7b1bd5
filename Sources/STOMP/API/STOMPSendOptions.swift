import MessagingWire
public import STOMPCore
import Synchronization
import Transport

/// The headers of a message besides its destination.
public struct STOMPSendOptions: Sendable, Equatable {
    /// A MIME type, such as `application/json;charset=utf-8`.
    public var contentType: String? {
        get { fixed.contentType }
        set { fixed.contentType = newValue }
    }
    /// Whether the broker keeps the message over a restart. Default: the broker's.
    public var persistent: Bool? {
        get { fixed.persistent }
        set { fixed.persistent = newValue }
    }
    /// From 0 (lowest) to 9. Default: the broker's, which is 4.
    public var priority: Int? {
        get { fixed.priority }
        set { fixed.priority = newValue }
    }
    /// The time after which the broker drops the message, in whole milliseconds from when it is sent.
    public var expiresAfter: Duration?
    /// When the broker drops the message, in milliseconds since 1970; `expiresAfter` takes precedence. RabbitMQ gets the
    /// remaining time instead, as it expects.
    public var expiresAt: Int64?
    /// The destination for replies.
    public var replyTo: String? {
        get { fixed.replyTo }
        set { fixed.replyTo = newValue }
    }
    /// The identifier that a reply repeats.
    public var correlationID: String? {
        get { fixed.correlationID }
        set { fixed.correlationID = newValue }
    }
    /// Further headers, sent without change, in order.
    public var headers: STOMPHeaders {
        get { fixed.headers }
        set { fixed.headers = newValue }
    }
    /// Omits `content-length`, so that ActiveMQ and Artemis treat the message as text. Default: false.
    public var omitsContentLength = false
    /// The headers that do not depend on the time.
    private struct Fixed: Sendable, Equatable {
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

    // The properties are computed, because observers are not called when an initializer in another module sets a property.
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

    /// The headers to send now.
    ///
    /// - Parameter loop: knows the time of day.
    func allHeaders(expiringRelatively: borrowing Atomic<Bool>, _ loop: EventLoop) throws(STOMPError) -> STOMPHeaders {
        if let priority, !(0...9).contains(priority) {
            throw .invalidRequest("The priority is \(priority). Use 0 (lowest) to 9.")
        }
        guard let (left, at) = try expiry(loop) else { return prepared }
        var result = prepared
        // First, so that it takes precedence over one of the further headers.
        let isRelative = expiringRelatively.load(ordering: .relaxed)
        let field = isRelative ? ("expiration", "\(left)") : ("expires", "\(at)")
        result.fields.insert(STOMPHeaders.Field(field.0, field.1), at: 0)
        return result
    }

    /// The milliseconds left, and the time of day.
    private func expiry(_ loop: EventLoop) throws(STOMPError) -> (left: Int64, at: Int64)? {
        if let expiresAfter {
            let left = expiresAfter.inNanoseconds / 1_000_000
            guard left > 0 else {
                throw .invalidRequest("A message cannot expire after \(expiresAfter). Use a millisecond or more.")
            }
            let (at, overflow) = loop.timeOfDay.addingReportingOverflow(left)
            return (left, overflow ? .max : at)
        }
        guard let expiresAt else { return nil }
        let (left, overflow) = expiresAt.subtractingReportingOverflow(loop.timeOfDay)
        guard !overflow, left > 0 else {
            throw .invalidRequest("The message has already expired at \(expiresAt) ms since 1970. Set a later time.")
        }
        return (left, expiresAt)
    }
}
