package import Inspector
package import MessagingHTTPCore
internal import MessagingWebPages
import Synchronization

/// The headquarters pages: the files that are built in, and for each page the broker that it is to open.
package struct PageSite: PageContent {
    /// The page that `/` leads to.
    package var first: Device
    /// For each page the WebSocket URL that it connects to by itself.
    package var brokers: [Device: String]
    /// What the inspector shows; without it there is no inspector.
    package var frames: FrameLog?
    /// Publishes for the inspector's publish pane; without it there is no such pane.
    package var publisher: PagePublisher?
    /// Where the recording was made, which the map shows; nil if that is unknown.
    package var place: String?

    package init(
        first: Device, brokers: [Device: String], frames: FrameLog? = nil,
        publisher: PagePublisher? = nil, place: String? = nil
    ) {
        self.first = first
        self.brokers = brokers
        self.frames = frames
        self.publisher = publisher
        self.place = place
    }

    package func response(to request: AdmittedRequest) -> HTTPResponse {
        if request.path == "/" { return redirect(request, to: first) }
        // A page without a broker in its query is the visitor's way in: it is given one, as panel.js documents.
        if let page = Device.allCases.first(where: { "/" + Self.name(of: $0) == request.path }),
            brokers[page] != nil, !request.hasParameter("url")
        {
            return redirect(request, to: page)
        }
        // A name among the built-in ones or nothing: no path of a request ever reaches a file system.
        guard let file = WebPages.file(String(request.path.dropFirst())) else {
            return .text(404, "There is nothing at this address.")
        }
        return HTTPResponse(
            status: 200,
            fields: [
                "Content-Type": file.contentType, "Content-Security-Policy": Self.policy,
                // Servers of street tiles want to know who asks, and get no more than the origin.
                "Referrer-Policy": "strict-origin-when-cross-origin",
            ], body: file.bytes)
    }

    /// Leads to a page with the query that came, and with the page's broker and place unless the query names a
    /// broker.
    private func redirect(_ request: AdmittedRequest, to page: Device) -> HTTPResponse {
        var parts = request.query.map { [$0] } ?? []
        if !request.hasParameter("url"), let broker = brokers[page] {
            parts.append("url=" + PercentEncoding.encode(broker))
            if page == .locations, let place { parts.append("place=" + PercentEncoding.encode(place)) }
        }
        let query = parts.isEmpty ? "" : "?" + parts.joined(separator: "&")
        let location = "\(request.prefix)/\(Self.name(of: page))\(query)"
        return HTTPResponse(status: 302, fields: ["Location": location])
    }

    private static func name(of page: Device) -> String {
        switch page {
        case .locations: "locations.html"
        case .motions: "motions.html"
        }
    }

    /// What the pages do, and nothing else: their own files, any broker, street tiles, a worker for heart-beats.
    private static let policy = """
        default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: https://tile.openstreetmap.org; \
        connect-src 'self' ws: wss:; worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'
        """
}

extension PageServer {
    /// Serves the headquarters pages and, with a log, the inspector beside them.
    ///
    /// - Parameter port: 0 takes a free one.
    /// - Throws: `TransportError` with the code `cannotListen` when the port is taken.
    package static func start(_ site: PageSite, port: UInt16 = 0) async throws -> PageServer {
        let links = [(name: "Locations", target: "locations.html"), (name: "Motions", target: "motions.html")]
        var publish: InspectorPage.Publish?
        if let publisher = site.publisher { publish = { try await publisher.publish($0, $1) } }
        return try await start(
            site.frames.map { FrameService($0, publish: publish, heading: "Headquarters", links: links) },
            content: site, port: port)
    }
}

/// Publishes what visitors type into the inspector's publish pane, with the client of the program's first device.
package final class PagePublisher: Sendable {
    private struct Closure: Sendable {
        let call: InspectorPage.Publish
    }

    private let closure = Mutex<Closure?>(nil)

    package init() {}

    /// Publishes with this closure from now on.
    package func use(_ publish: @escaping InspectorPage.Publish) {
        closure.withLock { $0 = Closure(call: publish) }
    }

    func publish(_ topic: String, _ payload: [UInt8]) async throws {
        guard let closure = closure.withLock({ $0 }) else {
            throw DeviceFailure(.unavailable, "No device has started yet. Try again in a moment.")
        }
        try await closure.call(topic, payload)
    }
}
