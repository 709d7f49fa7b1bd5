import MessagingShell

/// Text as JSON writes it (RFC 8259), and frames as the page reads them, each on one line.
package enum JSON {
    /// Bytes of a frame that the page shows.
    private static let shownBytes = 1024
    /// Bytes of a frame's note in a row of the page's table, and of its payload in the tree of topics.
    private static let longestNote = 160

    /// A row of the table.
    static func row(_ frame: LoggedFrame, answer: FrameExchanges.Answer?, isReconnect: Bool) -> String {
        let payload = frame.payloadCount > 0 && frame.carriesMessage ? quoted(shortened(frame.payload ?? "")) : "null"
        var row = "{" + head(frame) + ",\"note\":\(quoted(shortened(frame.note))),\"payload\":\(payload)"
        if frame.carriesMessage { row += ",\"message\":true" }
        if frame.exchange.asks != nil { row += ",\"asks\":true" }
        if isReconnect { row += ",\"reconnect\":true" }
        if let answer { row += ",\"answers\":\(answer.number),\"after\":\(answer.duration / 1000)" }
        return row + "}"
    }

    /// Everything about one frame.
    static func details(_ frame: LoggedFrame) -> String {
        let fields = frame.fields.map { "[\(quoted($0.name)),\(quoted($0.value))]" }
        let digits = frame.bytes.prefix(shownBytes).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        return """
            {\(head(frame)),"protocol":\(quoted(frame.protocolName)),\
            "payload":\(frame.payload.map(quoted) ?? "null"),"payloadSize":\(frame.payloadCount),\
            "bytes":"\(digits)","fields":[\(fields.joined(separator: ","))]}
            """
    }

    private static func head(_ frame: LoggedFrame) -> String {
        """
        "number":\(frame.number),"time":\(frame.time),"sent":\(frame.direction == .sent),\
        "client":\(quoted(frame.client)),"connection":\(frame.connection),"type":\(quoted(frame.type)),\
        "size":\(frame.size),"destination":\(frame.destination.map(quoted) ?? "null"),\
        "qos":\(frame.qos.map(String.init) ?? "null")
        """
    }

    private static func shortened(_ text: String) -> String {
        text.utf8.count <= longestNote ? text : String(decoding: text.utf8.prefix(longestNote), as: UTF8.self) + "…"
    }

    /// A text in quotation marks, with everything escaped that may not be between them.
    package static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"": result += "\\\""
            case "\\": result += "\\\\"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                result += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
