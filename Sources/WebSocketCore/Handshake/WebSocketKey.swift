import HTTPCore

/// The proof that a server understood the handshake (section 1.3).
package enum WebSocketKey {
    /// The number of random bytes behind a key.
    package static let size = 16

    private static let suffix = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

    /// What `Sec-WebSocket-Accept` has to be for a `Sec-WebSocket-Key`.
    package static func accept(for key: String) -> String {
        Base64.encode(SHA1.digest(of: Array(key.utf8) + Array(suffix.utf8)))
    }

    /// Whether `key` is Base64 of 16 bytes (section 4.2.1 item 5).
    package static func isValid(_ key: String) -> Bool {
        Base64.decode(key)?.count == size
    }
}
