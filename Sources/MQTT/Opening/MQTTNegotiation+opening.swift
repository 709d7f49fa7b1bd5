import MQTTCore
import Messaging
import Synchronization
import Transport

/// Opening a stream and obtaining credentials; in the task of one attempt.
extension MQTTNegotiation {
    func openStream(_ attempt: ConnectionAttempt, of core: MQTTClientCore) async throws(MQTTError) -> OpenedStream {
        try settings.checkWill()
        try core.asking { machine throws(MQTTUsageError) in try machine.engine.configuration.checkConnect() }
        try await core.prepareStore(isAttempt: true)
        let other = redirection.withLock { redirection in
            defer { redirection?.next = nil }
            return redirection?.next ?? redirection?.permanent[attempt.server]
        }
        return try await core.open(attempt, redirectedTo: other) { (credentials) async throws(MQTTError) in
            core.link.perform { machine in
                let (userName, password) = (credentials?.userName, credentials?.password.map { Array($0.utf8) })
                let options = machine.engine.options.value
                // Options that do not change stay shared with other clients.
                guard userName != options.userName || password != options.password else { return }
                var configuration = machine.engine.configuration
                (configuration.userName, configuration.password) = (userName, password)
                machine.engine.configuration = configuration
            }
            try await prepareAuthentication(attempt, core)
        }
    }

    /// Obtains the data of the first step.
    private func prepareAuthentication(
        _ attempt: ConnectionAttempt, _ core: MQTTClientCore
    ) async throws(MQTTError) {
        guard let authentication = settings.options.authentication else { return }
        do {
            let late = MQTTError(
                .timedOut,
                "The authentication's begin did not return within connectTimeout. Let it return sooner, or raise it."
            )
            let data = try await TimedCall.run(until: attempt.deadline, on: core.loop, late: late) {
                try await authentication.begin()
            }
            core.link.perform { machine in
                let isUsed = machine.engine.options.value.version.hasProperties
                machine.engine.configuration.authenticationData = isUsed ? data : nil
            }
        } catch let error as MQTTError where error.code == .timedOut {
            throw error
        } catch {
            throw MQTTError(authentication: error)
        }
    }
}
