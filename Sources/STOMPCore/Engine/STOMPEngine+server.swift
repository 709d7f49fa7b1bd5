// What a server's side writes.

import MessagingWire

extension STOMPEngine {
    /// Answers CONNECT with CONNECTED, in the version that both sides know.
    public mutating func accept(
        session: String? = nil, server: String? = nil, heartBeat offered: STOMPHeartBeat = .none,
        headers: STOMPHeaders = [:], at now: Int64
    ) throws(STOMPUsageError) {
        defer { assert(checkInvariants()) }
        try requireServer(phase == .deciding, else: .noConnectToAnswer(in: phase))
        let version = version
        let offersBeats = peerHeartBeat != .none || offered != .none
        let room = FrameWriter.room(for: session ?? "") + FrameWriter.room(for: server ?? "") + 128
        try FrameWriter.writeFrame(into: &output, "CONNECTED", .none, headRoom: room, headers: headers) { writer in
            writer.put("version", version.description)
            if offersBeats { writer.put("heart-beat", offered.description) }
            if let session { writer.put("session", session) }
            if let server { writer.put("server", server) }
        }
        heartBeat = offered.agreed(with: peerHeartBeat)
        phase = .connected
        phaseDeadline = .max
        timing = HeartBeatTiming(heartBeat, at: now)
    }

    /// Answers CONNECT with ERROR, which ends the connection.
    public mutating func refuse(
        message: String, headers: STOMPHeaders = [:], body: [UInt8] = [], at now: Int64
    ) throws(STOMPUsageError) {
        try requireServer(phase == .deciding, else: .noConnectToRefuse(in: phase))
        try sendError(message: message, headers: headers, body: body, at: now)
    }

    /// Sends ERROR. It ends the connection, unless `closes` is false, which only imitations of real brokers need.
    public mutating func sendError(
        message: String, receiptID: String? = nil, headers: STOMPHeaders = [:], body: [UInt8] = [],
        closes: Bool = true, at now: Int64
    ) throws(STOMPUsageError) {
        defer { assert(checkInvariants()) }
        try requireServer(phase != .closed && phase != .closing, else: .noConnectionForError(in: phase))
        let room = FrameWriter.room(for: message) + FrameWriter.room(for: receiptID ?? "") + 96
        // Before CONNECT is accepted no version is agreed on, so nothing in this ERROR may depend on one.
        // UInt8 has no padding, so all bytes are initialised.
        try FrameWriter.writeFrame(
            into: &output, "ERROR", phase == .connecting ? .none : STOMPEscaping(version), headRoom: room,
            headers: headers,
            body: unsafe body.span.bytes, writesContentLength: !body.isEmpty, replacesUnencodable: true
        ) { writer in
            writer.put("message", message)
            if let receiptID { writer.put("receipt-id", receiptID) }
        }
        timing.wrote(at: now)
        guard closes else { return }
        phase = .closing
        timing = .off
        phaseDeadline = .max
    }

    /// Sends RECEIPT: the frame with that `receipt` header has been processed (STOMP 1.2 "RECEIPT").
    public mutating func sendReceipt(_ id: String, at now: Int64) throws(STOMPUsageError) {
        try requireServer(phase.isOpen, else: .noSession(for: "RECEIPT", in: phase))
        try FrameWriter.writeFrame(
            into: &output, "RECEIPT", STOMPEscaping(version), headRoom: FrameWriter.room(for: id) + 32, headers: [:],
            replacesUnencodable: true
        ) { $0.put("receipt-id", id) }
        timing.wrote(at: now)
    }

    /// Sends MESSAGE.
    ///
    /// - Parameters:
    ///   - subscription: its id; nil only in 1.0, for a SUBSCRIBE that had none.
    ///   - ackID: what ACK and NACK of 1.2 will name; nil in ack mode `auto`.
    ///   - headers: those of the SEND. The headers that MESSAGE writes itself, and those for the server alone, are left out; what
    ///     this version cannot carry becomes a blank.
    ///   - omitsContentLength: as the sender did; not where the body holds a NUL.
    public mutating func deliver(
        subscription: String?, destination: String, messageID: String, ackID: String? = nil,
        headers: STOMPHeaders = [:], body: RawSpan, omitsContentLength: Bool = false, at now: Int64
    ) throws(STOMPUsageError) {
        try requireServer(phase == .connected, else: .noSession(for: "MESSAGE", in: phase))
        let room =
            FrameWriter.room(for: subscription ?? "") + FrameWriter.room(for: destination)
            + FrameWriter.room(for: messageID) + FrameWriter.room(for: ackID ?? "") + 96
        let before = output.count
        try FrameWriter.writeFrame(
            into: &output, "MESSAGE", STOMPEscaping(version), headRoom: room, headers: headers.relayed, body: body,
            writesContentLength: Self.isCounted(body, omitsContentLength), replacesUnencodable: true
        ) { writer in
            if let subscription { writer.put("subscription", subscription) }
            writer.put("message-id", messageID)
            writer.put("destination", destination)
            if let ackID { writer.put("ack", ackID) }
        }
        ownBytes &+= output.count &- before
        timing.wrote(at: now)
    }

    /// Sends MESSAGE with a body that is an array.
    public mutating func deliver(
        subscription: String?, destination: String, messageID: String, ackID: String? = nil,
        headers: STOMPHeaders = [:], body: [UInt8], omitsContentLength: Bool = false, at now: Int64
    ) throws(STOMPUsageError) {
        // UInt8 has no padding, so all bytes are initialised.
        try deliver(
            subscription: subscription, destination: destination, messageID: messageID, ackID: ackID, headers: headers,
            body: unsafe body.span.bytes, omitsContentLength: omitsContentLength, at: now)
    }

    /// Ends the connection without sending anything.
    public mutating func closeConnection() {
        guard phase != .closed, phase != .closing else { return }
        phase = .closing
        timing = .off
        phaseDeadline = .max
    }

    /// The ERROR that answers a violation.
    mutating func writeError(_ message: String, receiptID: String?) {
        // Texts of ours fit every version, and what does not becomes a blank, so this cannot throw.
        try? FrameWriter.writeFrame(
            into: &output, "ERROR", phase == .connecting ? .none : STOMPEscaping(version),
            headRoom: FrameWriter.room(for: message) + FrameWriter.room(for: receiptID ?? "") + 96, headers: [:],
            replacesUnencodable: true
        ) { writer in
            writer.put("version:1.0,1.1,1.2\n")
            writer.put("message", message)
            if let receiptID { writer.put("receipt-id", receiptID) }
        }
    }

    private func requireServer(
        _ condition: Bool, else error: @autoclosure () -> STOMPUsageError
    ) throws(STOMPUsageError) {
        try require(role == .server, else: .isForServers)
        try require(condition, else: error())
    }
}
