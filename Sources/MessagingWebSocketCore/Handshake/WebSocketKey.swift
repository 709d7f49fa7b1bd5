import MessagingHTTPCore

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

/// SHA-1 (FIPS 180-4), because the opening handshake proves with it that the server read the key; not for secrets.
package enum SHA1 {
    /// The 20 bytes of the digest of `message`.
    package static func digest(of message: [UInt8]) -> [UInt8] {
        var state: [UInt32] = [0x6745_2301, 0xEFCD_AB89, 0x98BA_DCFE, 0x1032_5476, 0xC3D2_E1F0]
        var padded = message
        padded.append(0x80)
        padded.append(contentsOf: repeatElement(0, count: (120 - padded.count % 64) % 64))
        let bitCount = UInt64(message.count) << 3
        for shift in stride(from: 56, through: 0, by: -8) {
            padded.append(UInt8(truncatingIfNeeded: bitCount >> UInt64(shift)))
        }
        var schedule = [UInt32](repeating: 0, count: 80)
        for block in stride(from: 0, to: padded.count, by: 64) {
            mix(padded[block..<(block + 64)], into: &state, &schedule)
        }
        return state.flatMap { word in
            [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: word >> UInt32($0)) }
        }
    }

    private static func mix(_ block: ArraySlice<UInt8>, into state: inout [UInt32], _ schedule: inout [UInt32]) {
        for index in 0..<16 {
            let at = block.startIndex + index * 4
            schedule[index] = block[at..<(at + 4)].reduce(0) { $0 << 8 | UInt32($1) }
        }
        for index in 16..<80 {
            let word = schedule[index - 3] ^ schedule[index - 8] ^ schedule[index - 14] ^ schedule[index - 16]
            schedule[index] = rotate(word, by: 1)
        }
        var (a, b, c, d, e) = (state[0], state[1], state[2], state[3], state[4])
        for (index, word) in schedule.enumerated() {
            let (choice, constant): (UInt32, UInt32) =
                switch index / 20 {
                case 0: (b & c | ~b & d, 0x5A82_7999)
                case 1: (b ^ c ^ d, 0x6ED9_EBA1)
                case 2: (b & c | b & d | c & d, 0x8F1B_BCDC)
                default: (b ^ c ^ d, 0xCA62_C1D6)
                }
            let next = rotate(a, by: 5) &+ choice &+ e &+ constant &+ word
            (a, b, c, d, e) = (next, a, rotate(b, by: 30), c, d)
        }
        state[0] &+= a
        state[1] &+= b
        state[2] &+= c
        state[3] &+= d
        state[4] &+= e
    }

    private static func rotate(_ word: UInt32, by count: UInt32) -> UInt32 {
        word << count | word >> (32 - count)
    }
}
