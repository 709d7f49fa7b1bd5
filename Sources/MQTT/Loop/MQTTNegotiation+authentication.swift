import MQTTCore
import Transport

/// The AUTH packets of an authentication with several steps, and of its renewal [MQTT 5.0 4.12]; on the loop's thread.
extension MQTTNegotiation {
    func authenticationReceived(_ packet: MQTTPacket.Auth) {
        guard let authentication = settings.options.authentication else { return }
        if packet.reasonCode == .success {
            core.news.tell(.reauthenticated)
            return endReauthentications(.success(()))
        }
        let connection = connectionNumber
        let loop = core.loop
        loop.beginWork()
        // The engine accepts no other AUTH until this one is answered.
        authenticationTask = Task { [weak core] in
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
                    client?.negotiation.respond(response, connection: connection)
                }
            }
        }
    }

    private func respond(_ response: Result<[UInt8]?, any Error>, connection: Int) {
        // Ignore a response that arrives after its connection has closed.
        guard connection == connectionNumber, authenticationTask != nil else { return }
        authenticationTask = nil
        switch response {
        case .success(let data):
            let now = core.loop.now
            // A failure means that the connection is ending.
            core.link.perform { try? $0.engine.authenticate(data: data, at: now) }
        case .failure(let error):
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
        } catch {
            call.end(.failure(core.explain(error)))
        }
    }

    func endReauthentications(_ result: Result<Void, MQTTError>) {
        let calls = reauthentications
        reauthentications = []
        for call in calls { call.end(result) }
    }
}
