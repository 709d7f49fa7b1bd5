package import Messaging
internal import WebPages

/// What the page server answers: the files that are built in, and for each page the broker that it is to open.
package struct PageSite: Sendable {
    /// The page that `/` leads to.
    package var first: Device
    /// For each page the WebSocket URL that it connects to by itself.
    package var brokers: [Device: String]
    /// What the inspector shows; without it that page says that there is nothing.
    package var frames: FrameLog?

    package init(first: Device, brokers: [Device: String], frames: FrameLog? = nil) {
        self.first = first
        self.brokers = brokers
        self.frames = frames
    }

    /// The whole response; the connection ends after it.
    package func response(to request: PageRequest?) -> [UInt8] {
        guard let request else { return Self.response("400 Bad Request", text: "This is no HTTP/1.1 request.") }
        if let frames, let feed = FrameFeed(request.path) { return answer(feed, frames, request) }
        guard request.method == "GET" else {
            return Self.response("405 Method Not Allowed", ["Allow: GET"], text: "Only GET is served here.")
        }
        if request.path == "/" { return redirect(to: first) }
        // A page without a query is the visitor's way in: it is told its broker, in the manner that panel.js documents.
        if let page = Device.allCases.first(where: { "/" + Self.name(of: $0) == request.path }), !request.hasQuery,
            brokers[page] != nil
        {
            return redirect(to: page)
        }
        // A name among the built-in ones or nothing: no path of a request ever reaches a file system.
        guard let file = WebPages.file(String(request.path.dropFirst())) else {
            return Self.response("404 Not Found", text: "There is nothing at this address.")
        }
        return Self.response("200 OK", ["Content-Type: \(file.contentType)"], body: file.bytes)
    }

    private func answer(_ feed: FrameFeed, _ log: FrameLog, _ request: PageRequest) -> [UInt8] {
        guard request.isFromHere else {
            return Self.response("403 Forbidden", text: "Frames are shown to the pages of this server alone.")
        }
        guard request.method == feed.method else {
            return Self.response("405 Method Not Allowed", ["Allow: \(feed.method)"], text: "Use \(feed.method) here.")
        }
        guard let answer = feed.answer(from: log, request) else {
            return Self.response("404 Not Found", text: "This frame is no longer there.")
        }
        return Self.response(
            "200 OK",
            ["Content-Type: \(answer.contentType)", "Cross-Origin-Resource-Policy: same-origin"] + answer.fields,
            body: answer.body)
    }

    private func redirect(to page: Device) -> [UInt8] {
        let query = brokers[page].map { "?url=" + Self.escaped($0) } ?? ""
        return Self.response("302 Found", ["Location: /\(Self.name(of: page))\(query)"], body: [])
    }

    private static func name(of page: Device) -> String {
        switch page {
        case .locations: "locations.html"
        case .motions: "motions.html"
        }
    }

    /// Percent-encoded for a query.
    private static func escaped(_ text: String) -> String {
        text.utf8.map { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x2F, 0x3A, 0x5F: String(UnicodeScalar(byte))
            default: "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }.joined()
    }

    private static func response(_ status: String, _ fields: [String] = [], text: String) -> [UInt8] {
        response(status, fields + ["Content-Type: text/plain; charset=utf-8"], body: Array((text + "\n").utf8))
    }

    private static func response(_ status: String, _ fields: [String], body: [UInt8]) -> [UInt8] {
        let head =
            ["HTTP/1.1 \(status)"] + fields + [
                "Content-Length: \(body.count)", "Connection: close",
                // The next program on this port may be a newer one.
                "Cache-Control: no-store", "X-Content-Type-Options: nosniff", "Content-Security-Policy: \(policy)",
            ]
        return Array((head.joined(separator: "\r\n") + "\r\n\r\n").utf8) + body
    }

    /// What the pages do, and nothing else: their own files and frames, any broker, street tiles, a worker for heart-beats.
    private static let policy = """
        default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: https://tile.openstreetmap.org; \
        connect-src 'self' ws: wss:; worker-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'
        """
}
