public import MessagingWire

// Exported, so that the members of these errors can be used wherever this module is imported.
@_exported public import struct MessagingWire.CodedError

/// Something that the peer must not do. It ends the connection.
public typealias STOMPProtocolError = CodedError<STOMPViolation>
/// The domain of ``STOMPProtocolError``.
public enum STOMPViolation {}

extension STOMPProtocolError.Code {
    /// The first line is no command.
    public static var malformedCommand: Self { Self("malformedCommand") }
    /// A header line without a colon, or with an empty name.
    public static var malformedHeader: Self { Self("malformedHeader") }
    /// A backslash sequence that this version does not define (STOMP 1.2 "Value Encoding").
    public static var undefinedEscape: Self { Self("undefinedEscape") }
    /// Headers are UTF-8 (STOMP 1.2 "Overview").
    public static var invalidUTF8: Self { Self("invalidUTF8") }
    /// `content-length` is no number of bytes.
    public static var invalidContentLength: Self { Self("invalidContentLength") }
    /// The byte after a body of declared length is not NUL.
    public static var missingTerminator: Self { Self("missingTerminator") }
    /// A body on a frame that may not have one.
    public static var unexpectedBody: Self { Self("unexpectedBody") }
    /// One of ``STOMPLimits`` is exceeded.
    public static var limitExceeded: Self { Self("limitExceeded") }
    /// A frame that is not allowed now.
    public static var unexpectedFrame: Self { Self("unexpectedFrame") }
    /// A frame without a header that it must have.
    public static var missingHeader: Self { Self("missingHeader") }
    /// A header whose value makes no sense.
    public static var invalidHeader: Self { Self("invalidHeader") }
    /// A version that was not offered, or none in common (STOMP 1.2 "Protocol Negotiation").
    public static var versionMismatch: Self { Self("versionMismatch") }
}

extension STOMPProtocolError {
    static var answersInTLS: STOMPProtocolError {
        STOMPProtocolError(
            .malformedCommand, "The peer answers in TLS. Use a URL with TLS (stomps://, wss://), or the port without.")
    }

    static func limit(_ what: String, _ most: Int, _ unit: String) -> STOMPProtocolError {
        STOMPProtocolError(
            .limitExceeded, "The other end sent \(what) of more than \(most) \(unit), which is the limit here.")
    }

    static func body(of name: String) -> STOMPProtocolError {
        STOMPProtocolError(.unexpectedBody, "\(name) has a body; only SEND, MESSAGE and ERROR may have one.")
    }

    static func malformedCommand(_ bytes: RawSpan, _ start: Int, _ end: Int) -> STOMPProtocolError {
        STOMPProtocolError(
            .malformedCommand,
            "A frame begins with \"\(excerpt(bytes, start, end))\", which is not a command. Check that the server speaks STOMP at this port, and whether it expects TLS."
        )
    }

    static func noColon(_ bytes: RawSpan, _ start: Int, _ end: Int) -> STOMPProtocolError {
        STOMPProtocolError(.malformedHeader, "A header line has no colon: \"\(excerpt(bytes, start, end))\".")
    }

    static func undefinedEscape(
        _ bytes: RawSpan, _ start: Int, _ end: Int, _ version: STOMPVersion
    ) -> STOMPProtocolError {
        STOMPProtocolError(
            .undefinedEscape,
            "A header holds \"\(excerpt(bytes, start, min(start + 2, end)))\", which STOMP \(version) does not define.")
    }

    /// At most 60 bytes as readable text: what is not printable ASCII becomes a dot.
    private static func excerpt(_ bytes: RawSpan, _ start: Int, _ end: Int) -> String {
        var text = ""
        for offset in start..<min(end, start + 60) {
            let byte = bytes.byte(at: offset)
            text.unicodeScalars.append((0x20...0x7E).contains(byte) ? Unicode.Scalar(byte) : ".")
        }
        return end - start > 60 ? text + "…" : text
    }
}

