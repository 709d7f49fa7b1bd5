import Synchronization

/// Brokers, and a browser, that all suites of a test process share, started when first asked for and ended when the process exits.
///
/// A test that stops, kills or freezes a broker starts its own. In a shared one, a test uses destinations and client
/// identifiers of its own.
public enum SharedBrokers {
    private static let mosquittoSlot = StartedOnce { try await Mosquitto.start { $0.webSocket = true } }
    private static let rabbitMQSlot = StartedOnce {
        try await RabbitMQ.start {
            $0.users.append(limitedUser)
            $0.topics[limitedUser.name] = "^healthy.*"
            $0.tls = Certificates().brokerTLS()
        }
    }
    private static let activeMQSlot = StartedOnce { try await ActiveMQ.start() }
    private static let browserSlot = StartedOnce { try await Browser.start() }

    /// Anonymous clients, a WebSocket listener, no persistence.
    public static func mosquitto() async throws -> Mosquitto { try await mosquittoSlot.value() }

    /// Whom RabbitMQ lets publish and subscribe to topics that begin with `healthy` alone.
    public static let limitedUser = BrokerUser("limited", password: "limited")

    /// User `guest` with password `guest`, `limitedUser`, virtual host `/`, all plugins, with TLS and without.
    public static func rabbitMQ() async throws -> RabbitMQ { try await rabbitMQSlot.value() }

    /// Anonymous clients, no persistence.
    public static func activeMQ() async throws -> ActiveMQ { try await activeMQSlot.value() }

    /// A Chromium, whose tabs share nothing with each other.
    public static func browser() async throws -> Browser { try await browserSlot.value() }
}

/// Starts once, however many ask at the same time; a failed start is reported to each of them and not tried again.
public final class StartedOnce<Value: Sendable>: Sendable {
    private let task = Mutex<Task<Value, any Error>?>(nil)
    private let start: @Sendable () async throws -> Value

    public init(_ start: @escaping @Sendable () async throws -> Value) {
        self.start = start
    }

    /// What has started. A test that waits for it lends its turn to another one.
    public func value() async throws -> Value {
        let running = task.withLock { task in
            // Detached: a cancelled first test must not take the broker from the others.
            let running = task ?? Task.detached { [start] in try await start() }
            task = running
            return running
        }
        return try await Turn.lend { try await running.value }
    }
}
