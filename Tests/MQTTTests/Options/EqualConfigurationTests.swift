import LoopbackBroker
import MQTTCore
import MessagingShell
import TestSupport
import Testing

@testable import MQTT
@testable import Transport

/// Clients of equal configurations share the memory of their options.
@Suite("Options: equality, for what clients share", .turns)
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
            { $0.webSocket.subprotocols = [] }, { $0.webSocket.sendsText = false },
            { $0.webSocket.validatesText = false }, { $0.webSocket.maximumFrameSize = 1 },
            { $0.webSocket.maximumMessageSize = 4 },
        ]
        for change in changes {
            var other = configuration
            change(&other)
            #expect(other != configuration)
        }
    }

    /// Texts that `String` takes for one, but whose bytes differ: two files, two users, two topics.
    @Test func `texts with different bytes are different options, and clients do not share them`() throws {
        let changes: [(inout MQTTConfiguration, String) -> Void] = [
            { $0.credentials = Credentials(userName: $1) },
            { $0.credentials = Credentials(userName: "a", password: $1) },
            { $0.credentials = with(Credentials(), $1) { $0.url = "ws://a/\($1)" } },
            { $0.credentials = with(Credentials(), $1) { $0.query = $1 } },
            { $0.credentials = with(Credentials(), $1) { $0.webSocketHeaders = ["a": $1] } },
            { $0.credentials = with(Credentials(), $1) { $0.webSocketHeaders = [$1: "a"] } },
            { $0.will = MQTTWill("gone", to: $1) },
            { $0.will = MQTTWill("gone", to: "a", properties: [.contentType($1)]) },
            { $0.connectProperties = [.userProperty("key", $1)] },
            { $0.tls.serverName = $1 }, { $0.tls.libraryPath = $1 }, { $0.tls.pinnedKeys = [$1] },
            { $0.tls.keyLogFile = $1 }, { $0.tls.preSharedKey = TLSPreSharedKey(identity: $1, key: [1]) },
            { $0.tls.identity = .stored(key: $1, certificates: .file("a")) }, { $0.tls.applicationProtocols = [$1] },
            { $0.tls.trust = .authorities([.file($1)]) }, { $0.tls.trust = .systemAnd([.text($1)]) },
            { $0.tls.identity = TLSIdentity(certificates: .file($1), key: .file("key")) },
            { $0.tls.identity = TLSIdentity(certificates: .file("a"), key: .file($1)) },
            { $0.tls.identity = .pkcs12(.file("a"), passphrase: $1) },
            { $0.webSocket.headers = [($1, "a")] }, { $0.webSocket.headers = [("a", $1)] },
            { $0.webSocket.subprotocols = [$1] },
            { $0.proxy = .http("http://\($1)") }, { $0.proxy = .socks5("socks5://\($1)") },
        ]
        let (composed, decomposed) = ("caf\u{E9}", "cafe\u{301}")
        #expect(composed == decomposed)
        for (number, change) in changes.enumerated() {
            var one = MQTTConfiguration()
            var other = MQTTConfiguration()
            change(&one, composed)
            change(&other, decomposed)
            #expect(one != other, "change \(number)")
            let settings = MQTTSettings.of(one)
            #expect(MQTTSettings.of(other) !== settings, "change \(number)")
            change(&other, composed)
            #expect(one == other, "change \(number)")
        }
    }

    @Test func `what a configuration holds ends with its last client`() async throws {
        final class Model: Sendable {}
        weak var model: Model?
        do {
            let held = Model()
            model = held
            var configuration = MQTTConfiguration()
            configuration.credentialsProvider = { _ in withExtendedLifetime(held) { nil } }
            let one = MQTTClient("mqtt://localhost", configuration: configuration)
            let other = MQTTClient("mqtt://localhost", configuration: configuration)
            withExtendedLifetime((one, other)) {}
        }
        // A test beside this one may be comparing with the configuration.
        #expect(await eventually { model == nil })
    }

    @Test func `each option of TLS makes a difference`() {
        let changes: [String: (inout TLSOptions) -> Void] = [
            "trust": { $0.trust = .authorities([]) }, "identity": { $0.identity = .pkcs12(.file("a")) },
            "serverName": { $0.serverName = "a" }, "verification": { $0.verification = .unsafeAcceptAnyName },
            "minimumVersion": { $0.minimumVersion = .tls13 }, "applicationProtocols": { $0.applicationProtocols = [] },
            "resumesSessions": { $0.resumesSessions = false }, "implementation": { $0.implementation = .openSSL },
            "libraryPath": { $0.libraryPath = "a" }, "pinnedKeys": { $0.pinnedKeys = ["a"] },
            "additionalCheck": { $0.additionalCheck = { _, _ in } }, "revocation": { $0.revocation = .required },
            "preSharedKey": { $0.preSharedKey = TLSPreSharedKey(identity: "a", key: [1]) },
            "keyLogFile": { $0.keyLogFile = "a" },
        ]
        #expect(Set(changes.keys) == optionNames(ofTLS: ""))
        for (name, change) in changes {
            var other = TLSOptions()
            change(&other)
            #expect(other != TLSOptions(), "\(name)")
        }
    }

    @Test func `an accepted client still uses the engine options that all clients of its settings share`() async throws
    {
        let bench = try await Bench { $0.users = [.init(name: "ann", password: "right")] }
        let client = try await bench.connected("sharing") {
            $0.credentials = Credentials(userName: "ann", password: "right")
        }
        #expect(client.core.link.perform { $0.engine.options } === client.core.settings.engineOptions)
        #expect(client.clientID == "sharing" && client.core.settings.engineOptions.value.clientID.isEmpty)
        await client.disconnect()
        await bench.stop()
    }

    @Test func `credentials of one connection belong to its client alone`() async throws {
        let bench = try await Bench { $0.users = [.init(name: "ann", password: "right")] }
        let client = try await bench.connected {
            $0.credentialsProvider = { _ in Credentials(userName: "ann", password: "right") }
        }
        #expect(client.core.link.perform { $0.engine.options.value.userName } == "ann")
        #expect(client.core.settings.engineOptions.value.userName == nil)
        await client.disconnect()
        await bench.stop()
    }
}

/// A value with one change, made with a text.
private func with<Value>(_ value: Value, _ text: String, _ change: (inout Value, String) -> Void) -> Value {
    var value = value
    change(&value, text)
    return value
}
