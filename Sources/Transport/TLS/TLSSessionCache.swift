/// Sessions that may be resumed, one for each server. Each is used once, as RFC 8446 (appendix C.4) advises.
struct TLSSessionCache {
    /// A reference to an `SSL_SESSION`.
    final class Entry: @unchecked Sendable {
        // Sendable because a session that no connection changes any more may be read by any thread.
        let pointer: OpaquePointer
        private let openSSL: OpenSSL

        /// Takes the reference over.
        init(_ pointer: OpaquePointer, _ openSSL: OpenSSL) {
            self.pointer = pointer
            self.openSSL = openSSL
        }

        deinit {
            openSSL.sessionFree(pointer)
        }
    }

    private var entries: [String: Entry] = [:]
    private var refused: Set<String> = []
    private static let limit = 64

    mutating func take(_ server: String) -> Entry? {
        entries.removeValue(forKey: server)
    }

    mutating func store(_ entry: Entry, for server: String) {
        guard !refused.contains(server) else { return }
        if entries.count >= Self.limit, entries[server] == nil { entries.removeValue(forKey: entries.first!.key) }
        entries[server] = entry
    }

    /// A handshake with an old session failed; some servers cannot do it and end the connection instead of saying so.
    mutating func refuse(_ server: String) {
        if refused.count >= Self.limit { refused.removeAll() }
        refused.insert(server)
        entries[server] = nil
    }
}
