import MessagingHTTPCore
import MessagingWebSocketCore
import MessagingWire
import STOMP
import Synchronization
import TestSupport
import Transport

/// The server's end of a WebSocket over TCP, whose messages the test cuts as it likes.
final class FakeWebSocket: Sendable {
    private struct State: ~Copyable {
        var stream: SocketStream?
        var parser = HTTPRequestParser()
        /// Since the handshake.
        var webSocket: WebSocketConnection?
        var random = SystemRandomNumberGenerator()
        var unread: [UInt8] = []
        var request: HTTPRequestHead?
        /// A longer one is answered with the close code 1009.
        var maximumMessageSize = Int.max
        /// Of the messages that have ended so far.
        var kinds: [WebSocketMessageKind] = []
    }

    private let state = Mutex(State())

    /// The kinds of the client's messages so far.
    var kinds: [WebSocketMessageKind] { state.withLock { $0.kinds } }

    /// What the client asked for, once it has.
    var request: HTTPRequestHead? { state.withLock { $0.request } }

    /// Runs `body` with a client that connects to such a server.
    ///
    /// - Parameters:
    ///   - maximumMessageSize: the longest message that the server takes, in bytes.
    ///   - clock: the client's; nil for the system's.
    static func withClient(
        path: String = "/stomp", maximumMessageSize: Int = .max, clock: ManualClock? = nil,
        _ configuration: STOMPConfiguration = .impatient,
        _ change: (inout STOMPConfiguration) -> Void = { _ in },
        _ body: (STOMPClient, FakeWebSocket) async throws -> Void
    ) async throws {
        var configuration = configuration
        change(&configuration)
        let server = FakeWebSocket()
        server.state.withLock { $0.maximumMessageSize = maximumMessageSize }
        let listener = try await Listener.listen(on: .host("127.0.0.1", port: 0), loop: .shared) { stream in
            server.state.withLock { $0.stream = stream }
        }
        let url = "ws://127.0.0.1:\(listener.port)\(path)"
        let client =
            clock.map { STOMPClient(url, configuration: configuration, clock: $0) }
            ?? STOMPClient(url, configuration: configuration)
        do {
            try await body(client, server)
        } catch {
            await client.disconnect()
            await listener.close()
            throw error
        }
        await client.disconnect()
        await listener.close()
    }

    /// Sends one message of some fragments, with a ping between them.
    func send(_ fragments: [ArraySlice<UInt8>], as kind: WebSocketMessageKind) throws {
        try state.withLock { state in
            var wire: [UInt8] = []
            for (index, fragment) in fragments.enumerated() {
                if index > 0 { try state.webSocket?.ping(into: &wire, using: &state.random) }
                try state.webSocket?.sendFragment(
                    fragment.span.bytes, as: kind, isFinal: index == fragments.count - 1, into: &wire,
                    using: &state.random)
            }
            Self.write(wire, to: state.stream)
        }
    }

    /// Sends bytes as one text message, whether or not they are UTF-8; at most 125 of them.
    func sendUncheckedText(_ bytes: [UInt8]) {
        precondition(bytes.count <= 125)
        state.withLock { Self.write([0x81, UInt8(bytes.count)] + bytes, to: $0.stream) }
    }

    /// Closes the WebSocket as soon as the client says good-bye, without the RECEIPT that it asks for.
    func end(with client: STOMPClient) async throws {
        async let leaving: Void = client.disconnect()
        try await frame("DISCONNECT")
        try state.withLock { state in
            var wire: [UInt8] = []
            try state.webSocket?.close(.normal, into: &wire, using: &state.random)
            Self.write(wire, to: state.stream)
            state.stream?.endWriting()
        }
        await leaving
    }

    /// The next frame of the client without its NUL, which is a `command`.
    @discardableResult
    func frame(_ command: String) async throws -> String {
        var frame: String?
        let found = try await eventually {
            frame = try state.withLock { state in
                try Self.read(&state)
                while state.unread.first == 10 { state.unread.removeFirst() }
                guard let end = state.unread.firstIndex(of: 0) else { return nil }
                defer { state.unread.removeSubrange(...end) }
                return String(decoding: state.unread[..<end], as: UTF8.self)
            }
            return frame != nil
        }
        guard found, let frame, frame.hasPrefix(command + "\n") else {
            throw TimeoutError("'\(frame ?? "nothing")' came instead of \(command)")
        }
        return frame
    }

    /// Reads what there is, and answers the request that opens a WebSocket.
    private static func read(_ state: inout State) throws {
        guard let stream = state.stream else { return }
        var buffer = [UInt8](repeating: 0, count: 4096)
        while case .bytes(let count) = buffer.withUnsafeMutableBytes({ stream.read(into: $0) }) {
            var bytes = Array(buffer[..<count])
            var wire: [UInt8] = []
            if state.webSocket == nil {
                bytes.removeFirst(try state.parser.receive(bytes.span.bytes))
                guard let head = state.parser.request else { continue }
                state.request = head
                try WebSocketUpgradeRequest(head).accept(subprotocol: "v12.stomp", into: &wire)
                var configuration = WebSocketConfiguration()
                configuration.maximumMessageSize = state.maximumMessageSize
                state.webSocket = WebSocketConnection(role: .server, configuration: configuration)
            }
            var events = WebSocketEvents()
            // Also what it answers to a message that it does not take.
            defer { write(wire, to: stream) }
            try state.webSocket?.receive(
                bytes.span.bytes, into: &state.unread, events: &events, output: &wire, using: &state.random)
            state.kinds += events.messages.map(\.kind)
        }
    }

    /// The kinds of the messages that a client with changed options sends.
    static func kindsOfMessages(
        _ change: (inout STOMPConfiguration) -> Void
    ) async throws -> Set<WebSocketMessageKind> {
        var configuration = STOMPConfiguration.impatient
        change(&configuration)
        var kinds: Set<WebSocketMessageKind> = []
        try await withClient(configuration) { client, server in
            let connecting = Task { try await client.connect() }
            try await server.frame("CONNECT")
            kinds = Set(server.kinds)
            await client.disconnect()
            _ = await connecting.result
        }
        return kinds
    }

    /// All at once: what tests write fits into the system's buffer.
    private static func write(_ bytes: [UInt8], to stream: SocketStream?) {
        if !bytes.isEmpty { _ = bytes.withUnsafeBytes { stream?.write(from: $0) } }
    }
}
