import TestSupport
import Testing

@testable import MessagingWebSocketCore

@Suite(.heavy) struct KeyTests {
    @Test(
        arguments: [
            ("", "da39a3ee5e6b4b0d3255bfef95601890afd80709"),
            ("abc", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            (
                "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
                "84983e441c3bd26ebaae4aa1f95129e5e54670f1"
            ),
            (
                "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
                "a49b2446a02c645bf419f995b67091253a04a259"
            ),
        ]
    )
    func `SHA-1 gives the known digests`(message: String, digest: String) {
        #expect(SHA1.digest(of: Array(message.utf8)) == [UInt8](hex: digest))
    }

    @Test func `SHA-1 of a million letters gives the known digest`() {
        let message = [UInt8](repeating: UInt8(ascii: "a"), count: 1_000_000)
        #expect(SHA1.digest(of: message) == [UInt8](hex: "34aa973cd4c4daa4f61eeb2bdbad27316534016f"))
    }

    @Test func `the key of section 1.3 has the answer of section 1.3`() {
        #expect(WebSocketKey.accept(for: "dGhlIHNhbXBsZSBub25jZQ==") == "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")
        #expect(WebSocketKey.isValid("dGhlIHNhbXBsZSBub25jZQ=="))
        #expect(!WebSocketKey.isValid("dGhlIHNhbXBsZSBub25jZ"))
        #expect(!WebSocketKey.isValid(""))
    }
}
