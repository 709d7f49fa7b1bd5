import Inspector
import LoopbackBroker
import MessagingShell

/// What a program starts when no broker is named: a broker of its own, and the headquarters page beside it.
struct EmbeddedBroker: Sendable {
    private let broker: LoopbackBroker
    private let page: PageServer?
    /// What the inspector page shows; nil without a page.
    let frames: FrameLog?
    /// Publishes what visitors of the inspector type; nil without a page.
    let publisher: PagePublisher?
    /// Of the broker for each protocol, that of the program's own devices first.
    let urls: [String]
    /// Nil without a page.
    let pageAddress: String?
    /// One line per address, to be printed.
    let lines: [String]

    /// Where the broker listens unless it is asked for another port.
    struct UsualPorts {
        var mqtt = 1883
        var stomp = 61613
        var ws = 61614
    }

    /// Serves both protocols on their usual ports of the loopback interface, or on others where those are taken, and
    /// the page on any; a port that was asked for is used and no other.
    static func start(
        for device: Device, _ wishes: DeviceOptions, place: String?, usualPorts: UsualPorts = UsualPorts()
    ) async throws(DeviceFailure) -> EmbeddedBroker {
        var options = LoopbackBrokerOptions()
        // A port that was asked for is left to the listener that it was asked for.
        let taken = [wishes.port, wishes.pagePort]
        func usual(_ port: Int) -> LoopbackBrokerOptions.Port { taken.contains(port) ? .free : .preferred(port) }
        options.mqttPort = usual(usualPorts.mqtt)
        options.stompPort = usual(usualPorts.stomp)
        options.wsPort = usual(usualPorts.ws)
        if let port = wishes.port {
            switch device {
            case .locations: options.stompPort = .exactly(port)
            case .motions: options.mqttPort = .exactly(port)
            }
        }
        let broker: LoopbackBroker
        do {
            broker = try await LoopbackBroker.start(options)
        } catch {
            throw failure(of: "embedded broker", option: "--port", error)
        }
        guard wishes.servesPage else { return EmbeddedBroker(broker, page: nil, for: device) }
        let webSocket = broker.urls.ws ?? ""
        let site = PageSite(
            first: device, brokers: [.locations: webSocket, .motions: webSocket], frames: FrameLog(limit: 2_000),
            publisher: PagePublisher(), place: place)
        do {
            let page = try await PageServer.start(site, port: UInt16(wishes.pagePort ?? 0))
            return EmbeddedBroker(broker, page: page, site, for: device)
        } catch {
            await broker.stop()
            throw failure(of: "headquarters page", option: "--page-port", error)
        }
    }

    private static func failure(of listener: String, option: String, _ error: any Error) -> DeviceFailure {
        let reason = "\(error)".replacing("Cannot listen", with: "cannot listen")
        return DeviceFailure(.unavailable, "the \(listener) \(reason) Give another port with \(option)")
    }

    private init(_ broker: LoopbackBroker, page: PageServer?, _ site: PageSite? = nil, for device: Device) {
        self.broker = broker
        self.page = page
        frames = site?.frames
        publisher = site?.publisher
        pageAddress = page?.address
        let (mqtt, stomp, ws) = (broker.urls.mqtt, broker.urls.stomp, broker.urls.ws)
        urls = (device == .motions ? [mqtt, stomp, ws] : [stomp, mqtt, ws]).compactMap { $0 }
        lines =
            urls.map { "embedded broker: \($0)" }
            + (page.map { ["headquarters page: \($0.address)"] } ?? [])
    }

    func stop() async {
        await page?.stop()
        await broker.stop()
    }
}
