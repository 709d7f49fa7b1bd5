import MQTTCore
import MessagingShell
import MessagingWire
import Synchronization
import Transport

/// Opening a stream and obtaining credentials; in the task of one attempt.
extension MQTTClientCore {
    func openStream(_ attempt: ConnectionAttempt) async throws(MQTTError) -> OpenedStream {
        // First of all, so that the server of a reference is tried once, whatever else fails.
        let other = negotiation.redirection.withLock { $0?.takeNext(server: attempt.server) }
        try settings.check(settings.engineOptions.value.will, keepAlive: settings.keepAlive)
        try asking { machine throws(MQTTUsageError) in try machine.engine.configuration.checkConnect() }
        try await openStore(attempt)
        let (url, credentials) = try await chooseServer(attempt, redirectedTo: other)
        link.perform { machine in
            let (userName, password) = (credentials?.userName, credentials?.password.map { Array($0.utf8) })
            let options = machine.engine.options.value
            // Options that do not change stay shared with other clients.
            guard userName != options.userName || password != options.password else { return }
            var configuration = machine.engine.configuration
            (configuration.userName, configuration.password) = (userName, password)
            machine.engine.configuration = configuration
        }
        try await prepareConnect(attempt)
        try await prepareAuthentication(attempt)
        return try await open(url, credentials, isRedirected: other != nil, for: attempt)
    }

    /// Opens the session store, if there is one.
    private func openStore(_ attempt: ConnectionAttempt) async throws(MQTTError) {
        // An open store needs no task, which would wait for a thread.
        guard let persistence, persistence.beginOpening(self) else { return }
        func failure(_ error: any Error) -> MQTTError { error as? MQTTError ?? .cancelledWait }
        let advice = "Check the disk that holds it, or raise connectTimeout."
        try await ask("The session store did not open", attempt, advice: advice, failure) {
            try await persistence.prepare(self, for: .attempt)
        }
    }

    /// Lets the application change CONNECT.
    private func prepareConnect(_ attempt: ConnectionAttempt) async throws(MQTTError) {
        guard let provider = settings.connectProvider else { return }
        let configured = settings.engineOptions.value
        let initial = MQTTConnectOptions(
            attempt: attempt.number, will: configured.will, properties: configured.connectProperties,
            keepAlive: .seconds(configured.keepAlive), cleanStart: link.perform { $0.engine.cleanStart })
        let options = try await ask("The connectProvider did not return", attempt, MQTTError.init(connectProvider:)) {
            var options = initial
            try await provider(&options)
            return options
        }
        try settings.check(options.will, keepAlive: options.keepAlive)
        try asking { machine throws(MQTTUsageError) in
            var configuration = machine.engine.configuration
            configuration.will = options.will
            configuration.connectProperties = options.properties
            configuration.keepAlive = UInt16(clamping: options.keepAlive.inSecondsRoundedUp)
            configuration.cleanStart = options.cleanStart
            // The engine keeps what a CONNECT can have, so that a later attempt may ask again.
            try configuration.checkConnect()
            machine.engine.configuration = configuration
        }
    }

    /// Obtains the data of the first step.
    private func prepareAuthentication(_ attempt: ConnectionAttempt) async throws(MQTTError) {
        guard let authentication = settings.authentication else { return }
        let event = "The authentication's begin did not return"
        let data = try await ask(event, attempt, MQTTError.init(authenticationBegin:)) {
            try await authentication.begin()
        }
        link.perform { machine in
            let isUsed = machine.engine.options.value.version.hasProperties
            machine.engine.configuration.authenticationData = isUsed ? data : nil
        }
    }

    /// Waits for a part of the application, until the deadline of the attempt at most.
    ///
    /// - Parameters:
    ///   - event: what has not happened if the deadline comes first.
    ///   - advice: what to do then.
    ///   - failure: the error for what it throws.
    private func ask<Answer: Sendable>(
        _ event: String, _ attempt: ConnectionAttempt, advice: String = "Let it return sooner, or raise it.",
        _ failure: (any Error) -> MQTTError, _ body: @escaping @Sendable () async throws -> Answer
    ) async throws(MQTTError) -> Answer {
        let late = MQTTError(.timedOut, "\(event) within connectTimeout. \(advice)")
        do {
            return try await TimedCall.run(until: attempt.deadline, on: loop, late: late, body)
        } catch let error as MQTTError where error.code == .timedOut {
            throw error
        } catch {
            throw failure(error)
        }
    }
}
