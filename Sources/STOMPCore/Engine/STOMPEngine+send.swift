// SEND: the hot operation of a client.

import Wire

extension STOMPEngine {
    /// Sends a message. With a `receiptToken`, a completion with that token follows.
    ///
    /// The headers are the user's own; those that the protocol writes itself are refused, except `receipt`, which
    /// together with a token chooses the receipt id. Throws before anything is written.
    ///
    /// - Parameter omitsContentLength: leaves `content-length` out where the body allows it; ActiveMQ then makes it a
    ///   text message.
    public mutating func send(
        destination: String, headers: STOMPHeaders = [:], body: RawSpan, receiptToken: UInt64? = nil,
        transaction: STOMPTransaction? = nil, omitsContentLength: Bool = false, at now: Int64
    ) throws(STOMPUsageError) {
        try requireConnected()
        if transaction == nil, sendHead.holds(destination, headers) {
            return try sendAgain(body, receiptToken, omitsContentLength, at: now)
        }
        guard !destination.isEmpty else {
            throw STOMPUsageError(.invalidOption, "A destination must not be empty; write for example /queue/orders.")
        }
        let receiptName = try checkHeaders(headers, ReservedHeaders.send, hasToken: receiptToken != nil)
        try checkBrokerLimits(headers, destination)
        if let transaction { try check(transaction) }
        if receiptToken != nil { try checkReceipts() }
        let number = receiptToken != nil && receiptName == nil ? receipts.nextNumber : 0
        let isCounted = Self.isCounted(body, omitsContentLength)
        try FrameWriter.writeFrame(
            into: &output, "SEND", STOMPEscaping(version), headRoom: FrameWriter.room(for: destination) &+ 96,
            headers: headers,
            body: body, writesContentLength: isCounted
        ) { writer in
            writer.put("destination", destination)
            if number != 0 { writer.put("receipt", number) }
            if let transaction { writer.put(transaction) }
        }
        timing.wrote(at: now)
        if let receiptToken { addReceipt(receiptToken, receiptName, at: now) }
        if transaction == nil, receiptName == nil { sendHead.sent(destination, headers, STOMPEscaping(version)) }
    }

    @inline(__always)
    private static func isCounted(_ body: RawSpan, _ omitsContentLength: Bool) -> Bool {
        body.byteCount > 0 && (!omitsContentLength || body.firstOffset(of: 0, from: 0, to: body.byteCount) != nil)
    }

    /// Sends a message whose head is that of the one before.
    private mutating func sendAgain(
        _ body: RawSpan, _ receiptToken: UInt64?, _ omitsContentLength: Bool, at now: Int64
    ) throws(STOMPUsageError) {
        if receiptToken != nil { try checkReceipts() }
        let number = receiptToken == nil ? 0 : receipts.nextNumber
        let isCounted = Self.isCounted(body, omitsContentLength)
        let bytes = sendHead.bytes
        let room = bytes.count &+ 32 &+ 2 &* FrameWriter.numberRoom &+ body.byteCount
        // An array of UInt8 consists of bytes: nothing to reinterpret.
        let head = unsafe bytes.span.bytes
        let split = sendHead.split
        output.append(addingCapacity: room) { span in
            // `count` is the number of bytes written; what `FrameWriter` claims is checked against the buffer.
            unsafe span.withUnsafeMutableBufferPointer { buffer, count in
                var writer = unsafe FrameWriter(buffer, .none, replacesUnencodable: false)
                if number == 0 {
                    writer.put(head)
                } else {
                    writer.put(head.extracting(0..<split))
                    writer.put("receipt", number)
                    writer.put(head.extracting(split...))
                }
                if isCounted { writer.put("content-length", UInt64(body.byteCount)) }
                writer.put(UInt8(ascii: "\n"))
                writer.put(body)
                writer.put(UInt8(0))
                count = writer.count
            }
        }
        timing.wrote(at: now)
        if let receiptToken { addReceipt(receiptToken, nil, at: now) }
    }

    /// Sends a message whose body is an array.
    public mutating func send(
        destination: String, headers: STOMPHeaders = [:], body: [UInt8], receiptToken: UInt64? = nil,
        transaction: STOMPTransaction? = nil, omitsContentLength: Bool = false, at now: Int64
    ) throws(STOMPUsageError) {
        // UInt8 has no padding, so all bytes are initialised.
        try send(
            destination: destination, headers: headers, body: unsafe body.span.bytes, receiptToken: receiptToken,
            transaction: transaction, omitsContentLength: omitsContentLength, at: now)
    }
}

extension STOMPEngine {
    /// The number of SEND frames without a receipt and outside transactions in a part of ``output`` that begins with a
    /// frame, those that end at `offset` or before it left out.
    public func countUnconfirmedSends(in frames: RawSpan, endingAfter offset: Int) -> Int {
        var count = 0
        var start = 0
        var scanner = FrameScanner()
        while true {
            start += scanner.lineEnds(in: frames, from: start).bytes
            // Our own frames: no limit was exceeded when they were written.
            guard (try? scanner.scan(frames, from: start, version: version, limits: .unbounded)) == true else {
                return count
            }
            start += scanner.frameEnd
            if scanner.command == .send, !scanner.receipt.isSet, !scanner.transaction.isSet, start > offset {
                count += 1
            }
            scanner.reset()
        }
    }
}

/// The head of the SEND frames of a connection that were sent last, as it was checked and written then: most programs
/// send to one destination with the same headers.
///
/// Written out when the same head comes for the second time; heads above one KiB are not kept.
struct SendHead: Sendable {
    private var destination = ""
    private var headers = STOMPHeaders()
    private var isKnown = false
    /// The command and the line of the destination, then the lines of the headers; empty until they come again.
    private(set) var bytes: [UInt8] = []
    /// Where the lines of the headers begin.
    private(set) var split = 0

    private static let largest = 1024

    /// Whether `bytes` are the head of such a frame.
    @inline(__always)
    func holds(_ destination: String, _ headers: STOMPHeaders) -> Bool {
        !bytes.isEmpty && isSame(destination, headers)
    }

    private func isSame(_ destination: String, _ headers: STOMPHeaders) -> Bool {
        self.destination.hasSameBytes(as: destination) && self.headers.isSame(as: headers)
    }

    /// A head was found good and written.
    mutating func sent(_ destination: String, _ headers: STOMPHeaders, _ escaping: STOMPEscaping) {
        guard isKnown, isSame(destination, headers) else {
            bytes = []
            self.destination = destination
            self.headers = headers
            isKnown = true
            return
        }
        let room = FrameWriter.room(for: destination) &+ FrameWriter.room(for: headers) &+ 32
        guard bytes.isEmpty, room <= Self.largest else { return }
        var split = 0
        bytes.append(addingCapacity: room) { span in
            // `count` is the number of bytes written; what `FrameWriter` claims is checked against the buffer.
            unsafe span.withUnsafeMutableBufferPointer { buffer, count in
                var writer = unsafe FrameWriter(buffer, escaping, replacesUnencodable: false)
                writer.put("SEND\n")
                writer.put("destination", destination)
                split = writer.count
                let fields = headers.fields.span
                for index in fields.indices { writer.put(fields[index]) }
                count = writer.count
            }
        }
        self.split = split
    }

    /// Another connection may have other rules.
    mutating func forget() {
        self = SendHead()
    }
}
