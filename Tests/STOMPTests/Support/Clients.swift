import ClientTestSupport
import LoopbackBroker
import STOMP
import TestSupport
import Testing

/// Runs `body` with a broker of its own.
func withBroker<Result>(
    _ options: LoopbackBrokerOptions = LoopbackBrokerOptions(), _ body: (LoopbackBroker) async throws -> Result
) async throws -> Result {
    let broker = try await LoopbackBroker.judged(options)
    do {
        let result = try await body(broker)
        await broker.stop()
        return result
    } catch {
        await broker.stop()
        throw error
    }
}

extension STOMPConfiguration {
    /// Comes back fast enough for a test.
    static var impatient: STOMPConfiguration {
        var configuration = STOMPConfiguration()
        configuration.reconnect.initialDelay = .milliseconds(10)
        configuration.reconnect.maximumDelay = .milliseconds(50)
        // A busy machine may take longer than the default.
        configuration.requestTimeout = .patience
        return configuration
    }

    /// Limits on real time that only what hangs exceeds: a busy machine may take longer than the defaults.
    mutating func allowSlowMachines() {
        connectTimeout = .patience
        requestTimeout = .patience
        acknowledgementTimeout = .patience
    }
}

extension LoopbackBroker {
    /// A client of this broker that is not yet connected.
    func client(_ change: (inout STOMPConfiguration) -> Void = { _ in }) -> STOMPClient {
        var configuration = STOMPConfiguration.impatient
        configuration.allowSlowMachines()
        change(&configuration)
        return STOMPClient("stomp://127.0.0.1:\(ports.stomp ?? 0)", configuration: configuration)
    }

    /// A client of this broker.
    func connected(_ change: (inout STOMPConfiguration) -> Void = { _ in }) async throws -> STOMPClient {
        let client = client(change)
        try await client.connect()
        return client
    }
}

extension STOMPSubscription {
    /// The next `count` messages.
    func first(_ count: Int) async throws -> [STOMPMessage] {
        try await withTimeout(.patience, "the arrival of \(count) messages") {
            var messages: [STOMPMessage] = []
            for try await message in self {
                messages.append(message)
                if messages.count == count { break }
            }
            return messages
        }
    }

    /// The texts of the next `count` messages.
    func texts(_ count: Int) async throws -> [String] {
        try await first(count).map { $0.text ?? "not UTF-8" }
    }
}

/// Whether `body` throws a `STOMPError` with that code, and with this text in its message.
func expectError(
    _ code: STOMPError.Code, containing text: String = "", sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () async throws -> Void
) async {
    do {
        try await body()
        Issue.record("nothing was thrown; expected \(code)", sourceLocation: sourceLocation)
    } catch let error as STOMPError {
        #expect(error.code == code, "\(error)", sourceLocation: sourceLocation)
        #expect(!error.message.isEmpty, sourceLocation: sourceLocation)
        #expect(text.isEmpty || error.message.contains(text), sourceLocation: sourceLocation)
    } catch {
        Issue.record("\(error); expected \(code)", sourceLocation: sourceLocation)
    }
}
