import MessagingWire
import TestSupport

@testable import MessagingWebSocketCore

/// Everything that a connection made of some input.
struct Transcript: Equatable, Sendable {
    var plaintext: [UInt8] = []
    var events = WebSocketEvents()
    var output: [UInt8] = []
    var violation: WebSocketProtocolError?
    var phase = WebSocketConnection.Phase.open
    var closure: WebSocketClosure?
}

/// Feeds `pieces` to a fresh connection.
func transcript(
    of pieces: [[UInt8]], role: WebSocketRole, configuration: WebSocketConfiguration = WebSocketConfiguration()
) -> Transcript {
    var connection = WebSocketConnection(role: role, configuration: configuration)
    var result = Transcript()
    // The same keys whatever the split, so that outputs compare.
    var keys = SeededGenerator(seed: 1)
    for piece in pieces {
        do throws(WebSocketProtocolError) {
            try connection.receive(
                piece.span.bytes, into: &result.plaintext, events: &result.events, output: &result.output, using: &keys)
        } catch {
            result.violation = error
        }
    }
    result.phase = connection.phase
    result.closure = connection.closure
    return result
}
