import MQTTCore
import MessagingShell
import MessagingWire
import Transport

/// Authentication with several steps, and its renewal [MQTT 5.0 4.12]; on the loop's thread.
extension MQTTNegotiation {
    func authenticationReceived(_ packet: MQTTPacket.Auth) {
        guard let authentication = settings.authentication else { return }
        if packet.reasonCode == .success {
            guard trusts(packet.properties) else { return }
            core.news.tell(.reauthenticated)
            return endReauthentications(.success(()))
        }
        // Events of the read that brought CONNACK come after it.
        guard core.link.perform({ $0.engine.owesAuthentication }) else { return }
        let number = authenticationNumber
        let loop = core.loop
        loop.beginWork()
        // The engine accepts no other AUTH until this one is answered.
        authenticationTask = loop.startTask { [weak core] in
            await loop.asWork {
                let response: Result<[UInt8]?, any Error>
                do {
                    response = .success(try await authentication.respond(packet.properties.authenticationData))
                } catch {
                    response = .failure(error)
                }
                let client = core
                loop.execute {
                    loop.endWork()
                    client?.negotiation.respond(response, authentication: number)
                }
            }
        }
    }

    /// Whether the app trusts a server that has completed the authentication with these properties of CONNACK or AUTH.
    /// If it does not, the connection ends: nothing more is sent, and bytes that have arrived meanwhile are not read.
    func trusts(_ properties: MQTTProperties) -> Bool {
        guard let verify = settings.authentication?.verify else { return true }
        do {
            try verify(properties.authenticationData)
            return true
        } catch {
            expectsNoConnack()
            core.connectionFailed(MQTTError(authentication: error))
            let now = core.loop.now
            core.link.perform { machine in
                try? machine.engine.disconnect(reason: .unspecifiedError, at: now)
                machine.asksToClose = true
            }
            core.link.dropConnection()
            return false
        }
    }

    private func respond(_ response: Result<[UInt8]?, any Error>, authentication: Int) {
        // Ignore a response that arrives after CONNACK, or after its connection has closed.
        guard authentication == authenticationNumber else { return }
        authenticationTask = nil
        let now = core.loop.now
        do {
            let data = try response.get()
            try core.link.perform { machine throws(MQTTUsageError) in
                try machine.engine.authenticate(data: data, at: now)
            }
        } catch let error as MQTTUsageError where error.code == .notConnected || error.code == .closing {
            // The connection is ending.
        } catch {
            // The application has no response, or one that cannot be sent.
            core.connectionFailed(MQTTError(authentication: error))
            core.link.dropConnection()
        }
    }

    /// Begins a renewal; the call ends when it is complete.
    func beginReauthentication(data: [UInt8]?, _ call: PendingCall<Result<Void, MQTTError>>) {
        if call.isOver { return }
        let now = core.loop.now
        do throws(MQTTUsageError) {
            try core.link.perform { machine throws(MQTTUsageError) in
                try machine.engine.authenticate(reason: .reauthenticate, data: data, at: now)
            }
            reauthentications.append(call)
            limit(call)
        } catch {
            call.end(.failure(core.explain(error)))
        }
    }

    /// Ends a call that waits for longer than ``MQTTConfiguration/connectTimeout`` because nothing is read. While the client
    /// reads, the engine notices what is late.
    private func limit(_ call: PendingCall<Result<Void, MQTTError>>) {
        let alarm = LoopAlarm(loop: core.loop) { [weak core] _ in
            guard let core, !call.isOver else { return }
            guard let reason = core.link.pauseReason else { return core.negotiation.limit(call) }
            call.end(.failure(.authIsUnread(because: reason)))
        }
        alarm.set(core.loop.now.advanced(byNanoseconds: settings.engineOptions.value.connectTimeout))
    }

    func endReauthentications(_ result: Result<Void, MQTTError>) {
        let calls = reauthentications
        reauthentications = []
        for call in calls { call.end(result) }
    }
}
