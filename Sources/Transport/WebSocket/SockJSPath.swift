/// The addresses of SockJS, which has a plain WebSocket beside its sessions.
package enum SockJSPath {
    /// What to add to an error at a path of a SockJS session, `/base/server/session/transport`; empty for other paths.
    ///
    /// - Parameter target: with or without a query.
    package static func advice(on target: String) -> String {
        let path = target.prefix { $0 != "?" }
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        let transports = ["websocket", "xhr", "xhr_streaming", "xhr_send", "eventsource", "htmlfile", "jsonp"]
        guard parts.count >= 4, let transport = parts.last, transports.contains(String(transport)),
            !parts[parts.count - 2].isEmpty, isServer(parts[parts.count - 3])
        else { return "" }
        let plain = parts.dropLast(3).joined(separator: "/") + "/websocket"
        return
            " \(path) is the path of a SockJS session, which frames messages in its own way. Use \(plain), the plain WebSocket beside it."
    }

    /// Clients of SockJS make up a server of three digits.
    private static func isServer(_ part: Substring) -> Bool {
        part.utf8.count == 3 && part.utf8.allSatisfy { (0x30...0x39).contains($0) }
    }
}
