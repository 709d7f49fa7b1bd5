import TestSupport
import Testing

/// Proof that the Python clients carry bytes unchanged, by letting them talk to each other.
@Suite(.requiresPythonClients, .turns)
struct PythonClientTests {
    private static let body: [UInt8] = [0, 10, 13, 58, 92, 0xFF, 0xC3]

    @Test(.requires(.activeMQ)) func stompPyCarriesAnyBytes() async throws {
        let broker = try await SharedBrokers.activeMQ()
        let receiver = try await PythonClients.stomp(port: broker.stompPort, host: "localhost")
        try await receiver.subscribe(to: "/queue/python-support", id: "1", ack: "client-individual")
        let sender = try await PythonClients.stomp(port: broker.stompPort, host: "localhost")
        try await sender.send(Self.body, to: "/queue/python-support", headers: ["receipt": "sent"])
        #expect(try await sender.next("receipt").headers?["receipt-id"] == "sent")
        let message = try await receiver.next("message")
        #expect(message.bytes == Self.body)
        try await receiver.ack(#require(message.headers?["ack"]))
        try await receiver.close()
        try await sender.close()
    }

    @Test(.requires(.mosquitto), arguments: [4, 5]) func pahoCarriesAnyBytes(version: Int) async throws {
        let broker = try await SharedBrokers.mosquitto()
        let receiver = try await PythonClients.mqtt(port: broker.port, version: version, clientID: "in-\(version)")
        try await receiver.subscribe(to: "python/\(version)/#", qos: 2)
        let sender = try await PythonClients.mqtt(port: broker.port, version: version, clientID: "out-\(version)")
        try await sender.publish(Self.body, to: "python/\(version)/a", qos: 2)
        let message = try await receiver.next("message")
        #expect(message.bytes == Self.body)
        #expect(message.topic == "python/\(version)/a" && message.qos == 2)
        try await receiver.close()
        try await sender.close()
    }
}
