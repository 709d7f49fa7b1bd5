public import STOMPCore
import Transport

/// What a message asks of the broker beyond its body and destination.
public struct STOMPSendOptions: Sendable {
    /// A MIME type, such as `application/json;charset=utf-8`.
    public var contentType: String?
    /// Whether the broker keeps the message over a restart.
    public var persistent: Bool?
    /// 0 (least) to 9; 4 is what brokers take when nothing is said.
    public var priority: Int?
    /// After how long the broker drops the message, in whole milliseconds from now.
    public var expiresAfter: Duration?
    /// Where answers are to be sent.
    public var replyTo: String?
    /// Tells which answer belongs to which question.
    public var correlationID: String?
    /// Further headers, sent as they are, in order.
    public var headers: STOMPHeaders
    /// Leaves `content-length` out, which makes ActiveMQ and Artemis take the message for text.
    public var omitsContentLength = false

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

    /// The headers to send, once: expiry is a point in time.
    func allHeaders() throws(STOMPError) -> STOMPHeaders {
        var result: STOMPHeaders = [:]
        if let contentType { result.add("content-type", contentType) }
        if let persistent { result.add("persistent", persistent ? "true" : "false") }
        if let priority {
            guard (0...9).contains(priority) else {
                throw STOMPError(.invalidRequest, "the priority \(priority) is not between 0 (least) and 9")
            }
            result.add("priority", "\(priority)")
        }
        if let expiresAfter {
            let milliseconds = expiresAfter.inNanoseconds / 1_000_000
            guard milliseconds > 0 else {
                throw STOMPError(.invalidRequest, "a message cannot expire after \(expiresAfter): it must be positive")
            }
            result.add("expires", "\(WallClock.milliseconds + milliseconds)")
        }
        if let replyTo { result.add("reply-to", replyTo) }
        if let correlationID { result.add("correlation-id", correlationID) }
        result.fields += headers.fields
        return result
    }
}
