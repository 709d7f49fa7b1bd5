import MQTTCore
import MessagingShell
import Synchronization
import Transport

extension MQTTClient {
    /// Disconnects and discards the session at both ends: queued and stored messages, and subscriptions.
    ///
    /// The server is asked to discard it if there is a connection; without one, or if that has died unnoticed, it keeps its
    /// side until it expires, or until a connection with `cleanStart`, as the next one of this client is with 5.0. Before
    /// 5.0 that takes another connection, with Clean Session, on which nothing else is sent. Messages that were not delivered
    /// are reported as ``MQTTEvent/undelivered(_:)``. A client that connects meanwhile is disconnected again.
    /// - Throws: ``MQTTError`` if the store cannot be opened or emptied, for example because another client uses it.
    ///   The server is asked nevertheless, and the contents of the store stay there.
    public nonisolated(nonsending) func discardSession() async throws(MQTTError) {
        let core = core
        try core.supervisor.startLoop()
        let cleanStart = core.settings.cleanStart
        // Nil without a connection.
        let isTold = Lock<Bool?>(nil)
        let goodbye: @Sendable () -> Void = {
            let isSent = core.sayGoodbye(.normalDisconnection, properties: [.sessionExpiryInterval(0)])
            isTold.withLock { $0 = isSent && core.link.perform { $0.engine.version.hasProperties } }
        }
        // Whether the server keeps its side, because it was not told.
        var isKept = false
        var failure: MQTTError?
        repeat {
            let outlives = core.link.perform { $0.engine.sessionOutlivesConnection }
            await core.supervisor.stop(goodbye: goodbye)
            if let isTold = isTold.withLock({ $0.take() }) { isKept = outlives && !isTold }
            do throws(MQTTError) {
                try await core.persistence?.removeAll(core)
            } catch {
                failure = error
                break
            }
            // The client may have connected again meanwhile.
        } while await !core.discardSession(cleanStart: cleanStart)
        if isKept {
            await core.discardSessionAtServer()
            // Even if the store failed, later connections continue their sessions.
            core.link.perform { $0.engine.cleanStart = cleanStart || failure == nil && $0.engine.version.hasProperties }
        }
        await core.persistence?.close(core)
        if let failure { throw failure }
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
