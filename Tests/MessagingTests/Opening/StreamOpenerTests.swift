import TestSupport
import Testing

@testable import Messaging
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
}
