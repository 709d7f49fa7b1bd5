import TestSupport

@testable import WebSocketCore

/// Everything that a connection made of some input.
struct Transcript: Equatable, Sendable {
    var plaintext: [UInt8] = []
    var events = WebSocketEvents()
    var output: [UInt8] = []
    var violation: WebSocketProtocolError?
    var phase = WebSocketConnection.Phase.open
    var closure: WebSocketClosure?
}

/// How input is cut into calls of `receive`.
enum Split: Sendable, Hashable, CaseIterable {
    case whole, byByte, random, randomAgain

    func pieces(of bytes: [UInt8]) -> [[UInt8]] {
        switch self {
        case .whole: return [bytes]
        case .byByte: return bytes.map { [$0] }
        case .random, .randomAgain:
            var generator = SeededGenerator(seed: Campaign.seed ^ UInt64(bytes.count) ^ (self == .random ? 0 : 99))
            return bytes.randomPieces(using: &generator)
        }
    }
}

extension [UInt8] {
    /// Cuts anywhere; pieces may be empty, most are short.
    func randomPieces(using generator: inout SeededGenerator) -> [[UInt8]] {
        var pieces: [[UInt8]] = []
        var start = 0
        while start < count {
            let longest = Bool.random(using: &generator) ? 5 : count
            let end = Swift.min(count, start + Int.random(in: 0...longest, using: &generator))
            pieces.append(Array(self[start..<end]))
            start = end
        }
        return pieces
    }
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
