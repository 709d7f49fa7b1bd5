import Inspector
import LoopbackBroker
import Messaging

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

    /// Serves both protocols on their usual ports of the loopback interface, or on others where those are taken, and
    /// the page on any; a port that was asked for is used and no other.
    static func start(
        for device: Device, _ wishes: DeviceOptions, place: String?
    ) async throws(DeviceFailure) -> EmbeddedBroker {
        var options = LoopbackBrokerOptions()
        options.mqttPort = .preferred(1883)
        options.stompPort = .preferred(61613)
        options.wsPort = .preferred(61614)
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
