import TestSupport
import Testing

@testable import MessagingHTTPCore

@Suite(.heavy) struct Base64Tests {
    @Test(
        arguments: [
            ("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg=="), ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ]
    )
    func `Base64 gives the known texts and takes them back`(plain: String, encoded: String) {
        #expect(Base64.encode(Array(plain.utf8)) == encoded)
        #expect(Base64.decode(encoded) == Array(plain.utf8))
    }

    @Test func `Base64 uses the whole standard alphabet`() {
        let bytes = [UInt8](hex: "fbf0fffe00")
        #expect(Base64.encode(bytes) == "+/D//gA=")
        #expect(Base64.decode("+/D//gA=") == bytes)
    }

    @Test(arguments: [
        "Zg", "Zg=", "Zg===", "====", "Z===", "Zh==", "Zm9=", "Zm-_", "Zm9v\n", "=Zg=", "Z=g=", "Zg==Zg==",
    ])
    func `Base64 refuses what is not exactly an encoding`(text: String) {
        #expect(Base64.decode(text) == nil)
    }

    @Test func `Base64 round trips bytes of every length`() {
        var generator = SeededGenerator(seed: Campaign.seed)
        for count in 0..<200 {
            let bytes = generator.bytes(count)
            #expect(Base64.decode(Base64.encode(bytes)) == bytes)
        }
    }
}
