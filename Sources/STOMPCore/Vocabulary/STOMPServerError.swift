import Wire

/// An ERROR frame. It ends the session, whether or not the server closes the connection (STOMP 1.2 "ERROR").
public struct STOMPServerError: Sendable, Hashable, CustomStringConvertible {
    /// The short text in the `message` header; empty when there is none.
    public var message: String
    /// The receipt id of the frame that failed, where the server names it.
    public var receiptID: String?
    public var headers: STOMPHeaders
    /// What the server says at length, as bytes.
    public var body: [UInt8]

    public init(_ frame: STOMPFrame) {
        message = frame.headers["message"] ?? ""
        receiptID = frame.headers["receipt-id"]
        headers = frame.headers
        body = frame.body
    }

    /// The first line of the body, for messages; RabbitMQ says there what `message` does not.
    public var detail: String {
        let line = body.prefix(1_000).prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
        return String(decoding: line, as: UTF8.self)
    }

    /// The description with a full stop, unless it ends with one or with another mark.
    var sentence: String {
        guard let last = description.utf8.last else { return "no reason given." }
        return ".!?".utf8.contains(last) ? description : description + "."
    }

    public var description: String {
        detail.isEmpty || detail.hasSameBytes(as: message) ? message : "\(message): \(detail)"
    }
}
