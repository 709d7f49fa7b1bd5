import Messaging
import STOMPCore
import Transport

extension STOMPClientCore {
    func openStream(_ attempt: ConnectionAttempt) async throws(STOMPError) -> OpenedStream {
        if let misconfiguration { throw misconfiguration }
        let server: BrokerURL
        do throws(TransportError) {
            server = try opener.choose(attempt.server)
        } catch {
            throw STOMPError(connecting: error)
        }
        news.tell(.connecting(to: server))
        try await prepareCredentials(attempt, server)
        do throws(TransportError) {
            return try await opener.open(server, deadline: attempt.deadline)
        } catch {
            throw STOMPError(connecting: error)
        }
    }

    private func prepareCredentials(_ attempt: ConnectionAttempt, _ server: BrokerURL) async throws(STOMPError) {
        let credentials: Credentials?
        do {
            credentials = try await credentialsSource.credentials(for: attempt, at: server, on: loop)
        } catch {
            throw STOMPError(credentials: error)
        }
        let options = configuration.connectOptions(credentials: credentials)
        do throws(STOMPUsageError) {
            try link.perform { machine throws(STOMPUsageError) in
                machine.engine.configuration.connect = options
                try machine.engine.configuration.checkConnect()
            }
        } catch {
            throw STOMPError(error)
        }
    }

    func prepare(_ attempt: ConnectionAttempt) {
        connectDeadline = attempt.deadline
    }

    func verdict(on failure: STOMPError, wasConnected: Bool) -> ReconnectVerdict {
        if !wasConnected, let server = opener.server { news.tell(.attemptFailed(server, failure)) }
        return STOMPRetryOptions(hasCredentialsProvider: credentialsSource.isFresh).verdict(on: failure)
    }

    /// Writes DISCONNECT as the last frame; on the loop's thread.
    func sayGoodbye() {
        link.perform(urgent: true) { machine in
            do throws(STOMPUsageError) {
                try machine.engine.disconnect(at: MonotonicClock.now)
            } catch {
                // There is no session that DISCONNECT could end.
                machine.asksToClose = true
            }
        }
    }
}
