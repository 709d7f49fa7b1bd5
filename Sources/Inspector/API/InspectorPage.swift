public import MessagingShell

/// A web page that shows what the clients of a frame log exchange with their servers, live.
///
///     let log = FrameLog()
///     client.inspect(into: log)
///     let page = try await InspectorPage.start(log)
///     show(page.address)
///
/// The page lists the frames in both directions with search, fields and bytes, builds a tree of topics with last
/// values, counts and rates, shows how long acknowledgements took and where clients reconnected, and exports a capture
/// for Wireshark. Secrets are masked by the log.
///
/// It is served on 127.0.0.1 only. Every request needs the token in the address, a `Host` that names this machine and,
/// when it comes from a browser, the page's own `Origin`. While no page is open, nothing is read from the log; while
/// one is, it receives at most 20 updates a second, which are prepared on a thread of their own.
public final class InspectorPage: Sendable {
    /// Publishes or sends what a visitor typed into the page.
    ///
    /// - Throws: Any error; the page shows its description.
    public typealias Publish = @Sendable (_ topic: String, _ payload: [UInt8]) async throws -> Void

    private let server: PageServer

    /// The address to open in a browser: `http://127.0.0.1:PORT/TOKEN/`, with another token for each page.
    public var address: String { server.address }

    /// The port that the page is served on.
    public var port: Int { server.port }

    /// Starts to serve a page.
    ///
    /// - Parameters:
    ///   - log: What the page shows.
    ///   - port: The port to listen on; 0, the default, takes a free one.
    ///   - publish: What the page's publish pane does. Without it the page has no such pane.
    /// - Throws: `TransportError` with the code `cannotListen` when the port is taken.
    public static func start(
        _ log: FrameLog, port: UInt16 = 0, publish: Publish? = nil
    ) async throws -> InspectorPage {
        InspectorPage(try await PageServer.start(FrameService(log, publish: publish), port: port))
    }

    private init(_ server: PageServer) {
        self.server = server
    }

    /// Stops serving; the port is free when this returns, and open pages report that the program is out of reach.
    ///
    /// A page that is released stops, too.
    public func stop() async {
        await server.stop()
    }
}
