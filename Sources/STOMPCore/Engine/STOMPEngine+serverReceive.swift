// What a server's side reads.

import MessagingWire

extension STOMPEngine {
    mutating func handleClientFrame(
        _ bytes: RawSpan, _ base: Int, at now: Int64, into effects: inout STOMPEffects
    ) throws(STOMPProtocolError) {
        if phase == .connecting {
            guard scanner.command == .connect || scanner.command == .stomp else { throw unexpected(bytes, base) }
            return try handleConnect(bytes, base, at: now, into: &effects)
        }
        // Frames after DISCONNECT are not answered.
        guard phase == .deciding || phase == .connected else { return }
        if scanner.command == .send {
            guard scanner.destination.isSet else { throw missing("destination", "SEND") }
            var record = STOMPMessageRecord(scanner, base)
            record.subscription = 0
            effects.messages.append(record)
            return
        }
        let frame = STOMPFrame(scanner, in: bytes, from: base, version: version)
        let receipt = frame.headers["receipt"]
        switch scanner.command {
        case .subscribe: effects.report(.subscribeReceived(try subscribeRequest(frame, receipt)))
        case .unsubscribe: effects.report(.unsubscribeReceived(try unsubscribeRequest(frame, receipt)))
        case .ack: effects.report(.ackReceived(try ackRequest(frame, receipt)))
        case .nack where version.hasNegativeAcknowledgement:
            effects.report(.nackReceived(try ackRequest(frame, receipt)))
        case .begin: effects.report(.beginReceived(try transactionRequest(frame, receipt)))
        case .commit: effects.report(.commitReceived(try transactionRequest(frame, receipt)))
        case .abort: effects.report(.abortReceived(try transactionRequest(frame, receipt)))
        case .disconnect:
            effects.report(.disconnectReceived(receipt: receipt))
            // The client closes when it has its RECEIPT; otherwise the connection is closed soon after.
            phase = .leaving
            phaseDeadline = now.advanced(byNanoseconds: min(configuration.disconnectTimeout, 1_000_000_000))
            timing = .off
        default:
            // The specification has a server refuse what it does not know (STOMP 1.2 "ERROR").
            effects.report(.unknownFrameReceived(frame))
            throw unexpected(bytes, base)
        }
    }

    private mutating func handleConnect(
        _ bytes: RawSpan, _ base: Int, at now: Int64, into effects: inout STOMPEffects
    ) throws(STOMPProtocolError) {
        let frame = STOMPFrame(scanner, in: bytes, from: base, version: .v12)
        // A CONNECT without `accept-version` requests 1.0 (STOMP 1.2 "Protocol Negotiation").
        let offered = frame.headers["accept-version"].map { STOMPVersion.list($0) } ?? [.v10]
        guard let common = offered.filter({ configuration.serverVersions.contains($0) }).max() else {
            throw .noCommonVersion(configuration.serverVersions)
        }
        var beat = STOMPHeartBeat.none
        if let header = frame.headers["heart-beat"] {
            guard let read = STOMPHeartBeat(header) else { throw .heartBeatIsInvalid(header, in: "CONNECT") }
            beat = read
        }
        version = common
        peerHeartBeat = beat
        phase = .deciding
        effects.report(
            .connectReceived(
                STOMPConnectRequest(
                    version: common, host: frame.headers["host"], login: frame.headers["login"],
                    passcode: frame.headers["passcode"], clientID: frame.headers["client-id"], heartBeat: beat,
                    headers: frame.headers)))
    }

    private func subscribeRequest(_ frame: STOMPFrame, _ receipt: String?) throws(STOMPProtocolError)
        -> STOMPSubscribeRequest
    {
        guard let destination = frame.headers["destination"] else { throw missing("destination", "SUBSCRIBE") }
        let id = frame.headers["id"]
        guard id != nil || version == .v10 else { throw missing("id", "SUBSCRIBE") }
        let ack = frame.headers["ack"] ?? "auto"
        guard let mode = STOMPAckMode(ack), mode != .clientIndividual || version.hasNegativeAcknowledgement else {
            throw .acknowledgementModeIsUnknown(ack, in: version)
        }
        return STOMPSubscribeRequest(
            id: id, destination: destination, ackMode: mode, selector: frame.headers["selector"], receipt: receipt,
            headers: frame.headers)
    }

    private func unsubscribeRequest(
        _ frame: STOMPFrame, _ receipt: String?
    ) throws(STOMPProtocolError) -> STOMPUnsubscribeRequest {
        let id = frame.headers["id"]
        let destination = frame.headers["destination"]
        guard id != nil || (version == .v10 && destination != nil) else { throw missing("id", "UNSUBSCRIBE") }
        return STOMPUnsubscribeRequest(id: id, destination: destination, receipt: receipt, headers: frame.headers)
    }

    private func ackRequest(_ frame: STOMPFrame, _ receipt: String?) throws(STOMPProtocolError) -> STOMPAckRequest {
        let request = STOMPAckRequest(
            id: frame.headers["id"], messageID: frame.headers["message-id"],
            subscription: frame.headers["subscription"], transaction: frame.headers["transaction"], receipt: receipt,
            headers: frame.headers)
        switch version {
        case .v12: if request.id == nil { throw missing("id", frame.commandName) }
        case .v11:
            if request.messageID == nil { throw missing("message-id", frame.commandName) }
            if request.subscription == nil { throw missing("subscription", frame.commandName) }
        case .v10: if request.messageID == nil { throw missing("message-id", frame.commandName) }
        }
        return request
    }

    private func transactionRequest(
        _ frame: STOMPFrame, _ receipt: String?
    ) throws(STOMPProtocolError) -> STOMPTransactionRequest {
        guard let transaction = frame.headers["transaction"] else { throw missing("transaction", frame.commandName) }
        return STOMPTransactionRequest(transaction: transaction, receipt: receipt, headers: frame.headers)
    }
}
