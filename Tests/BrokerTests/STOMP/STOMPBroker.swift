import Testing
import STOMP
import TestSupport

/// The brokers that the STOMP tests run against.
enum STOMPBroker: String, CaseIterable, Sendable, CustomTestStringConvertible {
    case activeMQ, rabbitMQ

    var testDescription: String { rawValue }

    /// A client of the shared instance of this broker.
    func client(_ change: (inout STOMPConfiguration) -> Void = { _ in }) async throws -> STOMPClient {
        var configuration = STOMPConfiguration()
        configuration.reconnect.initialDelay = .milliseconds(50)
        configuration.reconnect.maximumDelay = .milliseconds(500)
        let port: Int
        switch self {
        case .activeMQ: port = try await SharedBrokers.activeMQ().stompPort
        case .rabbitMQ:
            port = try await SharedBrokers.rabbitMQ().stompPort
            configuration.credentials = Credentials(userName: "guest", password: "guest")
        }
        change(&configuration)
        return STOMPClient("stomp://127.0.0.1:\(port)", configuration: configuration)
    }
}

extension STOMPSubscription {
    /// The next `count` messages.
    func first(_ count: Int) async throws -> [STOMPMessage] {
        var messages: [STOMPMessage] = []
        for try await message in self {
            messages.append(message)
            if messages.count == count { break }
        }
        return messages
    }
}