/// Something that our own side must not do. It is thrown before anything is written, and changes nothing.
public typealias STOMPUsageError = CodedError<STOMPUsage>
/// The domain of ``STOMPUsageError``.
public enum STOMPUsage {}

extension STOMPUsageError.Code {
    /// There is no connection, or CONNECTED has not come yet.
    public static var notConnected: Self { Self("notConnected") }
    /// DISCONNECT was sent; nothing may follow it.
    public static var disconnecting: Self { Self("disconnecting") }
    /// The operation belongs to the other role.
    public static var wrongRole: Self { Self("wrongRole") }
    /// A header name or value cannot be written in this version.
    public static var unencodableHeader: Self { Self("unencodableHeader") }
    /// A header that the operation writes itself.
    public static var reservedHeader: Self { Self("reservedHeader") }
    /// A frame that may not have a body was given one.
    public static var unexpectedBody: Self { Self("unexpectedBody") }
    /// The subscription id is in use.
    public static var duplicateSubscription: Self { Self("duplicateSubscription") }
    /// There is no such subscription.
    public static var unknownSubscription: Self { Self("unknownSubscription") }
    /// Messages of a subscription in mode `auto` are not acknowledged.
    public static var acknowledgingAutoSubscription: Self { Self("acknowledgingAutoSubscription") }
    /// The message carries nothing that an acknowledgement could name.
    public static var notAcknowledgeable: Self { Self("notAcknowledgeable") }
    /// The negotiated version does not have the operation.
    public static var unsupportedByVersion: Self { Self("unsupportedByVersion") }
    /// The transaction was ended, or its connection was.
    public static var transactionEnded: Self { Self("transactionEnded") }
    /// The message has been acknowledged or rejected before.
    public static var alreadyAnswered: Self { Self("alreadyAnswered") }
    /// The message came over a connection that is gone.
    public static var staleMessage: Self { Self("staleMessage") }
    /// A receipt id that is in flight, or looks like one of the engine's own.
    public static var invalidReceiptID: Self { Self("invalidReceiptID") }
    /// As many receipts are awaited as the configuration allows.
    public static var tooManyReceipts: Self { Self("tooManyReceipts") }
    /// A broker limit known from its profile would be exceeded.
    public static var brokerLimit: Self { Self("brokerLimit") }
    /// The broker, as its profile describes it, cannot do this.
    public static var unsupportedByBroker: Self { Self("unsupportedByBroker") }
    /// An option is out of its range.
    public static var invalidOption: Self { Self("invalidOption") }
}

extension STOMPUsageError {
    /// - Parameters:
    ///   - headers: those of the frame besides the ones that the engine writes.
    ///   - name: the header that has the problem if it is none of these.
    init(_ problem: FrameWriter.Problem, _ escaping: STOMPEscaping, in headers: STOMPHeaders, orNamed name: String) {
        let culprit = headers.first { field in
            switch problem {
            case .lineFeed:
                field.name.utf8.contains(UInt8(ascii: "\n")) || field.value.utf8.contains(UInt8(ascii: "\n"))
            case .endsWithReturn: field.value.utf8.last == UInt8(ascii: "\r")
            case .colonInName: field.name.utf8.contains(UInt8(ascii: ":"))
            case .emptyName: false
            }
        }
        let header = "The header '\(OneLine.text(culprit?.name ?? name))'"
        let place =
            switch escaping {
            case .none: "CONNECT and STOMP 1.0 escape nothing"
            case .v11: "STOMP 1.1 has no escape for it"
            case .v12: "STOMP 1.2 has no form for it"
            }
        let text =
            switch problem {
            case .lineFeed: "\(header) holds a line feed"
            case .endsWithReturn: "\(header) ends with a carriage return"
            case .colonInName: "\(header) has a colon in its name"
            case .emptyName: "A header has an empty name"
            }
        self.init(.unencodableHeader, "\(text), and \(place). Change the header or put the text into the body.")
    }
}
