// SEND: the hot operation of a client.

import MessagingWire

extension STOMPEngine {
    /// Sends a message. With a `receiptToken`, a completion with that token follows.
    ///
    /// The headers are the user's own; those that the protocol writes itself are refused. Throws before anything is written.
    ///
    /// - Parameter omitsContentLength: leaves `content-length` out where the body allows it; ActiveMQ then makes it a
    ///   text message.
    public mutating func send(
        destination: String, headers: STOMPHeaders = [:], body: RawSpan, receiptToken: UInt64? = nil,
        transaction: STOMPTransaction? = nil, omitsContentLength: Bool = false, at now: Int64
    ) throws(STOMPUsageError) {
        try send(
            destination, headers, body, whole: nil, receiptToken, transaction, omitsContentLength: omitsContentLength,
            at: now)
    }

    /// - Parameter whole: the array that the body is, if it is one.
    @inline(__always)
    private mutating func send(
        _ destination: String, _ headers: STOMPHeaders, _ body: RawSpan, whole: [UInt8]?, _ receiptToken: UInt64?,
        _ transaction: STOMPTransaction?, omitsContentLength: Bool, at now: Int64
    ) throws(STOMPUsageError) {
        defer { assert(checkInvariants()) }
        try requireConnected()
        try require(!destination.isEmpty, else: .destinationIsEmpty())
        try checkHeaders(headers, ReservedHeaders.send)
        try checkBrokerLimits(headers, destination)
        if let transaction { try check(transaction) }
        if receiptToken != nil { try checkReceipts() }
        let number = receiptToken != nil ? receipts.nextNumber : 0
        let transactionName = transaction.flatMap { transactions[$0.number]?.name } ?? ""
        // COMMIT waits for it.
        let isAwaited = transaction != nil && profile.confirmsCommitEarly
        let added = isAwaited && receiptToken == nil ? transactionReceipts.makeReceipt() : nil
        let leavesOut = whole != nil && isLeftOut(body.byteCount)
        let before = output.count
        try FrameWriter.writeFrame(
            into: &output, "SEND", STOMPEscaping(version),
            headRoom: FrameWriter.room(for: destination) &+ FrameWriter.room(for: transactionName) &+ 96,
            headers: headers, body: body, leavesBodyOut: leavesOut,
            writesContentLength: Self.isCounted(body, omitsContentLength)
        ) { writer in
            writer.put("destination", destination)
            if number != 0 { writer.put("receipt", number) }
            if let added { writer.put("receipt", added.id) }
            if let transaction { writer.put(transaction, named: transactionName) }
        }
        ownBytes &+= output.count &- before
        if leavesOut, let whole {
            ownBytes &+= whole.count
            // The NUL at the end of the frame comes behind it.
            largePayload = LargePayload(whole, at: output.count - 1)
        }
        timing.wrote(at: now)
        if isAwaited, let transaction {
            transactionReceipts.add(added?.number ?? receipts.nextNumber, of: transaction.number)
        }
        if let receiptToken { addReceipt(receiptToken, at: now) }
    }

    /// Whether a body of so many bytes is left out of ``output``.
    @inline(__always)
    package func isLeftOut(_ count: Int) -> Bool { count >= leastPayloadLeftOut && largePayload == nil }

    /// Whether a body has a `content-length`. A body that holds a NUL needs it.
    @inline(__always)
    static func isCounted(_ body: RawSpan, _ omitsContentLength: Bool) -> Bool {
        body.byteCount > 0 && (!omitsContentLength || body.firstOffset(of: 0, from: 0, to: body.byteCount) != nil)
    }

    /// Sends a message whose body is an array.
    public mutating func send(
        destination: String, headers: STOMPHeaders = [:], body: [UInt8], receiptToken: UInt64? = nil,
        transaction: STOMPTransaction? = nil, omitsContentLength: Bool = false, at now: Int64
    ) throws(STOMPUsageError) {
        // UInt8 has no padding, so all bytes are initialised.
        try send(
            destination, headers, unsafe body.span.bytes, whole: body, receiptToken, transaction,
            omitsContentLength: omitsContentLength, at: now)
    }
}

extension STOMPEngine {
    /// The number of SEND frames without a receipt and outside transactions in a part of ``output`` that begins with a
    /// frame, those that end at `offset` or before it left out.
    ///
    /// - Parameter body: what one of the frames lacks. `offset` counts its bytes too.
    package func countUnconfirmedSends(
        in frames: RawSpan, leavingOut body: LargePayload? = nil, endingAfter offset: Int
    ) -> Int {
        var count = 0
        var start = 0
        var missing = 0
        // The frame that lacks its body is cut there, so that its NUL is not taken for a part of it.
        var end = body?.place ?? frames.byteCount
        var scanner = FrameScanner()
        while true {
            start += scanner.lineEnds(in: frames, from: start).bytes
            let known = frames.extracting(..<end)
            // Our own frames: no limit was exceeded when they were written.
            if (try? scanner.scan(known, from: start, version: version, limits: .unbounded)) == true {
                start += scanner.frameEnd
            } else if let body, missing == 0 {
                missing = body.bytes.count
                start = end + 1
                end = frames.byteCount
            } else {
                return count
            }
            if scanner.command == .send, !scanner.receipt.isSet, !scanner.transaction.isSet, start + missing > offset {
                count += 1
            }
            scanner.reset()
        }
    }
}
