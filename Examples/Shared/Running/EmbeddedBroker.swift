import LoopbackBroker

/// The broker that a program brings along when it is told of none.
struct EmbeddedBroker: Sendable {
    private let broker: LoopbackBroker
    /// Where the program's own devices connect to.
    let url: String
    /// One line per port, to be printed.
    let lines: [String]

    /// Serves both protocols on their usual ports of the loopback interface, or on others where those are taken.
    static func start(for device: Device) async throws(DeviceFailure) -> EmbeddedBroker {
        var options = LoopbackBrokerOptions()
        options.mqttPort = .preferred(1883)
        options.stompPort = .preferred(61613)
        do {
            return EmbeddedBroker(try await LoopbackBroker.start(options), for: device)
        } catch {
            throw DeviceFailure(.unavailable, "the embedded broker cannot listen on loopback: \(error)")
        }
    }

    private init(_ broker: LoopbackBroker, for device: Device) {
        self.broker = broker
        let mqtt = broker.ports.mqtt.map { "mqtt://127.0.0.1:\($0)" }
        let stomp = broker.ports.stomp.map { "stomp://127.0.0.1:\($0)" }
        url = (device == .motions ? mqtt : stomp) ?? ""
        lines = (device == .motions ? [mqtt, stomp] : [stomp, mqtt]).compactMap { $0 }.map { "embedded broker: \($0)" }
    }

    func stop() async {
        await broker.stop()
    }
}
