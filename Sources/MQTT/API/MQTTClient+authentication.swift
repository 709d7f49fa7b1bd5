import MQTTCore
import Transport

extension MQTTClient {
    /// Renews the authentication of the open connection, with the method in ``MQTTConfiguration/authentication``; 5.0
    /// only. Messages flow all the while. Cancelling the task ends the wait, not the renewal.
    ///
    /// - Throws: ``MQTTError``: there is no connection or no method, ``MQTTAuthentication/begin`` failed, or the server
    ///   ended the connection.
    public nonisolated(nonsending) func reauthenticate() async throws(MQTTError) {
        guard let authentication = core.settings.options.authentication else {
            throw MQTTError(
                .invalidRequest, "There is nothing to authenticate with. Set configuration.authentication.")
        }
        let data: [UInt8]?
        do {
            data = try await authentication.begin()
        } catch {
            throw MQTTError(authentication: error)
        }
        let call = PendingCall<Result<Void, MQTTError>>()
        let result = await call.answer {
            core.loop.execute { [core] in core.negotiation.beginReauthentication(data: data, call) }
        } onCancel: {
            call.end(.failure(.cancelledWait))
        }
        try result.get()
    }
}
