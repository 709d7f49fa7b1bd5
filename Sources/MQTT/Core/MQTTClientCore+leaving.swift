import MQTTCore
import Messaging
import Synchronization
import Transport

extension MQTTClientCore {
    /// Writes DISCONNECT as the last packet.
    ///
    /// - Parameter endsSession: the server forgets us; 5.0 only.
    func sayGoodbye(endsSession: Bool = false) {
        let now = MonotonicClock.now
        link.perform { machine in
            var properties = MQTTProperties()
            if endsSession, machine.engine.version.hasProperties { properties.sessionExpiryInterval = 0 }
            do throws(MQTTMisuse) {
                try machine.engine.disconnect(properties: properties, at: now)
            } catch {
                // Not connected any more: there is nobody to say good-bye to.
            }
            machine.wantsClose = true
        }
    }

    nonisolated(nonsending) func destroy() async throws(MQTTError) {
        let isConnected = await withUnsafeContinuation { waiter in
            loop.execute { waiter.resume(returning: self.supervisor.isConnected) }
        }
        await supervisor.stop { self.sayGoodbye(endsSession: true) }
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
        let completions = link.perform { machine in
            var effects = MQTTEffects()
            // Nothing but a connection is against it, and that has ended.
            try? machine.engine.discardSession(into: &effects)
            machine.engine.configuration.cleanStart = cleanStart
            machine.flushRecords()
            return effects.completions
        }
        for completion in completions where completion.token & MQTTMachine.looseBit != 0 {
            if case .failure(let error) = completion.answer { events.send(.undelivered(error)) }
        }
    }
}
