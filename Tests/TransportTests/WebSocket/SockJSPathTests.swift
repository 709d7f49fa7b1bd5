import MessagingHTTPCore
import Testing
import Transport

/// What errors say about addresses that this package cannot use.
struct AddressAdviceTests {
    @Test(arguments: ["/ws/123/s5kqpz3a/websocket", "/ws/000/abc/xhr_streaming?t=1", "/ws/999/a.b/eventsource"])
    func `the path of a SockJS session points to the plain WebSocket`(target: String) {
        #expect(SockJSPath.advice(on: target).contains("Use /ws/websocket,"))
    }

    @Test(arguments: ["/ws/websocket", "/ws", "/", "/api/v1/websocket", "/ws/12/abc/websocket", "/ws/123//websocket"])
    func `other paths have no advice about SockJS`(target: String) {
        #expect(SockJSPath.advice(on: target).isEmpty)
    }

    @Test func `a host that cannot be written into a request is named in ASCII`() {
        let error = #expect(throws: HTTPError.self) { _ = try HTTPSyntax.authority(host: "bücher.example", port: nil) }
        #expect(error?.message.contains("'xn--bcher-kva.example'") == true)
    }
}
