// SUBSCRIBE, UNSUBSCRIBE, ACK, NACK.

extension STOMPEngine {
    /// Subscribes. Messages carry `token`; they may come before the receipt does. The first one that names the subscription
    /// proves that SUBSCRIBE was accepted, and completes the wait for the receipt. A wait that has timed out though the caller has
    /// read for less than that time is completed once more: by the receipt, or when the caller has read for long enough.
    ///
    /// The id is always sent, in 1.0 too. Throws before anything is written.
    ///
    /// - Parameters:
    ///   - headers: the user's own. With a `receiptToken`, `receipt` chooses the id of the receipt, on this frame only.
    ///   - isAnswered: whether its messages will be acknowledged or rejected, unless in mode `auto`. Default: true.
    public mutating func subscribe(
        id: String, destination: String, acknowledgement: STOMPAckMode = .auto, headers: STOMPHeaders = [:],
        token: UInt64, receiptToken: UInt64? = nil, isAnswered: Bool = true, at now: Int64
    ) throws(STOMPUsageError) {
        defer { assert(checkInvariants()) }
        try requireConnected()
        try require(token != STOMPMessageRecord.unmatched, else: .tokenIsReserved(token))
        try require(
            acknowledgement != .clientIndividual || version.hasNegativeAcknowledgement, else: .hasNoClientIndividual)
        let wireID = wireForm(id)
        try require(subscriptions.index(of: wireID) == nil, else: .subscriptionExists(id))
        try checkHeaders(headers, ReservedHeaders.subscribe)
        let receiptName = try chosenReceipt(headers, hasToken: receiptToken != nil)
        if receiptToken != nil { try requireReceipts() }
        if isAnswered, acknowledgement != .auto, profile.acknowledgesWholeConnection {
            try checkOthers(beside: acknowledgement)
        }
        try checkBrokerLimits(headers, destination)
        let number = receiptToken != nil && receiptName == nil ? receipts.nextNumber : 0
        try FrameWriter.writeFrame(
            into: &output, "SUBSCRIBE", STOMPEscaping(version),
            headRoom: FrameWriter.room(for: id) + FrameWriter.room(for: destination) + 96, headers: headers
        ) { writer in
            writer.put("id", id)
            writer.put("destination", destination)
            writer.put("ack:")
            writer.put(
                acknowledgement == .auto ? "auto\n" : acknowledgement == .client ? "client\n" : "client-individual\n")
            if number != 0 { writer.put("receipt", number) }
        }
        timing.wrote(at: now)
        subscriptions.insert(
            .init(
                id: wireID, destination: destination, ackMode: acknowledgement, token: token,
                receipt: receiptToken == nil ? 0 : receipts.nextNumber, isAnswered: isAnswered))
        if let receiptToken { addReceipt(receiptToken, receiptName, at: now) }
    }

    /// Registers a subscription that the broker creates implicitly; no SUBSCRIBE is sent. RabbitMQ does so for reply queues,
    /// whose messages carry the `reply-to` of the SEND as their subscription. They are not acknowledged.
    public mutating func expectMessages(
        subscription id: String, destination: String, token: UInt64
    ) throws(STOMPUsageError) {
        defer { assert(checkInvariants()) }
        try requireConnected()
        let wireID = wireForm(id)
        try require(subscriptions.index(of: wireID) == nil, else: .subscriptionExists(id))
        subscriptions.insert(.init(id: wireID, destination: destination, ackMode: .auto, token: token))
    }

    /// Unsubscribes. Messages that still come are reported as unmatched. Returns how many of those that came were neither
    /// acknowledged nor rejected: ``STOMPBrokerProfile/unanswered`` says who gets them.
    ///
    /// - Parameter headers: RabbitMQ requires those of a durable subscription again.
    @discardableResult
    public mutating func unsubscribe(
        id: String, headers: STOMPHeaders = [:], receiptToken: UInt64? = nil, at now: Int64
    ) throws(STOMPUsageError) -> Int {
        defer { assert(checkInvariants()) }
        try requireConnected()
        guard let index = subscriptions.index(of: wireForm(id)) else { throw .subscriptionIsUnknown(id) }
        try writeFrame(
            "UNSUBSCRIBE", headers, ReservedHeaders.unsubscribe, room: FrameWriter.room(for: id), receiptToken,
            boundsReceipts: false, at: now
        ) { $0.put("id", id) }
        let ended = subscriptions.remove(at: index)
        if ended.isAcknowledged, ended.unanswered.count > 0 { hasLeftMessages = true }
        return ended.unanswered.count
    }

