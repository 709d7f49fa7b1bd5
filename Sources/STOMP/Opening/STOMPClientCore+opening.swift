import MessagingShell
import STOMPCore
import Transport

/// Opening a stream; in the task of one attempt.
extension STOMPClientCore {
    func openStream(_ attempt: ConnectionAttempt) async throws(STOMPError) -> OpenedStream {
        // Before anything else: an invalid configuration needs no server.
        try setConnectOptions(configuration.credentials)
        let (url, credentials) = try await chooseServer(attempt)
        try setConnectOptions(credentials)
        return try await open(url, credentials, for: attempt)
    }

    /// Sets what the next CONNECT contains. Throws if a frame cannot contain it.
    private func setConnectOptions(_ credentials: Credentials?) throws(STOMPError) {
        let (outgoing, incoming) = (configuration.outgoingHeartBeat, configuration.incomingHeartBeat)
        for (name, time) in [("outgoingHeartBeat", outgoing), ("incomingHeartBeat", incoming)] where time < .zero {
            throw .invalidRequest("\(name) is \(time). Set it to a positive time, or to zero for no heart-beats.")
        }
        try STOMPError.check(timeouts: [
            "connectTimeout": configuration.connectTimeout, "requestTimeout": configuration.requestTimeout,
            "acknowledgementTimeout": configuration.acknowledgementTimeout,
        ])
        let options = configuration.connectOptions(credentials: credentials)
        try asking { machine throws(STOMPUsageError) in
            machine.engine.configuration.connect = options
            try machine.engine.configuration.checkConnect()
        }
    }
}
