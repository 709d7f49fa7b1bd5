public import STOMPCore
import Synchronization
import Transport
import Wire

/// The headers of a message besides its destination.
public struct STOMPSendOptions: Sendable {
    /// A MIME type, such as `application/json;charset=utf-8`.
    public var contentType: String?
    /// Whether the broker keeps the message over a restart. Default: the broker's.
    public var persistent: Bool?
    /// From 0 (lowest) to 9. Default: the broker's, which is 4.
    public var priority: Int?
    /// The time after which the broker drops the message, in whole milliseconds from when it is sent.
    public var expiresAfter: Duration?
    /// When the broker drops the message, in milliseconds since 1970; `expiresAfter` takes precedence. RabbitMQ gets the
    /// remaining time instead, as it expects.
    public var expiresAt: Int64?
    /// The destination for replies.
    public var replyTo: String?
    /// The identifier that a reply repeats.
    public var correlationID: String?
    /// Further headers, sent without change, in order.
    public var headers: STOMPHeaders
    /// Omits `content-length`, so that ActiveMQ and Artemis treat the message as text. Default: false.
    public var omitsContentLength = false

    /// Makes options; what is nil is not sent.
    public init(
        contentType: String? = nil, persistent: Bool? = nil, priority: Int? = nil, expiresAfter: Duration? = nil,
        replyTo: String? = nil, correlationID: String? = nil, headers: STOMPHeaders = [:]
    ) {
        self.contentType = contentType
        self.persistent = persistent
        self.priority = priority
        self.expiresAfter = expiresAfter
        self.replyTo = replyTo
        self.correlationID = correlationID
        self.headers = headers
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
        // Each before the further headers, of which the first would take precedence.
        var result: STOMPHeaders = [:]
        if let (left, at) = try expiry(loop) {
            let isRelative = expiringRelatively.load(ordering: .relaxed)
            if isRelative { result.add("expiration", "\(left)") } else { result.add("expires", "\(at)") }
        }
        if let contentType { result.add("content-type", contentType) }
        if let persistent { result.add("persistent", persistent ? "true" : "false") }
        if let priority { result.add("priority", "\(priority)") }
        if let replyTo { result.add("reply-to", replyTo) }
        if let correlationID { result.add("correlation-id", correlationID) }
        if result.fields.isEmpty { return headers }
        result.fields += headers.fields
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
