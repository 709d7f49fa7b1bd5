import MQTTCore
import Messaging
import Synchronization
import Transport

extension MQTTClient {
    /// Disconnects and discards the session at both ends: queued and stored messages, and subscriptions.
    ///
    /// The server is asked to discard it if there is a connection; without one it keeps its side until it expires, or
    /// until a connection with `cleanStart`. Messages that were not delivered are reported as
    /// ``MQTTEvent/undelivered(_:)``.
    /// - Throws: ``MQTTError`` if the store cannot be opened or emptied, for example because another client uses it.
    public nonisolated(nonsending) func discardSession() async throws(MQTTError) {
        let core = core
        try core.supervisor.startLoop()
        let cleanStart = core.settings.cleanStart
        let isKept = core.link.perform { $0.engine.sessionOutlivesConnection }
        // Nil without a connection.
        let isTold = Lock<Bool?>(nil)
        let goodbye: @Sendable () -> Void = {
            var properties = MQTTProperties()
            // The server discards the session; before 5.0 no properties are sent.
            properties.sessionExpiryInterval = 0
            let isSent = core.sayGoodbye(.normalDisconnection, properties: properties)
            isTold.withLock { $0 = isSent && core.link.perform { $0.engine.version.hasProperties } }
        }
        await core.supervisor.stop(goodbye: goodbye)
        if isKept, isTold.withLock({ $0 }) == false {
            // Before 5.0 only a connection with Clean Session makes the server discard it [MQTT-3.1.2-6]; with 5.0 one with
            // Clean Start if DISCONNECT had been sent before, because the client was leaving for another server.
            core.link.perform { $0.engine.cleanStart = true }
            try? await core.supervisor.connect(cancelled: .cancelledWait)
            await core.supervisor.stop(goodbye: goodbye)
            // Whatever becomes of the store: later connections continue their sessions.
            core.link.perform { $0.engine.cleanStart = cleanStart }
        }
        do throws(MQTTError) {
            try await core.persistence?.removeAll(core)
        } catch {
            await core.persistence?.close(core)
            throw error
        }
        await core.loop.result {
            core.link.performNow { machine, afterLock, now in
                machine.discardSession(cleanStart: cleanStart, at: now, into: afterLock)
            }
        }
        await core.persistence?.close(core)
    }

    /// Authenticates again on the open connection, with the method in ``MQTTConfiguration/authentication`` [MQTT 5.0
    /// 4.12.1]; 5.0 only. Messages are sent and received meanwhile. Cancelling the task ends the wait, not the exchange.
    ///
    /// - Throws: ``MQTTError`` if there is no connection or no method, ``MQTTAuthentication/begin`` fails, or the server ends
    ///   the connection; ``MQTTError/Code/timedOut`` if a full buffer keeps the client from reading the answer.
    public nonisolated(nonsending) func reauthenticate() async throws(MQTTError) {
        guard let authentication = core.settings.authentication else {
            throw .invalidRequest("There is nothing to authenticate with. Set configuration.authentication.")
        }
        let data: [UInt8]?
        do {
            data = try await authentication.begin()
        } catch {
            throw MQTTError(authentication: error)
        }
        try core.supervisor.startLoop()
        let call = PendingCall<Result<Void, MQTTError>>()
        let result = await call.answer {
            core.loop.execute { [core] in core.negotiation.beginReauthentication(data: data, call) }
        } onCancel: {
            call.end(.failure(.cancelledWait))
        }
        try result.get()
    }
}
