import Synchronization
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
    ///   - maximumConnections: how many may be open at the same time; a further one is closed at once. Default: 256.
    /// - Throws: `TransportError` with the code `cannotListen` when the port is taken.
    package static func start(
        _ frames: FrameService?, content: (any PageContent)? = nil, port: UInt16 = 0, maximumConnections: Int = 256
    ) async throws -> PageServer {
        let loop = try EventLoop.start()
        let router = PageRouter(frames: frames, content: content)
        let places = PagePlaces(maximumConnections)
        do {
            let listener = try await Listener.listen(on: .host("127.0.0.1", port: port), loop: loop) { stream in
                guard let place = places.take() else { return stream.close() }
                let reply = LateReply()
                let link = Link(machine: PageMachine(router, reply, place), loop: loop, maximumOutboxBytes: 1 << 20)
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

/// The connections that a page server may have at the same time.
final class PagePlaces: Sendable {
    /// The place of one connection, which is free again when the connection lets go of it.
    final class Place: Sendable {
        private let places: PagePlaces

        fileprivate init(_ places: PagePlaces) { self.places = places }

        deinit { places.taken.subtract(1, ordering: .relaxed) }
    }

    private let maximum: Int
    private let taken = Atomic(0)

    init(_ maximum: Int) { self.maximum = maximum }

    /// Nil if all places are taken. On the loop's thread only.
    func take() -> Place? {
        guard taken.load(ordering: .relaxed) < maximum else { return nil }
        taken.add(1, ordering: .relaxed)
        return Place(self)
    }
}
