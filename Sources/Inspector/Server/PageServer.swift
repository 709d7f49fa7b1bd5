import Transport

/// Serves pages to browsers on this machine: HTTP/1.1, one request per connection, and no other address than 127.0.0.1.
package final class PageServer: Sendable {
    private let listener: Listener
    /// The server's own event loop, so that building a page never delays a client.
    private let loop: EventLoop
    private let router: PageRouter

    /// The port that was taken.
    package var port: Int { Int(listener.port) }

    /// What to open in a browser.
    package var address: String { "http://127.0.0.1:\(port)/\(router.token.text)/" }

    /// Starts to listen.
    ///
    /// - Parameters:
    ///   - frames: What the inspector shows; nil for a server without an inspector.
    ///   - content: The other pages. Without them the token leads to the inspector itself.
    ///   - port: 0 takes a free one.
    /// - Throws: `TransportError` with the code `cannotListen` when the port is taken.
    package static func start(
        _ frames: FrameService?, content: (any PageContent)? = nil, port: UInt16 = 0
    ) async throws -> PageServer {
        let loop = try EventLoop.start()
        let router = PageRouter(frames: frames, content: content)
        do {
            let listener = try await Listener.listen(on: .host("127.0.0.1", port: port), loop: loop) { stream in
                let reply = LateReply()
                let link = Link(machine: PageMachine(router, reply), loop: loop, maximumOutboxBytes: 1 << 20)
                reply.link = link
                link.attach(stream)
            }
            return PageServer(listener, loop, router)
        } catch {
            loop.stop()
            throw error
        }
    }

    private init(_ listener: Listener, _ loop: EventLoop, _ router: PageRouter) {
        self.listener = listener
        self.loop = loop
        self.router = router
    }

    deinit {
        router.frames?.feed.stop()
        loop.stop()
    }

    /// Stops listening and ends the streams of open pages; the port is free when this returns, and requests that have
    /// arrived are still answered.
    package func stop() async {
        router.frames?.feed.stop()
        await listener.close()
    }
}
