import Foundation
import MQTTCore
import TestSupport
import Testing

@testable import MQTT

/// What errors advise is what helps.
@Suite("Client: advice in errors", .turns)
struct AdviceTests {
    @Test func `a QoS 0 message without a connection names the ways to one, also while suspended`() async throws {
        let bench = try await Bench()
        let client = bench.client()
        func advice() async -> String {
            do throws(MQTTError) {
                try await client.publish("x", to: "a")
            } catch {
                return error.message
            }
            return "nothing was thrown"
        }
        #expect(await advice().contains("Call connect()"))
        try await client.connect()
        await client.suspend()
        #expect(await advice().contains("resume() if the client is suspended"))
        await client.disconnect()
        await bench.stop()
    }

    @Test func `a server that sends AUTH is not suspected to be older than 5_0`() {
        func message(_ clause: String) -> String {
            MQTTError(
                .violation(MQTTProtocolError(.protocolError, "wrong", clause: clause)), isAnswerToConnect5: true
            ).message
        }
        #expect(!message("MQTT-4.12.0-7").contains("older"))
        #expect(!message("MQTT 5.0 3.15.2.1").contains("older"))
        #expect(message("MQTT-3.2.0-1").contains("older than MQTT 5.0"))
    }

    @Test func `an ordinary DISCONNECT of the server is a normal disconnection and no success`() {
        #expect(
            MQTTError(disconnect: .normalDisconnection, properties: []).message.contains("normal disconnection (0x00)"))
        let reason: MQTTProperties = [MQTTProperty(.reasonString, .string("bye"))]
        let message = MQTTError(disconnect: .normalDisconnection, properties: reason).message
        #expect(message.contains(": normal disconnection (0x00): bye. "))
        #expect(MQTTError(disconnect: .serverBusy, properties: []).message.contains("server busy"))
    }

    @Test(arguments: ["bad user name or password", "Bad User Name or Password.", "bad_user_name_or_password", ""])
    func `a Reason String that repeats the name of its code is not shown again`(reason: String) {
        let error = MQTTError(
            refusal: .badUserNameOrPassword, properties: [MQTTProperty(.reasonString, .string(reason))])
        #expect(
            error.message
                == "The server refused the connection: bad user name or password (0x86). Check user name and password.")
        #expect(error.description == error.message && error.localizedDescription == error.message)
        let detailed = MQTTError(
            refusal: .badUserNameOrPassword, properties: [MQTTProperty(.reasonString, .string("user ann is locked"))])
        #expect(detailed.message.contains(" (0x86): user ann is locked. "))
    }

    @Test func `a refused authentication method does not blame user name and password`() {
        let error = MQTTError(refusal: .badAuthenticationMethod, properties: [])
        #expect(error.code == .badCredentials)
        #expect(error.message.contains("authentication method") && !error.message.contains("password"))
    }
}
