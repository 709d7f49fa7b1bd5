import MessagingWire
import Synchronization
import TestSupport
import Testing

@testable import MessagingShell
@testable import Transport

/// What attempts to open a stream report.
@Suite(.turns) struct StreamOpenerTests {
    /// Opens `url`, and returns why that failed.
    private func failure(
        _ url: String, on loop: EventLoop = .shared, _ change: (inout StreamOptions) -> Void
    ) async throws -> TransportError? {
        var options = StreamOptions()
        options.schemes = [.mqtt, .mqtts, .ws, .wss]
        options.tls.implementation = .openSSL
        change(&options)
        let opener = StreamOpener(urls: [url], options: Shared(options), loop: loop, override: nil)
        let attempt = ConnectionAttempt(
            number: 1, server: 0, credentialsWereRefused: false, deadline: loop.now + 30_000_000_000, isPatient: false,
            continuesLast: false)
        do throws(TransportError) {
            let opened = try await opener.open(opener.choose(0), for: attempt)
            loop.execute { opened.stream.close() }
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: [("Host", "elsewhere"), ("Authorization", "Bearer x\n"), ("Not a name", "x")])
    func `a header that cannot be sent is reported before there is a server`(name: String, value: String) async throws {
        let closed = try BadServer.start(.closed)
        let error = try await failure("ws://127.0.0.1:\(closed.port)/mqtt") { options in
            options.webSocket.headers = [(name, value)]
        }
        #expect(error?.code == .badURL, "\(String(describing: error))")
        #expect(error?.message.contains(name) == true && error?.message.contains("Bearer") == false)
    }

    @Test func `a sub-protocol that cannot be offered is reported before there is a server`() async throws {
        let closed = try BadServer.start(.closed)
        let error = try await failure("ws://127.0.0.1:\(closed.port)/mqtt") { options in
            options.webSocket.subprotocols = ["not a token"]
        }
        #expect(error?.code == .badURL, "\(String(describing: error))")
        #expect(error?.message.contains("not a token") == true)
    }

    @Test(arguments: [
        ("mqtts", "did not finish the TLS handshake"), ("ws", "did not finish the WebSocket handshake"),
        ("wss", "did not finish the TLS and WebSocket handshake"),
    ])
    func `a silent server behind a proxy is not taken for a proxy that did not reach it`(
        scheme: String, words: String
    ) async throws {
        let clock = try ManualClock()
        for isReached in [true, false] {
            let received = Count()
            let listener = try await Listener.listen(on: .host("127.0.0.1", port: 0), loop: .shared) { stream in
                let answer = isReached ? "HTTP/1.1 200 Connected\r\n\r\n" : ""
                let machine = SilentProxy(answer) { received.value.store($0, ordering: .relaxed) }
                Link(machine: machine, loop: .shared, maximumOutboxBytes: 1 << 20).attach(stream)
            }
            async let error = failure("\(scheme)://broker.example", on: clock.loop) { options in
                options.proxy = .http("http://127.0.0.1:\(listener.port)")
            }
            // Behind its request for the tunnel the client has begun the next handshake.
            #expect(await eventually { received.value.load(ordering: .relaxed) >= (isReached ? 2 : 1) })
            await clock.advance(by: .seconds(31))
            let failure = try await error
            #expect(failure?.code == .timedOut)
            let message = failure?.message ?? "none"
            #expect(message.contains(words) == isReached, "\(message)")
            #expect(
                message.contains("was not reached") == !isReached && message.contains("broker.example"), "\(message)")
            await listener.close()
        }
    }
}

private final class Count: Sendable {
    let value = Atomic(0)
}

/// Answers the first head, and reports how many requests have begun.
private struct SilentProxy: LinkMachine, ~Copyable {
    final class AfterLock: LinkAfterLock {
        init() {}
        func perform(_ bytes: RawSpan) {}
    }

    private let answer: String
    private let report: @Sendable (Int) -> Void
    private var count = 0
    var output: [UInt8] = []
    var nextDeadline: Int64 { .max }
    var wantsClose: Bool { false }
    var wantsReadingPaused: Bool { false }

    init(_ answer: String, _ report: @escaping @Sendable (Int) -> Void) {
        self.answer = answer
        self.report = report
    }

    mutating func connectionOpened(at now: Int64, into afterLock: AfterLock) {}
    mutating func connectionClosed(_ error: TransportError?, at now: Int64, into afterLock: AfterLock) {}
    mutating func handleTimeout(at now: Int64, progress: OutputProgress, into afterLock: AfterLock) {}

    mutating func receive(_ bytes: RawSpan, at now: Int64, into afterLock: AfterLock) -> Int {
        let text = bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        if count == 0 {
            guard text.utf8.suffix(4).elementsEqual("\r\n\r\n".utf8) else { return 0 }
            output += Array(answer.utf8)
        }
        count += 1
        report(count)
        return bytes.byteCount
    }
}
