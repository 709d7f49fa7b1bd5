// SEND: the hot operation of a client.

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
    ) throws(STOMPMisuse) {
        try requireConnected()
        guard !destination.isEmpty else {
            throw STOMPMisuse(.invalidOption, "A destination must not be empty; write for example /queue/orders.")
        }
        let receiptName = try checkHeaders(headers, ReservedHeaders.send, hasToken: receiptToken != nil)
        try checkBrokerLimits(headers, destination)
        if let transaction { try check(transaction) }
        if receiptToken != nil { try checkReceipts() }
        let number = receiptToken != nil && receiptName == nil ? receipts.nextNumber : 0
        let isCounted =
            body.byteCount > 0
            && (!omitsContentLength || body.firstOffset(of: 0, from: 0, to: body.byteCount) != nil)
        try output.writeFrame(
            "SEND", STOMPEscaping(version), headRoom: FrameWriter.room(for: destination) &+ 96, headers: headers,
            body: body, writesContentLength: isCounted
        ) { writer in
            writer.put("destination", destination)
            if number != 0 { writer.put("receipt", number) }
            if let transaction { writer.put(transaction) }
        }
        timing.wrote(at: now)
        if let receiptToken { addReceipt(receiptToken, receiptName, at: now) }
    }

    /// Sends a message whose body is an array.
    public mutating func send(
        destination: String, headers: STOMPHeaders = [:], body: [UInt8], receiptToken: UInt64? = nil,
        transaction: STOMPTransaction? = nil, omitsContentLength: Bool = false, at now: Int64
    ) throws(STOMPMisuse) {
        // Octets have no padding, so all of their bytes are initialised.
        try send(
            destination: destination, headers: headers, body: unsafe body.span.bytes, receiptToken: receiptToken,
            transaction: transaction, omitsContentLength: omitsContentLength, at: now)
    }
}
