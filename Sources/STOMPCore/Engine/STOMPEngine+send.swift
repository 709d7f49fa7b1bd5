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
        if transaction == nil, sendHead.holds(headers) {
            return try sendAgain(destination, body, receiptToken, omitsContentLength, at: now)
        }
        try Self.check(destination: destination)
        let receiptName = try checkHeaders(headers, ReservedHeaders.send, hasToken: receiptToken != nil)
        try checkBrokerLimits(headers, destination)
        if let transaction { try check(transaction) }
        if receiptToken != nil { try checkReceipts() }
        let number = receiptToken != nil && receiptName == nil ? receipts.nextNumber : 0
        let isCounted = Self.isCounted(body, omitsContentLength)
        let transactionName = transaction.flatMap { transactions[$0.number]?.name } ?? ""
        // COMMIT waits for it.
        let isAwaited = transaction != nil && profile.confirmsCommitEarly
        let added = isAwaited && receiptToken == nil ? makeTransactionReceipt() : nil
        try FrameWriter.writeFrame(
            into: &output, "SEND", STOMPEscaping(version), headRoom: FrameWriter.room(for: destination) &+ 96,
            headers: headers,
            body: body, writesContentLength: isCounted
        ) { writer in
            writer.put("destination", destination)
            if number != 0 { writer.put("receipt", number) }
            if let added { writer.put("receipt", added.id) }
            if let transaction { writer.put(transaction, named: transactionName) }
        }
        timing.wrote(at: now)
        if isAwaited, let transaction {
            transactionReceipts.add(added?.number ?? receipts.nextNumber, of: transaction.number)
        }
        if let receiptToken { addReceipt(receiptToken, receiptName, at: now) }
        if transaction == nil, receiptName == nil { sendHead.sent(headers, STOMPEscaping(version)) }
    }

    private mutating func makeTransactionReceipt() -> (number: UInt64, id: String) {
        // In place: the two tables are apart.
        guard receipts.hasNames else { return transactionReceipts.makeReceipt { _ in false } }
        let receipts = receipts
        return transactionReceipts.makeReceipt { receipts.isPending(name: Array($0.utf8)) }
    }

    @inline(__always)
    private static func check(destination: String) throws(STOMPUsageError) {
        guard !destination.isEmpty else {
            throw STOMPUsageError(.invalidOption, "A destination must not be empty; write for example /queue/orders.")
        }
    }

    @inline(__always)
    private static func isCounted(_ body: RawSpan, _ omitsContentLength: Bool) -> Bool {
        body.byteCount > 0 && (!omitsContentLength || body.firstOffset(of: 0, from: 0, to: body.byteCount) != nil)
    }

    /// Sends a message whose headers are those of the one before.
    private mutating func sendAgain(
        _ destination: String, _ body: RawSpan, _ receiptToken: UInt64?, _ omitsContentLength: Bool, at now: Int64
    ) throws(STOMPUsageError) {
        let isKnown = sendHead.isFor(destination)
        if !isKnown {
            try Self.check(destination: destination)
            try checkBrokerLimits(destination)
        }
        if receiptToken != nil { try checkReceipts() }
        let number = receiptToken == nil ? 0 : receipts.nextNumber
        // The head is read where it lies: a copy of its array would cost a counted reference.
        try FrameWriter.writeFrame(
            into: &output, STOMPEscaping(version),
            headRoom: isKnown ? sendHead.room : sendHead.room(for: destination), body: body,
            writesContentLength: Self.isCounted(body, omitsContentLength)
        ) { writer in
            if isKnown {
                sendHead.write(receipt: number, into: &writer)
            } else {
                sendHead.write(to: destination, receipt: number, into: &writer)
            }
        }
        timing.wrote(at: now)
        if let receiptToken { addReceipt(receiptToken, nil, at: now) }
        if !isKnown { sendHead.sent(to: destination, STOMPEscaping(version)) }
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

/// What the SEND frames of a connection that were sent last have in common, as it was checked and written then: most
/// programs send with the same headers, and many of them to one destination.
///
/// Written out when the same comes for the second time; what is longer than one KiB is not kept. Not copyable, because a
/// copy would cost a counted reference for each of its fields.
struct SendHead: ~Copyable, Sendable {
    private var headers = STOMPHeaders()
    private var destination = ""
    private var isKnown = false
    private var isWritten = false
    /// The number of frames that went to another destination than the one that is kept.
    private var others = 0
    /// The lines of the headers, and behind them, if the destination came again, a whole head: the command, the line of
    /// the destination and the same lines.
    private var bytes: [UInt8] = []
    /// Where the lines of the headers end and the whole head begins.
    private var lineBytes = 0
    /// Where the lines of the headers begin in the whole head.
    private var split = 0

    /// The bytes around a destination.
    private static let frame = 18
    /// The room of a line with the number of a receipt.
    private static let receiptRoom = FrameWriter.numberRoom + 8
    private static let largest = 1024
    /// One in so many frames to other destinations replaces the destination that is kept.
    private static let patience = 8

    /// Whether the lines are those of such headers.
    @inline(__always)
    func holds(_ headers: STOMPHeaders) -> Bool { isWritten && self.headers.isSame(as: headers) }

    /// Whether there is the beginning of a frame to that destination.
    @inline(__always)
    func isFor(_ destination: String) -> Bool {
        bytes.count > lineBytes && self.destination.hasSameBytes(as: destination)
    }

    /// What ``write(receipt:into:)`` writes at most.
    var room: Int { bytes.count &- lineBytes &+ Self.receiptRoom }

    /// What ``write(to:receipt:into:)`` writes at most.
    func room(for destination: String) -> Int {
        FrameWriter.room(for: destination) &+ Self.frame &+ Self.receiptRoom &+ lineBytes
    }

    /// Writes the whole head.
    ///
    /// - Parameter receipt: the number of the receipt, or 0.
    @inline(__always)
    func write(receipt: UInt64, into writer: inout FrameWriter) {
        // An array of UInt8 consists of bytes: nothing to reinterpret.
        let bytes = unsafe bytes.span.bytes
        guard receipt != 0 else { return writer.put(bytes.extracting(lineBytes...)) }
        writer.put(bytes.extracting(lineBytes..<split))
        writer.put("receipt", receipt)
        writer.put(bytes.extracting(split...))
    }

    /// The same for another destination.
    @inline(__always)
    func write(to destination: String, receipt: UInt64, into writer: inout FrameWriter) {
        writer.putSend(to: destination)
        if receipt != 0 { writer.put("receipt", receipt) }
        unsafe writer.put(bytes.span.bytes.extracting(..<lineBytes))
    }

    /// Headers were found good and written.
    mutating func sent(_ headers: STOMPHeaders, _ escaping: STOMPEscaping) {
        guard isKnown, self.headers.isSame(as: headers) else {
            self = SendHead()
            self.headers = headers
            isKnown = true
            return
        }
        let room = FrameWriter.room(for: headers)
        guard !isWritten, room <= Self.largest else { return }
        append(room, escaping) { writer in
            let fields = headers.fields.span
            for index in fields.indices { writer.put(fields[index]) }
        }
        lineBytes = bytes.count
        isWritten = true
    }

    /// A destination was found good and written.
    mutating func sent(to destination: String, _ escaping: STOMPEscaping) {
        guard self.destination.hasSameBytes(as: destination) else {
            // Not for each frame, since with many destinations the counted references would be paid for nothing.
            if others % Self.patience == 0 {
                if bytes.count > lineBytes { bytes.removeLast(bytes.count - lineBytes) }
                self.destination = destination
            }
            others &+= 1
            return
        }
        let room = FrameWriter.room(for: destination) &+ Self.frame
        guard room <= Self.largest else { return }
        append(room, escaping) { $0.putSend(to: destination) }
        split = bytes.count
        bytes += bytes[..<lineBytes]
    }

    private mutating func append(_ room: Int, _ escaping: STOMPEscaping, _ write: (inout FrameWriter) -> Void) {
        // Without room the array would set the count of the empty array, which all threads share.
        if room == 0 { return }
        bytes.append(addingCapacity: room) { span in
            // `count` is the number of bytes written; what `FrameWriter` claims is checked against the buffer.
            unsafe span.withUnsafeMutableBufferPointer { buffer, count in
                var writer = unsafe FrameWriter(buffer, escaping, replacesUnencodable: false)
                write(&writer)
                count = writer.count
            }
        }
    }

    /// Another connection may have other rules.
    mutating func forget() {
        self = SendHead()
    }
}
