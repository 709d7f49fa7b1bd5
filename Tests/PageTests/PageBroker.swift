import LoopbackBroker
import MQTT
import MessagingDeviceSupport
import STOMP
import TestSupport
import Testing

/// A broker that pages and programs are tried against.
enum PageBroker: CaseIterable {
    case embedded, mosquitto, rabbitMQ

    /// Where everybody connects to.
    struct Addresses {
        /// For the page: WebSocket.
        let page: String
        /// For devices: MQTT or STOMP, as the page's app speaks.
        let device: String
        let user: BrokerUser?

        /// A client of the same broker, to be connected.
        func mqttClient(clientID: String = "page-test-%%%%") -> MQTTClient { MQTTClient(device, clientID: clientID) }

        /// A client of the same broker, to be connected.
        func stompClient() -> STOMPClient {
            var configuration = STOMPConfiguration()
            configuration.credentials = user.map { Credentials(userName: $0.name, password: $0.password) }
            return STOMPClient(device, configuration: configuration)
        }
    }

    /// The brokers that speak an app's protocol, without those that are neither installed nor required.
    static func all(for app: Device) -> [PageBroker] {
        allCases.filter {
            $0.real?.isUsable != false && (app == .motions || $0 != .mosquitto)
        }
    }

    private var real: Broker? {
        switch self {
        case .embedded: nil
        case .mosquitto: .mosquitto
        case .rabbitMQ: .rabbitMQ
        }
    }

    /// All of them where `.ci/run` watches the pages for long, and otherwise `usual`, so that a plain `swift test` is short.
    static func most(for app: Device, usual: PageBroker) -> [PageBroker] {
        Headquarters.watchesLong ? all(for: app) : [usual]
    }

    /// Runs `body` with a broker of its own, or with the shared RabbitMQ, whose start takes long.
    func run(for app: Device, _ body: (Addresses) async throws -> Void) async throws {
        let isMotions = app == .motions
        switch self {
        case .embedded:
            let broker = try await LoopbackBroker.start()
            let device = isMotions ? broker.urls.mqtt : broker.urls.stomp
            try await body(Addresses(page: broker.urls.ws ?? "", device: device ?? "", user: nil))
            await broker.stop()
        case .mosquitto:
            let broker = try await Mosquitto.start { $0.webSocket = true }
            let page = "ws://127.0.0.1:\(broker.webSocketPort ?? 0)"
            try await body(Addresses(page: page, device: "mqtt://127.0.0.1:\(broker.port)", user: nil))
            await broker.stop()
        case .rabbitMQ:
            let broker = try await SharedBrokers.rabbitMQ()
            let page = "ws://127.0.0.1:\(isMotions ? broker.webMQTTPort ?? 0 : broker.webStompPort)/ws"
            let device =
                isMotions ? "mqtt://127.0.0.1:\(broker.mqttPort ?? 0)" : "stomp://127.0.0.1:\(broker.stompPort)"
            try await body(Addresses(page: page, device: device, user: broker.user))
        }
    }

    /// Opens the page of an app with this broker, and waits until it is subscribed.
    func withPage(_ app: Device, _ body: (Headquarters, Addresses) async throws -> Void) async throws {
        try await run(for: app) { addresses in
            let page = try await Headquarters.open(app, addresses.page)
            try await page.waitForSubscription()
            try await body(page, addresses)
            #expect(page.tab.problems == [])
            try await page.close()
        }
    }
}
