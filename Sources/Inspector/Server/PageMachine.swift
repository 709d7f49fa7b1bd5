import MessagingHTTPCore
import MessagingWire
import Transport

/// One connection: a request in, a response or a stream of updates out, the end.
struct PageMachine: LinkMachine, ~Copyable {
    /// What visitors want published, called after the lock is released.
    final class AfterLock: LinkAfterLock {
        var publications: [Publication] = []

        func perform(_ bytes: RawSpan) {
            for publication in publications { publication.start() }
            publications = []
        }
    }

    private enum Phase {
        case head, body, waiting, streaming, over
    }

    /// Nanoseconds in which a browser has to have sent its request.
    private static let patience: Int64 = 10_000_000_000
    /// Bytes of a request's head.
    static let maximumHead = 8 * 1024
    /// Bytes of a request's body.
    static let maximumBody = 256 * 1024

    private let router: PageRouter
    private let reply: LateReply
    private let place: PagePlaces.Place
    private var phase = Phase.head
    private var parser: HTTPRequestParser
    private var request: PageRequest?
    private var bodyLength = 0
    private var body: [UInt8] = []
    private var reader: FrameReader?

    var output: [UInt8] = []
    private(set) var nextDeadline = Int64.max
    var wantsClose: Bool { phase == .over }
    var wantsReadingPaused: Bool { false }

    init(_ router: PageRouter, _ reply: LateReply, _ place: PagePlaces.Place) {
        self.router = router
        self.reply = reply
        self.place = place
        var limits = HTTPHeadLimits()
        limits.maximumBytes = Self.maximumHead
        parser = HTTPRequestParser(limits: limits)
    }

    mutating func connectionOpened(at now: Int64, into afterLock: AfterLock) {
        nextDeadline = now.advanced(byNanoseconds: Self.patience)
    }

    mutating func connectionClosed(_ error: TransportError?, at now: Int64, into afterLock: AfterLock) {
        nextDeadline = .max
        output = []
        endStream()
        phase = .over
    }

    mutating func receive(_ bytes: RawSpan, at now: Int64, into afterLock: AfterLock) -> Int {
        var consumed = 0
        if phase == .head {
            do throws(HTTPError) {
                consumed = try parser.receive(bytes)
            } catch {
                finish(with: .text(400, "This is not an HTTP/1.1 request. \(error.message)"))
            }
            if let head = parser.request { begin(head) }
        }
        if phase == .body {
            let rest = bytes.extracting(consumed..<bytes.byteCount)
            body += rest.extracting(first: bodyLength - body.count).copied
            if body.count == bodyLength { answer(at: now, into: afterLock) }
        }
        // What follows a request is not read: the connection ends after its answer.
        return bytes.byteCount
    }

    mutating func handleTimeout(at now: Int64, progress: OutputProgress, into afterLock: AfterLock) {
        guard now >= nextDeadline else { return }
        guard phase == .streaming else {
            nextDeadline = .max
            phase = .over
            return
        }
        nextDeadline = now.advanced(byNanoseconds: FrameReader.pause)
        // A browser that does not read gets the next update when it has taken the last.
        guard output.isEmpty, reader?.appendUpdate(to: &output, at: now) == false else { return }
        endStream()
        phase = .over
    }

    /// Answers a request that had to wait, if the browser is still there.
    mutating func finish(with response: HTTPResponse) {
        guard phase != .over, phase != .streaming else { return }
        var response = response
        response.addCommonFields()
        do {
            try response.write(into: &output, omitsBody: request?.method == "HEAD")
        } catch {
            // A field that cannot be written would be a mistake of ours; the browser gets no half answer.
            output = []
        }
        nextDeadline = .max
        phase = .over
    }

    private mutating func begin(_ head: HTTPRequestHead) {
        guard let request = PageRequest(head, token: router.token) else {
            return finish(with: .text(400, "This server is not a proxy: the target of a request is a path."))
        }
        self.request = request
        guard let length = request.bodyLength, length <= Self.maximumBody else {
            return finish(with: .text(400, "A body needs a Content-Length of at most \(Self.maximumBody) bytes."))
        }
        bodyLength = length
        phase = .body
    }

    private mutating func answer(at now: Int64, into afterLock: AfterLock) {
        guard let request else { return }
        switch router.answer(to: request, body: body) {
        case .response(let response):
            finish(with: response)
        case .publication(let publish):
            phase = .waiting
            nextDeadline = .max
            afterLock.publications.append(Publication(publish: publish, reply: reply))
        case .stream(let reader):
            phase = .streaming
            self.reader = reader
            reader.appendHead(to: &output)
            nextDeadline = now
        }
        body = []
    }

    private mutating func endStream() {
        reader?.leave()
        reader = nil
    }
}
