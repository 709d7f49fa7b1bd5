import STOMP
import TestSupport
import Testing

/// The brokers that the STOMP tests run against.
enum STOMPBroker: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case activeMQ, rabbitMQ

    var testDescription: String { rawValue }

    /// Those that tests run with here.
    static let usable = allCases.filter { $0 == .activeMQ ? Broker.activeMQ.isUsable : Broker.rabbitMQ.isUsable }

    /// A client of the shared instance of this broker.
    func client(_ change: (inout STOMPConfiguration) -> Void = { _ in }) async throws -> STOMPClient {
        client(port: try await port(), change)
    }

    /// Where the shared instance listens.
    func port() async throws -> Int {
        switch self {
        case .activeMQ: try await SharedBrokers.activeMQ().stompPort
        case .rabbitMQ: try await SharedBrokers.rabbitMQ().stompPort
        }
    }

    /// What a connection by hand says first; both brokers take it.
    static let rawConnect = "CONNECT\naccept-version:1.2\nhost:/\nlogin:guest\npasscode:guest\n\n\0"

    /// A connection by hand to the shared instance, with CONNECTED read.
    func rawConnection() async throws -> RawConnection {
        let connection = try await RawConnection.open(port: port())
        try await connection.send(Self.rawConnect)
        let answer = try await connection.receiveFrame()
        guard answer.hasPrefix("CONNECTED\n") else { throw TimeoutError("'\(answer)' came instead of CONNECTED") }
        return connection
    }

    /// The same, connected.
    func connected(_ change: (inout STOMPConfiguration) -> Void = { _ in }) async throws -> STOMPClient {
        let client = try await client(change)
        try await client.connect()
        return client
    }

    /// A client of the instance of this broker that tests stop, kill and freeze.
    func ownClient(_ change: (inout STOMPConfiguration) -> Void = { _ in }) async throws -> STOMPClient {
        let port =
            switch self {
            case .activeMQ: try await OwnBrokers.activeMQ.value().stompPort
            case .rabbitMQ: try await OwnBrokers.rabbitMQ.value().stompPort
            }
        return client(port: port) { configuration in
            if self == .activeMQ {
                configuration.credentials = Credentials(userName: "ann", password: "secret")
            }
            change(&configuration)
        }
    }

    /// That instance.
    func own() async throws -> any RunningBroker {
        switch self {
        case .activeMQ: try await OwnBrokers.activeMQ.value()
        case .rabbitMQ: try await OwnBrokers.rabbitMQ.value()
        }
    }

    private func client(port: Int, _ change: (inout STOMPConfiguration) -> Void) -> STOMPClient {
        var configuration = STOMPConfiguration()
        configuration.allowSlowBrokers()
        configuration.reconnect.initialDelay = .milliseconds(50)
        configuration.reconnect.maximumDelay = .milliseconds(300)
        if self == .rabbitMQ { configuration.credentials = Credentials(userName: "guest", password: "guest") }
        change(&configuration)
        return STOMPClient("stomp://127.0.0.1:\(port)", configuration: configuration)
    }
}

/// Brokers that the suites about failure share; each of those is serialized.
enum OwnBrokers {
    /// Two users, one of them with a backslash in name and password, persistence, queues that obey priorities.
    static let activeMQ = StartedOnce {
        try await ActiveMQ.start {
            $0.users = [BrokerUser("ann", password: "secret"), BrokerUser(#"do\main"#, password: #"pass\nword"#)]
            $0.persistence = true
            $0.destinationPolicy = """
                <destinationPolicy><policyMap><policyEntries>
                <policyEntry queue="priority.>" prioritizedMessages="true" useCache="false" queuePrefetch="1"/>
                </policyEntries></policyMap></destinationPolicy>
                """
        }
    }

    /// Two users, one of them with a backslash in name and password, and a second virtual host.
    static let rabbitMQ = StartedOnce {
        try await RabbitMQ.start {
            $0.mqtt = false
            // As JSON has it.
            $0.users.append(BrokerUser(#"do\\main"#, password: #"pass\\word:1"#))
            $0.virtualHosts.append("second")
            // As it is unless configured otherwise.
            $0.extraLines = ["web_stomp.ws_frame = text"]
        }
    }
}

extension STOMPSubscription {
    /// The next `count` messages.
    func first(_ count: Int, within timeout: Duration = .patience) async throws -> [STOMPMessage] {
        try await withTimeout(timeout, "the arrival of \(count) messages") {
            var messages: [STOMPMessage] = []
            for try await message in self {
                messages.append(message)
                if messages.count == count { break }
            }
            return messages
        }
    }

    /// The texts of the next `count` messages.
    func texts(_ count: Int, within timeout: Duration = .patience) async throws -> [String] {
        try await first(count, within: timeout).map { $0.text ?? "not UTF-8" }
    }
}

/// Expects a `STOMPError` with that code, and returns it.
@discardableResult
func expectError(
    _ code: STOMPError.Code, sourceLocation: SourceLocation = #_sourceLocation, _ body: () async throws -> Void
) async -> STOMPError? {
    do {
        try await body()
        Issue.record("nothing was thrown; expected \(code)", sourceLocation: sourceLocation)
        return nil
    } catch let error as STOMPError {
        #expect(error.code == code, "\(error)", sourceLocation: sourceLocation)
        return error
    } catch {
        Issue.record("\(error); expected \(code)", sourceLocation: sourceLocation)
        return nil
    }
}
