package import MessagingFrames
import MessagingHTTPCore

/// The inspector's part of a page server: its files, its frames, and what visitors may do.
package struct FrameService: Sendable {
    let feed: FrameFeed
    let publish: InspectorPage.Publish?
    /// The heading that the pages of the same server have in common.
    let heading: String
    /// Pages of the same server that the inspector links to, by the names of the links.
    let links: [(name: String, target: String)]

    package init(
        _ log: FrameLog, publish: InspectorPage.Publish? = nil, heading: String = "Inspector",
        links: [(name: String, target: String)] = []
    ) {
        feed = FrameFeed(log)
        self.publish = publish
        self.heading = heading
        self.links = links
    }

    func answer(_ route: FrameRoute, _ request: AdmittedRequest, body: [UInt8]) -> PageRouter.Answer {
        switch route {
        case .page: .response(file("text/html", PackageResources.inspector_html))
        case .style: .response(file("text/css", PackageResources.inspector_css))
        case .colours: .response(file("text/css", PackageResources.inspector_colours_css))
        case .script: .response(file("text/javascript", PackageResources.inspector_js))
        case .topics: .response(file("text/javascript", PackageResources.inspector_topics_js))
        case .tree: .response(file("text/javascript", PackageResources.inspector_tree_js))
        case .chart: .response(file("text/javascript", PackageResources.inspector_chart_js))
        case .table: .response(file("text/javascript", PackageResources.inspector_table_js))
        case .events: events(request)
        case .frame: .response(frame(request))
        case .capture: .response(capture())
        case .pause, .resume, .clear: .response(order(route))
        case .publish: publication(request, body)
        }
    }

    private func file(_ type: String, _ bytes: [UInt8]) -> HTTPResponse {
        .data("\(type); charset=utf-8", bytes, ["Content-Security-Policy": Self.policy])
    }

    private func events(_ request: AdmittedRequest) -> PageRouter.Answer {
        // A browser that connects again by itself says where it was.
        let last = request.field("Last-Event-ID") ?? request.parameter("since")
        if request.method == "HEAD" { return .response(.data("text/event-stream", [])) }
        let position = FramePosition(
            cursor: last.flatMap { UInt64($0) } ?? 0, clearCount: request.parameter("clears").flatMap { Int($0) })
        guard let reader = feed.reader(since: position, hello: hello) else {
            return .response(.text(503, "\(FrameFeed.maximumReaders) pages are open. Close one of them."))
        }
        return .stream(reader)
    }

    /// What a page has to know once.
    private var hello: String {
        let links = links.map { "[\(JSON.quoted($0.name)),\(JSON.quoted($0.target))]" }.joined(separator: ",")
        return #"{"heading":\#(JSON.quoted(heading)),"links":[\#(links)],"publishes":\#(publish != nil)}"#
    }

    private func frame(_ request: AdmittedRequest) -> HTTPResponse {
        guard let frame = request.parameter("number").flatMap({ UInt64($0) }).flatMap(feed.log.frame) else {
            return .text(404, "This frame has been dropped from the log.")
        }
        return .data("application/json; charset=utf-8", Array(JSON.details(frame).utf8))
    }

    private func capture() -> HTTPResponse {
        .data(
            "application/x-pcapng", feed.log.pcapng(),
            ["Content-Disposition": "attachment; filename=\"frames.pcapng\""])
    }

    private func order(_ route: FrameRoute) -> HTTPResponse {
        switch route {
        case .pause: feed.log.pause()
        case .resume: feed.log.resume()
        default: feed.log.clear()
        }
        return .text(200, "Done.")
    }

    private func publication(_ request: AdmittedRequest, _ body: [UInt8]) -> PageRouter.Answer {
        guard let publish else { return .response(.text(404, "This program does not publish for its page.")) }
        guard let topic = request.parameter("topic"), !topic.isEmpty else {
            return .response(.text(400, "The topic is missing. Write it into the field above the payload."))
        }
        return .publication { try await publish(topic, body) }
    }

    /// What the page does, and nothing else: its own files and frames.
    private static let policy = """
        default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; \
        base-uri 'none'; form-action 'none'; frame-ancestors 'none'
        """
}
