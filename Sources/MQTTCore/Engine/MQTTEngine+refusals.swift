// Requests that the server answers by ending the connection: see ``RefusalSearch``. As long as nothing is suspected and no
// request was refused so, only the end of a connection comes here.

import MessagingWire

extension MQTTEngine {
    /// Whether each SUBSCRIBE is to have one filter, since requests are sent one at a time.
    package var sendsSingly: Bool { isCareful && refusals.sendsSingly }

    /// Whether a SUBSCRIBE with this filter is to have no other, since the server has ended connections because of it.
    package func sendsAlone(filter: String) -> Bool { isCareful && refusals.sendsAlone(filters: [filter]) }

    /// Connections in a row that ended while the same requests were unanswered.
    package var endsWithoutAnswer: Int { refusals.ends }

    /// The search, which most engines never begin.
    var refusals: RefusalSearch {
        get { refusalSearch.value ?? RefusalSearch() }
        set {
            refusalSearch.value = newValue.isEmpty ? nil : newValue
            isCareful = newValue.isCareful
        }
    }

    // MARK: Connections

    /// CONNACK arrived: requests wait until PINGREQ is answered.
    mutating func beginCarefully(at now: Int64) {
        guard isCareful else { return }
        refusals.probed(writeProbe(at: now), at: now)
    }

    /// Writes PINGREQ and returns its number.
    mutating func writeProbe(at now: Int64) -> UInt32 {
        // Any progress counts: it may wait behind a large message.
        writePing(at: now, OutputProgress(total: .max))
        return keepAlive.pingCount
    }

    /// PINGRESP arrived.
    mutating func continueAfterPong(at now: Int64, into effects: inout MQTTEffects) {
        guard isCareful else { return }
        refusals.pingAnswered(writtenUpTo: keepAlive.pingCount, at: now)
        if refusals.needsProbe(at: now) { return refusals.probed(writeProbe(at: now), at: now) }
        pump(at: now, into: &effects)
    }

    /// What this connection, which is closed, leaves unanswered; nil if nothing is, or its end is no answer.
    mutating func findUnanswered() -> RefusalSearch.Unanswered? {
        if case .unrelated = connectionEnd { return nil }
        return session.window.unanswered
    }

    /// The connection is closed: gives up the request because of which it ended, if that is known.
    mutating func judgeEnd(_ unanswered: RefusalSearch.Unanswered?, at now: Int64, into effects: inout MQTTEffects) {
        var search = refusals
        let culprit = search.connectionEnded(connectionEnd, unanswered: unanswered, at: now)
        for request in search.connectionClosed() {
            effects.report(.requestFailed(token: request.token))
            session.window.releaseID(request.packetID)
        }
        refusals = search
        if let culprit { giveUp(culprit, into: &effects) }
    }

    private mutating func giveUp(_ culprit: RefusalSearch.Request, into effects: inout MQTTEffects) {
        let isSilence = if case .unanswered = connectionEnd { true } else { false }
        let disconnect: MQTTPacket.Disconnect? =
            if case .disconnected(let packet) = connectionEnd { packet } else { nil }
        guard case .message(let sequence) = culprit.name else {
            effects.report(
                .requestRefused(
                    MQTTRefusal(.subscription(filters: culprit.texts), disconnect: disconnect, isSilence: isSilence)))
            return
        }
        let found = session.window.inFlight.first { session.window.slots[Int($0)].sequence == sequence }
        guard let index = found else { return }
        let head = session.window.slots[Int(index)].head
        effects.report(
            .requestRefused(
                MQTTRefusal(
                    .message(topic: head.topic, head.flags.qos), disconnect: disconnect, isSilence: isSilence,
                    byteCount: session.window.slots[Int(index)].messageBytes)))
        let remark = Int32(truncatingIfNeeded: effects.events.count - 1)
        retire(index)
        complete(index, .refused, disconnect?.reasonCode ?? .unspecifiedError, remark, &effects)
    }
}
