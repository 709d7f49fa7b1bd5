import Messaging
import STOMPCore
import Transport

/// Opening a stream; in the task of one attempt.
extension STOMPNegotiation {
    func openStream(_ attempt: ConnectionAttempt, of core: STOMPClientCore) async throws(STOMPError) -> OpenedStream {
        // Before anything else: an invalid configuration needs no server.
        try setConnectOptions(core.configuration.credentials, core)
        return try await core.open(attempt) { (credentials) async throws(STOMPError) in
            try setConnectOptions(credentials, core)
        }
    }

    /// Sets what the next CONNECT contains. Throws if a frame cannot contain it.
    private func setConnectOptions(_ credentials: Credentials?, _ core: STOMPClientCore) throws(STOMPError) {
        let options = core.configuration.connectOptions(credentials: credentials)
        try core.asking { machine throws(STOMPUsageError) in
            machine.engine.configuration.connect = options
            try machine.engine.configuration.checkConnect()
        }
    }
}
