package import HTTPCore

/// A server's answer other than 101: a redirect, a request for credentials, an error page.
package struct WebSocketRefusedResponse: Sendable, Hashable {
    package var status: Int
    /// The words beside the status.
    package var reason: String
    package var fields: HTTPFields
    /// The first bytes of the body, without chunks' framing.
    package var body: [UInt8]

    /// Where a redirect (3xx) points to.
    package var location: String? { (300..<400).contains(status) ? fields.first("Location") : nil }
    /// The challenges of a 401.
    package var authenticationChallenges: [String] { fields.all("WWW-Authenticate") }
}
