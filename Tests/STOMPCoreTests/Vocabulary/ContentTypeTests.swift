import STOMPCore
import TestSupport
import Testing

@Suite(.heavy) struct ContentTypeTests {
    @Test(arguments: [
        "text/plain", "Text/HTML; charset=UTF-8", "application/json;charset=utf-8",
        "text/plain; a=b ; charset=\"utf-8\"",
    ])
    func textTypesAreUTF8UnlessTheySayOtherwise(_ header: String) {
        let type = STOMPContentType(header)
        #expect(type.isText)
        #expect(type.text(of: Array("grüße".utf8)) == "grüße")
        #expect(type.text(of: [0xFF]) == nil)
    }

    @Test(arguments: ["", "application/json", "application/octet-stream", ";;=", "textual/x"])
    func otherTypesAreBytes(_ header: String) {
        #expect(STOMPContentType(header).text(of: Array("x".utf8)) == nil)
    }

    @Test func charsetIsHonoured() {
        #expect(STOMPContentType("text/plain;charset=iso-8859-1").text(of: [0xE9]) == "é")
        #expect(STOMPContentType("text/plain;charset=us-ascii").text(of: [0xE9]) == nil)
        #expect(STOMPContentType("text/plain;charset=UTF-16").text(of: [0x00, 0xE9]) == "é")
        #expect(STOMPContentType("text/plain;charset=utf-16").text(of: [0xFF, 0xFE, 0xE9, 0x00]) == "é")
        #expect(STOMPContentType("text/plain;charset=utf-16le").text(of: [0xE9, 0x00, 0x00]) == nil)
        #expect(STOMPContentType("text/plain;charset=koi8-r").text(of: [0x61]) == nil)
    }
}
