import MQTTCore
import Messaging
import Synchronization
import Transport

extension MQTTClientCore {
    /// How long QoS 2 exchanges under way may hold DISCONNECT back; less than the supervisor waits for the end.
    private static var exchangeTimeout: Int64 { 2_000_000_000 }

    /// Finishes the QoS 2 exchanges of received messages and writes DISCONNECT as the last packet; on the loop's thread.
    func sayGoodbye(_ reason: MQTTReasonCode = .normalDisconnection, properties: MQTTProperties = []) {
        let now = MonotonicClock.now
        let scratch = MQTTScratch()
        link.perform { machine in
            do throws(MQTTUsageError) {
                try machine.engine.leave(
                    reason: reason, properties: properties, within: Self.exchangeTimeout, at: now,
                    into: &scratch.work.effects)
                machine.collectApart(at: now, into: scratch)
            } catch {
                // There is no connection any more that DISCONNECT could end.
                machine.wantsClose = true
            }
        }
        scratch.perform(RawSpan())
    }

    /// Whether this may be said to the server; without a connection nobody is told anything.
    func checkGoodbye(_ reason: MQTTReasonCode, _ properties: MQTTProperties) throws(MQTTError) {
        try link.perform { machine throws(MQTTError) in
            guard machine.engine.phase == .connected else { return }
            do throws(MQTTUsageError) {
                try machine.engine.checkDisconnect(reason: reason, properties: properties)
            } catch {
                throw MQTTError(error)
            }
        }
    }

    nonisolated(nonsending) func discardSession() async throws(MQTTError) {
        let isConnected = await loop.result { self.supervisor.isConnected }
        await supervisor.stop {
            var properties = MQTTProperties()
            // The server forgets us; before 5.0 nothing of this is sent.
            properties.sessionExpiryInterval = 0
            self.sayGoodbye(properties: properties)
        }
        if isConnected, !link.perform({ $0.engine.version.hasProperties }), !configuration.cleanStart {
            // Before 5.0 only a connection with Clean Session makes the server forget [MQTT-3.1.2-6].
            link.perform { $0.engine.configuration.cleanStart = true }
            try? await supervisor.start(cancelled: .cancelledWait)
            await supervisor.stop { self.sayGoodbye() }
        }
        forgetSession()
        if let journal = persistence.withLock({ $0.journal }) { try await journal.removeAll() }
    }

    private func forgetSession() {
        let cleanStart = configuration.cleanStart
        let effects = link.perform { machine in
            var effects = MQTTEffects()
            // Nothing but a connection is against it, and that has ended.
            try? machine.engine.discardSession(into: &effects)
            machine.engine.configuration.cleanStart = cleanStart
            machine.remarks = [:]
            machine.knownKeeper?.removeAll()
            machine.flushRecords()
            return effects
        }
        for completion in effects.completions where completion.token & MQTTMachine.looseBit != 0 {
            if case .failure(let error) = completion.answer(effects) { news.tell(.undelivered(error)) }
        }
    }
}
