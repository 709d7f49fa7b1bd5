import Transport

/// Serves the headquarters pages to browsers on this machine: HTTP/1.1, one request per connection, and no other address
/// than 127.0.0.1.
package final class PageServer: Sendable {
    private let listener: Listener
    /// A loop of its own: no client waits while a long answer is put together.
    private let loop: EventLoop

    /// The port that was taken.
    package var port: Int { Int(listener.port) }

    /// What to open in a browser.
    package var address: String { "http://127.0.0.1:\(port)/" }

    /// Starts to listen.
    ///
    /// - Parameter port: 0 takes a free one.
    /// - Throws: `TransportError` with the code `cannotListen` when the port is taken.
    package static func start(_ site: PageSite, port: UInt16 = 0) async throws -> PageServer {
        let loop = try EventLoop.start()
        do {
            let listener = try await Listener.listen(on: .host("127.0.0.1", port: port), loop: loop) { stream in
                Link(machine: PageMachine(site), loop: loop, outboxLimit: 1 << 20).attach(stream)
            }
            return PageServer(listener, loop)
        } catch {
            loop.stop()
            throw error
        }
    }

    private init(_ listener: Listener, _ loop: EventLoop) {
        self.listener = listener
        self.loop = loop
    }

    deinit {
        loop.stop()
    }

    /// Stops listening; the port is free when this returns, and requests that have come are still answered.
    package func stop() async {
        await listener.close()
    }
}

/// One connection: a request's head in, the response out, the end.
struct PageMachine: LinkMachine, ~Copyable {
    final class Scratch: LinkScratch {
        func perform(_ bytes: RawSpan) {}
    }

    /// Nanoseconds in which a browser has to have said what it wants.
    private static let patience: Int64 = 10_000_000_000

    private let site: PageSite
    var output: [UInt8] = []
    private(set) var nextDeadline = Int64.max
    private(set) var wantsClose = false
    var wantsReadingPaused: Bool { false }

    init(_ site: PageSite) {
        self.site = site
    }

    mutating func connectionOpened(at now: Int64, into scratch: Scratch) {
        nextDeadline = now + Self.patience
    }

    mutating func connectionClosed(_ error: TransportError?, at now: Int64, into scratch: Scratch) {
        nextDeadline = .max
        output = []
    }

    mutating func receive(_ bytes: RawSpan, at now: Int64, into scratch: Scratch) -> Int {
        guard !wantsClose else { return bytes.byteCount }
        if let length = PageRequest.headLength(in: bytes), length <= PageRequest.largestHead {
            let head = bytes.extracting(first: length).withUnsafeBytes { Array($0) }
            answer(PageRequest(head: head))
        } else if bytes.byteCount > PageRequest.largestHead {
            answer(nil)
        } else {
            return 0
        }
        return bytes.byteCount
    }

    mutating func handleTimeout(at now: Int64, into scratch: Scratch) {
        guard now >= nextDeadline else { return }
        nextDeadline = .max
        wantsClose = true
    }

    private mutating func answer(_ request: PageRequest?) {
        output += site.response(to: request)
        nextDeadline = .max
        wantsClose = true
    }
}
