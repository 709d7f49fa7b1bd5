import Foundation
import LoopbackBroker
import MQTT
import STOMP

/// The ways to a broker beside plain TCP, each against plain TCP to the same broker, which is our own in this process: its
/// work is in every figure, so that the ratios say less than a layer alone would.
struct StreamRows {
    let rounds: Int
    let scale: Double
    private static let certificates = Shell.sources.appending(path: "../../TestSupport/Certificates").standardized
    private let authority = certificates.appending(path: "authority.pem").path
    private let certificate = certificates.appending(path: "server.pem").path
    private let key = certificates.appending(path: "server.key").path

    func all() async throws -> [Row] {
        var options = LoopbackBrokerOptions()
        options.tls = TLSServerOptions(identity: TLSIdentity(certificates: .file(certificate), key: .file(key)))
        let broker = try await LoopbackBroker.start(options)
        let urls = broker.urls
        var rows: [Row] = []
        for (name, url) in [("TLS", urls.mqtts), ("WebSocket", urls.ws), ("WebSocket over TLS", urls.wss)] {
            let row = Row("MQTT QoS 0 publish, arrays of 100, \(name); limit: TCP", unit: "msg/s", goal: "–")
            rows.append(try await compared(row, 1_000_000, url, plain: urls.mqtt, publish))
        }
        for (name, url) in [("TLS", urls.stomps), ("WebSocket", urls.ws), ("WebSocket over TLS", urls.wss)] {
            let row = Row("STOMP send, \(name); limit: TCP", unit: "frames/s", goal: "–")
            rows.append(try await compared(row, 300_000, url, plain: urls.stomp, send))
        }
        await broker.stop()
        return rows
    }

    private func compared(
        _ row: Row, _ count: Int, _ url: String?, plain: String?, _ run: (Int, String) async throws -> Costs
    ) async throws -> Row {
        let count = max(1, Int(Double(count) * scale) / 1000) * 1000
        var row = row
        for _ in 0..<rounds {
            let limit = Double(count) / (try await run(count, plain ?? "")).seconds
            row.add(try await run(count, url ?? ""), count, limit: limit)
        }
        return row
    }

    private func publish(_ count: Int, _ url: String) async throws -> Costs {
        var configuration = MQTTConfiguration(clientID: "stream")
        configuration.tls.trust = .authorities([.file(authority)])
        let client = MQTTClient(url, configuration: configuration)
        try await client.connect()
        let message = MQTTOutgoingMessage([UInt8](repeating: 0x70, count: 24), to: MQTTRows.topic, qos: .atMostOnce)
        let array = [MQTTOutgoingMessage](repeating: message, count: 100)
        let costs = try await measured(calls: client.calls) {
            for _ in 0..<(count / 100) { try await client.publish(array).check() }
            try await client.publish(message.payload, to: MQTTRows.topic, qos: .atLeastOnce)
        }
        await client.disconnect()
        return costs
    }

    private func send(_ count: Int, _ url: String) async throws -> Costs {
        var configuration = STOMPConfiguration()
        configuration.tls.trust = .authorities([.file(authority)])
        let client = STOMPClient(url, configuration: configuration)
        try await client.connect()
        let costs = try await measured(calls: client.calls) {
            for _ in 0..<count {
                try await client.send(STOMPRows.body, to: STOMPRows.destination, options: STOMPRows.options)
            }
            try await client.sendAndConfirm(STOMPRows.body, to: STOMPRows.destination, options: STOMPRows.options)
        }
        await client.disconnect()
        return costs
    }
}
