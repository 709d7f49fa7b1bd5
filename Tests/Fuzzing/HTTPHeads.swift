import MessagingHTTPCore
import MessagingWebSocketCore

/// Heads of HTTP requests and responses, and the opening handshakes made of them: the same result for every splitting.
enum HTTPHeads {
    static func check(_ input: FuzzInput) {
        var input = input
        let variant = input.byte()
        let pattern = input.byte()
        let whole = result(of: [Array(input.bytes)], variant)
        let split = result(of: input.pieces(pattern), variant)
        require(whole == split, "\(whole) became \(split) in pieces of \(pattern)")
    }

    private static func result(of pieces: [[UInt8]], _ variant: UInt8) -> String {
        variant & 1 == 0 ? request(pieces) : response(pieces, endsEarly: variant & 2 != 0)
    }

    private static func request(_ pieces: [[UInt8]]) -> String {
        var parser = HTTPRequestParser()
        var consumed = 0
        do throws(HTTPError) {
            for piece in pieces { consumed += try parser.receive(piece.span.bytes) }
        } catch {
            return "refused \(error.code)"
        }
        guard let head = parser.request else { return "unfinished \(consumed)" }
        return "\(consumed) \(head) \(upgrade(head))"
    }

    private static func upgrade(_ head: HTTPRequestHead) -> String {
        do {
            let request = try WebSocketUpgradeRequest(head)
            var policy = WebSocketServerPolicy()
            policy.hosts = ["localhost"]
            policy.origins = ["http://localhost"]
            policy.acceptsLoopbackOrigins = true
            policy.subprotocols = ["mqtt"]
            var output: [UInt8] = []
            try request.accept(subprotocol: try policy.decide(request), into: &output)
            return String(decoding: output, as: UTF8.self)
        } catch {
            return "\(error)"
        }
    }

    private static func response(_ pieces: [[UInt8]], endsEarly: Bool) -> String {
        let request = WebSocketClientRequest(host: "localhost", subprotocols: ["mqtt"])
        let key = [UInt8](0..<16)
        var consumed = 0
        do {
            var handshake = try WebSocketClientHandshake(request, keyBytes: key, bodyLimit: 64)
            for piece in pieces { consumed += try handshake.receive(piece.span.bytes) }
            if endsEarly { try handshake.streamEnded() }
            if case .refused(let response)? = handshake.outcome {
                require(response.body.count <= 64, "the body of a refusal is longer than its limit")
            }
            return "\(consumed) \(String(describing: handshake.outcome))"
        } catch {
            return "refused \(error)"
        }
    }
}