    /// The number of messages of this connection that are neither acknowledged nor rejected; those of mode `auto` need not be.
    package var unansweredCount: Int { subscriptions.entries.reduce(0) { $0 + $1.unanswered.count } }

    /// The number of messages that the subscription received on this connection, which is the number of its next one:
    /// ``STOMPMessageNumber``. Nil for an unknown subscription, and in mode `auto`.
    package mutating func messagesReceived(bySubscription id: String) -> UInt64? {
        guard let index = subscriptions.index(of: wireForm(id)) else { return nil }
        let entry = subscriptions.entries[index]
        return entry.ackMode == .auto ? nil : entry.unanswered.next
    }

    /// Deletes a durable subscription that has no consumer any more.
    package mutating func deleteDurable(
        id: String, headers: STOMPHeaders, receiptToken: UInt64? = nil, at now: Int64
    ) throws(STOMPUsageError) {
        try requireConnected()
        try writeFrame(
            "UNSUBSCRIBE", headers, ReservedHeaders.unsubscribe, room: FrameWriter.room(for: id), receiptToken,
            boundsReceipts: false, at: now
        ) { $0.put("id", id) }
    }

    /// Acknowledges a message: all of its subscription up to it in mode `client`, it alone in `clientIndividual`.
    ///
    /// - Parameters:
    ///   - messageHeaders: the header lines of the MESSAGE, as ``STOMPMessageRecord/headers`` bounds them. The headers
    ///     that name the message are copied from there byte by byte: `message-id` in 1.0, `subscription` too in 1.1,
    ///     `ack` in 1.2.
    ///   - connection: the engine's ``connection`` when the message came.
    ///   - message: which message of its subscription it is. With it a second answer is refused; without it, it is written.
    public mutating func ack(
        messageHeaders: RawSpan, connection: UInt32, message: STOMPMessageNumber? = nil, headers: STOMPHeaders = [:],
        transaction: STOMPTransaction? = nil, receiptToken: UInt64? = nil, at now: Int64
    ) throws(STOMPUsageError) {
        defer { assert(checkInvariants()) }
        let place = try acknowledge(
            "ACK", messageHeaders, connection, message, headers, transaction, receiptToken, at: now)
        if let message, let place { answered(message, at: place, in: transaction) }
    }

    /// Refuses a message, or in mode `client` all of its subscription up to it, unless the broker rejects one by one
    /// (``STOMPBrokerProfile/rejectsOneByOne``). The broker decides what becomes of it: RabbitMQ hands it out again at
    /// once. From 1.1 on.
    ///
    /// - Throws: ``STOMPUsageError/Code/unsupportedByBroker`` where it would have the effect of ACK.
    public mutating func nack(
        messageHeaders: RawSpan, connection: UInt32, message: STOMPMessageNumber? = nil, headers: STOMPHeaders = [:],
        transaction: STOMPTransaction? = nil, receiptToken: UInt64? = nil, at now: Int64
    ) throws(STOMPUsageError) {
        defer { assert(checkInvariants()) }
        try require(version.hasNegativeAcknowledgement, else: .hasNoNack)
        try require(!profile.acknowledgesRejected, else: .acknowledgesRejected(profile))
        let place = try acknowledge(
            "NACK", messageHeaders, connection, message, headers, transaction, receiptToken, at: now)
        if let message, let place { answered(message, at: place, alone: profile.rejectsOneByOne, in: transaction) }
    }

    /// Whether messages that came over a connection, by its number, can no longer be answered. Without a session they are stale,
    /// too: waiting for the next one would not help.
    package func isStale(_ connection: UInt32) -> Bool {
        role == .client && !(connection == self.connection && phase.isOpen)
    }

