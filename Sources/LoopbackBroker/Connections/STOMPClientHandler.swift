import MessagingWire
import STOMPCore
import Transport

/// Answers what one STOMP client asks; on the loop's thread, with no lock held.
struct STOMPClientHandler {
    let hub: Hub
    let id: Router.ConnectionID
    let link: Link<STOMPServerMachine>
    let version: STOMPVersion
    let now: Int64

    static let serverName = "swift-messaging-loopback/1"

    /// Handles messages and events in the order of their arrival.
    func handle(_ effects: STOMPEffects, _ bytes: RawSpan) {
        var next = 0
        for record in effects.events {
            send(effects.messages[next..<record.messagesBefore], bytes)
            next = record.messagesBefore
            if case .connectReceived(let request) = record.kind {
                connect(request)
            } else if isOpen {
                handle(record.kind)
            } else if case .connectionFailed = record.kind {
                ended()
            }
        }
        send(effects.messages[next...], bytes)
    }

    /// Gives back what the connection held.
    func ended() {
        hub.route(at: now) { router, effects in router.closeSTOMP(id, at: now, into: &effects) }
    }

    /// Whether the client is let in and nothing has ended the connection: otherwise what it sent is passed over.
    private var isOpen: Bool {
        link.perform { $0.engine.phase.isOpen }
    }

    private func handle(_ event: STOMPEngineEvent.Kind) {
        switch event {
        case .subscribeReceived(let request):
            if hub.currentFaults.forbiddenFilters.contains(request.destination) { return forbid() }
            process(request.receipt) { (router, effects) throws(STOMPRefusal) in
                guard !hub.currentFaults.refusedFilters.contains(request.destination) else {
                    throw STOMPRefusal(message: "not allowed to subscribe to '\(request.destination)'")
                }
                try router.subscribe(id, request, at: now, into: &effects)
            }
        case .unsubscribeReceived(let request):
            process(request.receipt) { (router, effects) throws(STOMPRefusal) in
                try router.unsubscribe(id, request, at: now, into: &effects)
            }
        case .ackReceived(let request): answer(request, accepts: true)
        case .nackReceived(let request): answer(request, accepts: false)
        case .beginReceived(let request):
            process(request.receipt) { (router, _) throws(STOMPRefusal) in try router.begin(id, request.transaction) }
        case .commitReceived(let request):
            process(request.receipt) { (router, effects) throws(STOMPRefusal) in
                try router.commit(id, request.transaction, at: now, into: &effects)
            }
        case .abortReceived(let request):
            process(request.receipt) { (router, _) throws(STOMPRefusal) in try router.abort(id, request.transaction) }
        case .disconnectReceived(let receipt):
            ended()
            confirm(receipt)
            // Our side ends; what the client still sends is read and dropped, so that the RECEIPT arrives.
            link.perform { $0.engine.closeConnection() }
        case .connectionFailed: ended()
        default: break
        }
    }

    private func answer(_ request: STOMPAckRequest, accepts: Bool) {
        process(request.receipt) { (router, effects) throws(STOMPRefusal) in
            try router.answer(id, request, accepts: accepts, at: now, into: &effects)
        }
    }

    // MARK: Connecting

    private func connect(_ request: STOMPConnectRequest) {
        let faults = hub.currentFaults
        if faults.ignoresConnect { return }
        if faults.refusesConnections { return refuse("server unavailable: this broker refuses connections on purpose") }
        guard hub.admits(user: request.login, password: request.passcode.map { Array($0.utf8) }) else {
            return refuse("invalid user credentials")
        }
        hub.route(at: now) { router, _ in router.openSTOMP(id, clientID: request.clientID) }
        let session = "loopback-\(id)"
        let name = request.clientID ?? session
        hub.setName(name, of: id)
        let beat = STOMPHeartBeat(outgoing: hub.options.heartBeat.outgoing, incoming: hub.options.heartBeat.incoming)
        link.perform {
            $0.clientName = name
            try? $0.engine.accept(session: session, server: Self.serverName, heartBeat: beat, at: now)
        }
    }

    private func refuse(_ message: String) {
        link.perform { try? $0.engine.refuse(message: message, at: now) }
    }

    // MARK: Messages

    private func send(_ records: ArraySlice<STOMPMessageRecord>, _ bytes: RawSpan) {
        guard !records.isEmpty, isOpen else { return }
        hub.counters.add(.messagesIn, records.count)
        let reader = STOMPHeaderReader(version: version, command: .send)
        let forbidden = hub.currentFaults.forbiddenTopics
        for record in records {
            var headers = reader.headers(in: bytes.extracting(record.headers))
            guard let destination = headers["destination"] else { continue }
            if forbidden.contains(destination) { return forbid() }
            let receipt = headers["receipt"]
            let transaction = headers["transaction"]
            let body = bytes.bytes(in: record.body)
            let isDone = process(receipt) { (router, effects) throws(STOMPRefusal) in
                if let replyTo = headers["reply-to"] { headers["reply-to"] = router.globalReplyTo(replyTo, of: id) }
                let message = Message(
                    destination: destination, headers: headers, body: body, at: now, timeOfDay: hub.loop.timeOfDay)
                try router.send(id, message, to: destination, transaction: transaction, at: now, into: &effects)
            }
            guard isDone else { return }
        }
    }

    // MARK: Answers

    /// Ends the connection of a client that asked for something forbidden. ERROR does not name the frame.
    private func forbid() {
        link.perform { try? $0.engine.sendError(message: "access refused", at: now) }
        ended()
    }

    /// Lets the router process a frame, then sends what the client asked for: RECEIPT, or ERROR instead.
    @discardableResult
    private func process(
        _ receipt: String?, _ body: (inout Router, inout RouterEffects) throws(STOMPRefusal) -> Void
    ) -> Bool {
        let refusal = hub.route(at: now) { router, effects -> STOMPRefusal? in
            do throws(STOMPRefusal) {
                try body(&router, &effects)
                return nil
            } catch {
                return error
            }
        }
        guard let refusal else {
            confirm(receipt)
            return true
        }
        link.perform { try? $0.engine.sendError(message: refusal.message, receiptID: receipt, at: now) }
        ended()
        return false
    }

    private func confirm(_ receipt: String?) {
        guard let receipt, !hub.withholdsAcknowledgements else { return }
        link.perform { try? $0.engine.sendReceipt(receipt, at: now) }
    }
}
