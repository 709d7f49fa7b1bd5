import MQTTCore
import Messaging
import Synchronization
import Transport
import Wire

/// Opening a stream and obtaining credentials; in the task of one attempt.
extension MQTTNegotiation {
    func openStream(_ attempt: ConnectionAttempt, of core: MQTTClientCore) async throws(MQTTError) -> OpenedStream {
        try settings.check(settings.options.will)
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
            try await prepareConnect(attempt, core)
            try await prepareAuthentication(attempt, core)
        }
    }

    /// Lets the application change CONNECT.
    private func prepareConnect(_ attempt: ConnectionAttempt, _ core: MQTTClientCore) async throws(MQTTError) {
        guard let provider = settings.options.connectProvider else { return }
        let initial = MQTTConnectOptions(
            attempt: attempt.number, will: settings.options.will, properties: settings.options.connectProperties,
            keepAlive: settings.options.keepAlive, cleanStart: core.link.perform { $0.engine.cleanStart })
        let options: MQTTConnectOptions
        do {
            let late = MQTTError(
                .timedOut,
                "The connectProvider did not return within connectTimeout. Let it return sooner, or raise it.")
            options = try await TimedCall.run(until: attempt.deadline, on: core.loop, late: late) {
                var options = initial
                try await provider(&options)
                return options
            }
        } catch let error as MQTTError where error.code == .timedOut {
            throw error
        } catch {
            throw MQTTError(connectProvider: error)
        }
        try settings.check(options.will)
        try core.asking { machine throws(MQTTUsageError) in
            var configuration = machine.engine.configuration
            configuration.will = options.will
            configuration.connectProperties = options.properties
            configuration.keepAlive = UInt16(clamping: options.keepAlive.inSecondsRoundedUp)
            machine.engine.configuration = configuration
            machine.engine.cleanStart = options.cleanStart
            try machine.engine.configuration.checkConnect()
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
