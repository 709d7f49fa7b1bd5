import MessagingWire
import Testing

/// Host names in ASCII, for advice.
struct PunycodeTests {
    @Test(arguments: [
        ("bücher.example", "xn--bcher-kva.example"), ("BÜCHER.example", "xn--bcher-kva.example"),
        ("broker.münchen.de", "broker.xn--mnchen-3ya.de"), ("例え.テスト", "xn--r8jz45g.xn--zckzah"),
        ("пример.испытание", "xn--e1afmkfd.xn--80akhbyknj4f"), ("ü", "xn--tda"),
    ])
    func `a name with other letters has a form in ASCII`(name: String, expected: String) {
        #expect(Punycode.asciiForm(of: name) == expected)
        #expect(Punycode.advice(on: name) == " In ASCII its name is '\(expected)'.")
    }

    @Test(arguments: ["broker.example", "", "127.0.0.1", "::1", "xn--bcher-kva.example"])
    func `a name in ASCII needs no advice`(name: String) {
        #expect(Punycode.asciiForm(of: name) == nil && Punycode.advice(on: name).isEmpty)
    }

    @Test func `a label of any length ends in some form`() {
        let long = String(repeating: "ü\u{10FFFF}", count: 20_000)
        #expect(Punycode.asciiForm(of: long)?.hasPrefix("xn--") == true)
    }
}
