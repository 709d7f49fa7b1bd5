import MQTTCore
import Messaging
import Synchronization
import Transport

extension MQTTClientCore {
    /// Writes DISCONNECT as the last packet.
    func sayGoodbye(_ reason: MQTTReasonCode = .normalDisconnection, properties: MQTTProperties = []) {
        let now = MonotonicClock.now
        link.perform { machine in
            do throws(MQTTMisuse) {
                try machine.engine.disconnect(reason: reason, properties: properties, at: now)
            } catch {
                // Not connected any more: there is nobody to say good-bye to.
            }
            machine.wantsClose = true
        }
    }

    /// Whether this may be said to the server; without a connection nobody is told anything.
    func checkGoodbye(_ reason: MQTTReasonCode, _ properties: MQTTProperties) throws(MQTTError) {
        try link.perform { machine throws(MQTTError) in
            guard machine.engine.phase == .connected else { return }
            do throws(MQTTMisuse) {
                try machine.engine.checkDisconnect(reason: reason, properties: properties)
            } catch {
                throw MQTTError(error)
            }
        }
    }

    nonisolated(nonsending) func destroy() async throws(MQTTError) {
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
        discardSession()
        if let journal = persistence.withLock({ $0.journal }) { try await journal.removeAll() }
    }

    private func discardSession() {
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
