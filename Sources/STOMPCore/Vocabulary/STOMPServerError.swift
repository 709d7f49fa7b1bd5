import MessagingWire

/// An ERROR frame. It ends the session, whether or not the server closes the connection (STOMP 1.2 "ERROR").
public struct STOMPServerError: Sendable, Hashable, CustomStringConvertible {
    /// The short text in the `message` header; empty if the header is missing.
    public var message: String
    /// The receipt id of the frame that failed, where the server names it.
    public var receiptID: String?
    public var headers: STOMPHeaders
    /// The server's explanation, as bytes.
    public var body: [UInt8]

    public init(_ frame: STOMPFrame) {
        message = frame.headers["message"] ?? ""
        receiptID = frame.headers["receipt-id"]
        headers = frame.headers
        body = frame.body
    }

    /// The first line of the body, for messages; where RabbitMQ gives the details.
    public var detail: String {
        let line = body.prefix(1_000).prefix { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") }
        return String(decoding: line, as: UTF8.self)
    }

    /// The description with a full stop, unless it ends with one or with another mark.
    var sentence: String {
        let text = description
        return text.utf8.last.map(".!?".utf8.contains) == true ? text : text + "."
    }

    /// `message` and `detail` on one line, shortened; says so if the server gave neither.
    public var description: String {
        let parts = detail.hasSameBytes(as: message) ? [message] : [message, detail]
        let text = parts.filter { !$0.isEmpty }.map { OneLine.text($0) }.joined(separator: ": ")
        return text.isEmpty ? "no reason given" : text
    }
}

extension STOMPServerError {
    /// Whether the message or the first kilobytes of the body hold one of the texts, ASCII case apart.
    func mentions(anyOf texts: [String]) -> Bool {
        func lowered(_ bytes: some Sequence<UInt8>) -> [UInt8] {
            bytes.map { (0x41...0x5A).contains($0) ? $0 | 0x20 : $0 }
        }
        let places = [lowered(message.utf8), lowered(body.prefix(4_096))]
        return texts.contains { text in
            let wanted = lowered(text.utf8)
            return places.contains { place in
                place.count >= wanted.count
                    && (0...(place.count - wanted.count)).contains { place[$0...].starts(with: wanted) }
            }
        }
    }
}
