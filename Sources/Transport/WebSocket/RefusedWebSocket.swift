import MessagingHTTPCore
import MessagingWebSocketCore
import MessagingWire

/// What to report of a server that has refused a WebSocket: its words, without secrets of the request in them.
///
/// Gateways repeat the address of a request in a redirect, and pages of errors repeat its fields; a query and a field may be
/// credentials, which no error shows.
struct RefusedWebSocket {
    private let request: WebSocketClientRequest
    private let peer: String
    /// What is not shown, the longest first.
    private let secrets: [String]

    init(of request: WebSocketClientRequest, by peer: String) {
        self.request = request
        self.peer = peer
        var secrets: Set<String> = []
        if let query = Self.query(of: request) { Self.add(query, separators: "&", to: &secrets) }
        for field in request.fields.fields where !Self.isPublic(field.name) {
            Self.add(field.value, separators: " ;,&\"", to: &secrets)
        }
        self.secrets = secrets.sorted { $0.utf8.count > $1.utf8.count }
    }

    private static func query(of request: WebSocketClientRequest) -> String? {
        guard let mark = request.target.firstIndex(of: "?") else { return nil }
        let query = request.target[request.target.index(after: mark)...]
        return query.isEmpty ? nil : String(query)
    }

    private static func isPublic(_ name: String) -> Bool {
        HTTPSyntax.isEqual(name, "Origin") || HTTPSyntax.isEqual(name, "User-Agent")
    }

    /// Adds the whole text, the parts of it and the values in them, as they are, without percent-encoding and without padding.
    /// A short text, such as the name of a scheme, is not a secret.
    private static func add(_ text: String, separators: String, to secrets: inout Set<String>) {
        if !text.isEmpty { secrets.insert(text) }
        for part in text.split(whereSeparator: { separators.contains($0) }) {
            // "=" may be behind a name, or the padding of Base64.
            let value = part.firstIndex(of: "=").map { part[part.index(after: $0)...] }
            for secret in [part, value].compactMap(\.self) where isLong(secret) {
                let plain = PercentEncoding.decoded(Array(secret.utf8)[...])
                for form in [String(secret), plain].compactMap(\.self) {
                    secrets.insert(form)
                    var unpadded = form[...]
                    while unpadded.utf8.last == UInt8(ascii: "=") { unpadded.removeLast() }
                    if isLong(unpadded) { secrets.insert(String(unpadded)) }
                }
            }
        }
    }

    private static func isLong(_ text: Substring) -> Bool { text.utf8.count >= 8 }

    func error(_ response: WebSocketRefusedResponse) -> TransportError {
        let reason = shown(response.reason)
        let status = reason.isEmpty ? "\(response.status)" : "\(response.status) \(reason)"
        let words: String
        switch response.status {
        case 300..<400:
            let location = response.location ?? "nowhere"
            let advice =
                Self.leads(location, awayFrom: request.host)
                ? "Use that address, unless it is the login page of a network: then log in there first."
                : "Use that address."
            words = "redirects to \(shown(Self.withoutSecrets(location))). \(advice)"
        case 400, 426:
            words =
                "answered: \(excerpt(response.body)). A proxy in front of it may not pass on the header fields Upgrade and Connection: check its configuration."
        case 401:
            let challenges = shown(response.authenticationChallenges.joined(separator: ", "))
            words = "requires credentials\(challenges.isEmpty ? "" : " (\(challenges))"). \(adviceOnCredentials)"
        case 403:
            words =
                "answered: \(excerpt(response.body)). Check the token, signature or cookie of the handshake, and whether this client may connect."
        case 404:
            words =
                "has no WebSocket at this path. Check the path of the URL, which is often /mqtt, and /ws for RabbitMQ."
        default:
            words = "answered: \(excerpt(response.body))."
        }
        return TransportError(
            .webSocketRefused,
            "\(peer) refused the WebSocket with status \(status). It \(words)\(SockJSPath.advice(on: request.target))",
            concernsCredentials: response.status == 401 || response.status == 403)
    }

    private var adviceOnCredentials: String {
        if request.fields.first("Authorization") != nil {
            return "It refused those in the header Authorization: check them, and whether they have expired."
        }
        let advice = "Set the header Authorization in the WebSocket options."
        guard Self.query(of: request) != nil else { return advice }
        return "\(advice) If the query of the URL has them, check whether they have expired."
    }

    /// Text of the server, on one line and not too long.
    private func shown(_ text: String) -> String { OneLine.text(masked(text), limit: 200) }

    private func masked(_ text: String) -> String {
        secrets.reduce(text) { text, secret in text.replacing(secret, with: "•••") }
    }

    /// The address of a redirect without user info, query and fragment.
    private static func withoutSecrets(_ location: String) -> String {
        let end = location.firstIndex { $0 == "?" || $0 == "#" } ?? location.endIndex
        var address = String(location[..<end])
        if let start = address.firstRange(of: "//")?.upperBound {
            let authority = address[start...].prefix { $0 != "/" }
            if let at = authority.lastIndex(of: "@") { address.replaceSubrange(start..<at, with: "•••") }
        }
        return end < location.endIndex ? "\(address)\(location[end])•••" : address
    }

    /// Whether the address of a redirect has another host, as that of a network's login page.
    private static func leads(_ location: String, awayFrom host: String) -> Bool {
        guard let start = location.firstRange(of: "//")?.upperBound else { return false }
        let authority = location[start...].prefix { !"/?#".contains($0) }
        let place = authority.split(separator: "@").last ?? ""
        return !(place.lowercased() + ":").hasPrefix(host.lowercased() + ":")
            && !place.lowercased().hasPrefix("[\(host.lowercased())]")
    }

    /// The beginning of an error page, on one line.
    private func excerpt(_ body: [UInt8]) -> String {
        let text = masked(String(decoding: body, as: UTF8.self))
        let scalars = text.unicodeScalars.prefix(200).map {
            $0.properties.generalCategory == .control ? " " : Character($0)
        }
        return scalars.isEmpty ? "nothing" : "'\(String(scalars))'"
    }
}
