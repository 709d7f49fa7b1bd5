import MessagingShell
import TestSupport
import Testing

@Suite(.turns)
struct FrameTextTests {
    @Test(arguments: [
        (Array("on".utf8), 2, "\"on\""),
        (Array("on".utf8), 9, "\"on\"…"),
        ([0, 255], 2, "00 ff"),
        (Array("a\u{1B}b".utf8), 3, "61 1b 62"),
        ([0xC3], 1, "c3"),
    ])
    func `shows text as text and everything else as digits`(bytes: [UInt8], count: Int, shown: String) {
        #expect(FrameText.preview(bytes, of: count) == shown)
    }

    @Test func `forgives a character that the limit has cut in two`() {
        let text = Array(("x" + String(repeating: "é", count: 200)).utf8)
        let shown = FrameText.preview(Array(text.prefix(FrameText.previewLimit)), of: text.count)
        #expect(shown.hasPrefix("\"xéé"))
        #expect(shown.hasSuffix("é\"…"))
    }
}
