import LoopbackBroker
import MQTTCore
import Messaging
import Testing
import Transport

@testable import MQTT

/// Clients of equal configurations share the memory of their options.
@Suite("Options: equality, for what clients share")
struct EqualConfigurationTests {
    @Test func `a copy is equal, also with options that cannot be compared`() {
        var configuration = MQTTConfiguration(clientID: "a")
        configuration.sessionStore = MemorySessionStore()
        configuration.credentialsProvider = { _ in nil }
        configuration.webSocket.headers = [("Origin", "here")]
        var copy = configuration
        #expect(copy == configuration)
        copy.webSocket.headers = [("Origin", "here")]
        #expect(copy == configuration)
        // Another assignment is another value: closures cannot be compared.
        copy.credentialsProvider = { _ in nil }
        #expect(copy != configuration)
    }

    @Test func `one option of a layer makes a difference`() {
        let configuration = MQTTConfiguration()
        #expect(configuration == MQTTConfiguration())
        let changes: [(inout MQTTConfiguration) -> Void] = [
            { $0.clientID = "b" }, { $0.keepAlive = .seconds(58) }, { $0.tls.serverName = "b" },
            { $0.sessionStore = MemorySessionStore() }, { $0.webSocket.headers = [("Origin", "there")] },
            { $0.webSocket.subprotocols = [] }, { $0.webSocket.sendsText = true },
            { $0.webSocket.validatesText = false }, { $0.webSocket.maximumFrameSize = 1 },
        ]
        for change in changes {
            var other = configuration
            change(&other)
            #expect(other != configuration)
        }
    }

    @Test func `an accepted client still uses the engine options that all clients of its settings share`() async throws
    {
        let bench = try await Bench { $0.users = [.init(name: "ann", password: "right")] }
        let client = try await bench.connected("sharing") {
            $0.credentials = Credentials(userName: "ann", password: "right")
        }
        #expect(client.core.link.perform { $0.engine.options } === client.core.settings.engine)
        #expect(client.clientID == "sharing" && client.core.settings.engine.value.clientID.isEmpty)
        await client.disconnect()
        await bench.stop()
    }

    @Test func `credentials of one connection belong to its client alone`() async throws {
        let bench = try await Bench { $0.users = [.init(name: "ann", password: "right")] }
        let client = try await bench.connected {
            $0.credentialsProvider = { _ in Credentials(userName: "ann", password: "right") }
        }
        #expect(client.core.link.perform { $0.engine.options.value.userName } == "ann")
        #expect(client.core.settings.engine.value.userName == nil)
        await client.disconnect()
        await bench.stop()
    }
}
