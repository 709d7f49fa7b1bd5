import MQTT
import MQTTCore
import Synchronization
import TestSupport
import Testing

/// The CONNECT of a client with changed options.
private func connect(
    _ version: MQTTVersion = .v5_0, _ change: @escaping @Sendable (inout MQTTConfiguration) -> Void
) async throws -> MQTTPacket.Connect {
    let seen = Mutex<MQTTPacket.Connect?>(nil)
    let server = ScriptedServer { step in
        guard case .connectReceived(let connect) = step.event else { return }
        seen.withLock { $0 = connect }
        step.accept()
    }
    let client = server.client {
        $0.version = version
        change(&$0)
    }
    try await client.connect()
    await client.disconnect()
    return try #require(seen.withLock { $0 })
}

extension OptionTableTests {
    /// Options that CONNECT tells the server.
    static let connectRows: [OptionRow] = [
        OptionRow("clientID") { try await verify(connect { $0.clientID = "mine" }.clientID == "mine") },
        OptionRow("version") { try await verify(connect(.v3_1) { _ in }.version == .v3_1) },
        OptionRow("cleanStart") { try await verify(!connect { $0.cleanStart = false }.cleanStart) },
        OptionRow("sessionExpiry") {
            try await verify(connect { $0.sessionExpiry = .seconds(7) }.properties.sessionExpiryInterval == 7)
            try await verify(connect { $0.sessionExpiry = .milliseconds(1) }.properties.sessionExpiryInterval == 1)
            let error = await #expect(throws: MQTTError.self) {
                _ = try await connect { $0.sessionExpiry = .seconds(-1) }
            }
            #expect(error?.code == .invalidRequest && error?.message.contains("sessionExpiry is -1.0 seconds") == true)
        },
        OptionRow("keepAlive") {
            try await verify(connect { $0.keepAlive = .seconds(7) }.keepAlive == 7)
            // It is not turned off.
            try await verify(connect { $0.keepAlive = .milliseconds(500) }.keepAlive == 1)
            let error = await #expect(throws: MQTTError.self) { _ = try await connect { $0.keepAlive = .seconds(-1) } }
            #expect(error?.code == .invalidRequest && error?.message.contains("keepAlive is -1.0 seconds") == true)
        },
        OptionRow("will") { try await verify(connect { $0.will = will }.will == will) },
        OptionRow("will.topic") { try await verify(connect { $0.will = will }.will?.topic == "gone") },
        OptionRow("will.payload") { try await verify(connect { $0.will = will }.will?.payload == [1, 2]) },
        OptionRow("will.qos") { try await verify(connect { $0.will = will }.will?.qos == .exactlyOnce) },
        OptionRow("will.retain") { try await verify(connect { $0.will = will }.will?.retain == true) },
        OptionRow("will.properties") {
            try await verify(connect { $0.will = will }.will?.properties.contentType == "text/plain")
        },
        OptionRow("credentials") {
            let connect = try await connect { $0.credentials = Credentials(userName: "ann", password: "key") }
            #expect(connect.userName == "ann" && connect.password == Array("key".utf8))
        },
        OptionRow("connectProperties") {
            let connect = try await connect { $0.connectProperties.requestResponseInformation = true }
            #expect(connect.properties.requestResponseInformation == true)
        },
        OptionRow("receiveMaximum") {
            try await verify(connect { $0.receiveMaximum = 7 }.properties.receiveMaximum == 7)
        },
        OptionRow("maximumPacketSize") {
            try await verify(connect { $0.maximumPacketSize = 7_000 }.properties.maximumPacketSize == 7_000)
        },
        OptionRow("maximumControlPacketSize", shownBy: TimeToConnectTests.`the largest control packet is an option`),
        OptionRow(
            "dropsInvalidMessages",
            shownBy: BlockedSessionTests
                .`with dropsInvalidMessages such a message is acknowledged, dropped and reported`),
        OptionRow("topicAliasMaximum") {
            try await verify(connect { $0.topicAliasMaximum = 7 }.properties.topicAliasMaximum == 7)
        },
        OptionRow("authentication.method") {
            let connect = try await connect {
                $0.authentication = MQTTAuthentication(method: "PLUS") {
                    nil
                } respond: { _ in
                    nil
                }
            }
            #expect(connect.properties.authenticationMethod == "PLUS")
        },
        OptionRow("authentication.begin") {
            let connect = try await connect {
                $0.authentication = MQTTAuthentication(method: "PLUS") {
                    [9]
                } respond: { _ in
                    nil
                }
            }
            #expect(connect.properties.authenticationData == [9])
        },
    ]

    private static let will: MQTTWill = {
        var properties = MQTTProperties()
        properties.contentType = "text/plain"
        return MQTTWill([1, 2], to: "gone", qos: .exactlyOnce, retain: true, properties: properties)
    }()
}