    /// Writes ACK or NACK. Returns the place of the subscription of a message with a number.
    private mutating func acknowledge(
        _ command: StaticString, _ message: RawSpan, _ connection: UInt32, _ number: STOMPMessageNumber?,
        _ headers: STOMPHeaders, _ transaction: STOMPTransaction?, _ receiptToken: UInt64?, at now: Int64
    ) throws(STOMPUsageError) -> Int? {
        try require(!isStale(connection), else: .messageIsStale)
        try requireConnected()
        if let transaction { try check(transaction) }
        let reader = STOMPHeaderReader(version: version)
        let subscription = reader.rawValue(of: "subscription", in: message)
        if let subscription {
            try checkAckMode(message, subscription)
        }
        let place = try number.map { (number) throws(STOMPUsageError) in
            try unansweredPlace(of: number, in: transaction)
        }
        let naming = reader.rawValue(of: version == .v12 ? "ack" : "message-id", in: message)
        guard let naming, version != .v11 || subscription != nil else { throw .messageHasNoName(in: version) }
        let version = version
        let transactionName = transaction.flatMap { transactions[$0.number]?.name } ?? ""
        let receiptNumber = receipts.nextNumber
        try writeFrame(
            command, headers, ReservedHeaders.acknowledge,
            room: message.byteCount + FrameWriter.room(for: transactionName), receiptToken, at: now
        ) { writer in
            writer.put(version == .v12 ? "id:" : "message-id:")
            writer.put(message.extracting(naming))
            writer.put(UInt8(ascii: "\n"))
            if version == .v11, let subscription {
                writer.put("subscription:")
                writer.put(message.extracting(subscription))
                writer.put(UInt8(ascii: "\n"))
            }
            if let transaction { writer.put(transaction, named: transactionName) }
        }
        if let transaction, receiptToken != nil, profile.confirmsCommitEarly {
            transactionReceipts.add(receiptNumber, of: transaction.number)
        }
        return place
    }

    /// A message is answered, in mode `client` with those before it unless it is `alone`.
    private mutating func answered(
        _ message: STOMPMessageNumber, at place: Int, alone: Bool = false, in transaction: STOMPTransaction?
    ) {
        subscriptions.answer(message.number, at: place, alone: alone, in: transaction?.number)
        if let transaction { transactions[transaction.number]?.answers.append(message) }
    }

    /// The place of the subscription of a message that is unanswered, and that may be answered in this transaction.
    private func unansweredPlace(
        of message: STOMPMessageNumber, in transaction: STOMPTransaction?
    ) throws(STOMPUsageError) -> Int {
        guard let place = subscriptions.entries.firstIndex(where: { $0.token == message.subscription }) else {
            throw .subscriptionHasEnded(profile)
        }
        try require(
            subscriptions.entries[place].unanswered.contains(message.number),
            else: .isAnswered(in: subscriptions.entries[place].ackMode))
        if let transaction {
            try require(
                !subscriptions.entries[place].unanswered.isHeld(against: transaction.number),
                else: .isAnsweredInOtherTransaction)
        }
        return place
    }

    private mutating func checkAckMode(_ message: RawSpan, _ range: Range<Int>) throws(STOMPUsageError) {
        let id = STOMPHeaderReader(version: version).string(in: message, range)
        guard let index = subscriptions.index(of: wireForm(id)) else { throw .subscriptionHasEnded(profile, id) }
        try require(subscriptions.entries[index].ackMode != .auto, else: .subscriptionIsAutomatic(id))
    }

    /// A frame without a body, with a receipt when there is a token.
    mutating func writeFrame(
        _ command: StaticString, _ headers: STOMPHeaders, _ reserved: [StaticString], room: Int,
        _ receiptToken: UInt64?, boundsReceipts: Bool = true, at now: Int64, _ head: (inout FrameWriter) -> Void
    ) throws(STOMPUsageError) {
        try checkHeaders(headers, reserved)
        if receiptToken != nil { try boundsReceipts ? checkReceipts() : requireReceipts() }
        let number = receiptToken != nil ? receipts.nextNumber : 0
        try FrameWriter.writeFrame(
            into: &output, command, STOMPEscaping(version), headRoom: room + 96, headers: headers
        ) { writer in
            head(&writer)
            if number != 0 { writer.put("receipt", number) }
        }
        timing.wrote(at: now)
        if let receiptToken { addReceipt(receiptToken, at: now) }
    }
}
