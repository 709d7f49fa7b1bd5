package import MessagingHTTPCore

/// Decides what a request gets.
///
/// Everything of the inspector needs the token in its path and has to come from this machine's own pages:
///
///     GET  /TOKEN/inspector.html   and the page's other files
///     GET  /TOKEN/events?since=N   a stream of updates (server-sent events): the frames after number N; with `&clears=C`,
///                                  how often the log had been cleared then, also how many of them are gone
///     GET  /TOKEN/frame?number=N   everything about one frame
///     GET  /TOKEN/frames.pcapng    all frames, for Wireshark
///     POST /TOKEN/pause, resume, clear
///     POST /TOKEN/publish?topic=T  the body is the payload
struct PageRouter: Sendable {
    enum Answer {
        case response(HTTPResponse)
        case stream(FrameReader)
        case publication(@Sendable () async throws -> Void)
    }

    let token = PageToken()
    let frames: FrameService?
    let content: (any PageContent)?

    func answer(to request: PageRequest, body: [UInt8]) -> Answer {
        let route = route(of: request)
        if route == nil, content != nil, !request.isRead {
            return .response(.text(405, "Only GET and HEAD are served here.", ["Allow": "GET, HEAD"]))
        }
        guard let request = AdmittedRequest(request) else {
            return refused("These pages are shown at the address of this machine alone, such as http://127.0.0.1.")
        }
        // The token without the slash that relative links need.
        if request.path.isEmpty, request.isRead {
            return .response(.text(302, "See /\(token.text)/.", ["Location": "/\(token.text)/"]))
        }
        if let route {
            guard request.hasToken else {
                return refused("The address lacks its token. Open the whole address that the program reported.")
            }
            guard route.allows(request) else {
                let method = route.isOrder ? "POST" : "GET"
                return .response(.text(405, "Use \(method) here.", ["Allow": method]))
            }
            guard let frames else { return .response(.text(404, "This program records no frames.")) }
            return frames.answer(route, request, body: body)
        }
        guard let content else {
            return request.hasToken
                ? .response(.text(404, "There is nothing at this address."))
                : refused("The address lacks its token. Open the whole address that the program reported.")
        }
        return .response(content.response(to: request))
    }

    private func route(of request: PageRequest) -> FrameRoute? {
        if let route = FrameRoute(rawValue: request.path) { return route }
        return content == nil && request.path == "/" ? .page : nil
    }

    private func refused(_ sentence: String) -> Answer {
        .response(.text(403, sentence))
    }
}

/// The addresses of the inspector behind the token.
enum FrameRoute: String {
    case page = "/inspector.html"
    case style = "/inspector.css"
    case colours = "/inspector-colours.css"
    case script = "/inspector.js"
    case topics = "/inspector-topics.js"
    case tree = "/inspector-tree.js"
    case chart = "/inspector-chart.js"
    case table = "/inspector-table.js"
    case events = "/events"
    case frame = "/frame"
    case capture = "/frames.pcapng"
    case pause = "/pause"
    case resume = "/resume"
    case clear = "/clear"
    case publish = "/publish"

    /// Whether it changes something.
    var isOrder: Bool {
        switch self {
        case .pause, .resume, .clear, .publish: true
        default: false
        }
    }

    func allows(_ request: AdmittedRequest) -> Bool {
        isOrder ? request.method == "POST" : request.isRead
    }
}

/// Pages that a server offers beside the inspector's: those of the programs that bring it along.
package protocol PageContent: Sendable {
    /// The answer to a request for anything that is not the inspector's.
    ///
    /// HEAD is asked like GET; the server leaves the body out.
    func response(to request: AdmittedRequest) -> HTTPResponse
}
