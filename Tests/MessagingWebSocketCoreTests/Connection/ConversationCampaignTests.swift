import MessagingWire
import TestSupport
import Testing

@testable import MessagingWebSocketCore

/// Two connections joined by two byte pipes that hand over as much as they like.
private struct Conversation: ~Copyable {
    var client: WebSocketConnection
    var server: WebSocketConnection
    var clientOutput: [UInt8] = []
    var serverOutput: [UInt8] = []
    var clientPlaintext: [UInt8] = []
    var serverPlaintext: [UInt8] = []
    var clientEvents = WebSocketEvents()
    var serverEvents = WebSocketEvents()
    var keys: SeededGenerator

    mutating func deliverToServer(_ count: Int) throws {
        let bytes = Array(clientOutput.prefix(count))
        clientOutput.removeFirst(bytes.count)
        try server.receive(
            bytes.span.bytes, into: &serverPlaintext, events: &serverEvents, output: &serverOutput, using: &keys)
    }

    mutating func deliverToClient(_ count: Int) throws {
        let bytes = Array(serverOutput.prefix(count))
        serverOutput.removeFirst(bytes.count)
        try client.receive(
            bytes.span.bytes, into: &clientPlaintext, events: &clientEvents, output: &clientOutput, using: &keys)
    }
}

@Suite(.heavy) struct ConversationCampaignTests {
    @Test func `client and server exchange streams, pings and a closing handshake over pipes that cut anywhere`() throws
    {
        for round in 0..<Campaign.rounds(5_000) {
            try converse(seed: Campaign.seed &+ UInt64(round))
        }
    }

    private func converse(seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        var configuration = WebSocketConfiguration.byteStream(acceptsText: false)
        configuration.outgoingFrameSize = Int.random(in: 1...50, using: &generator)
        var pair = Conversation(
            client: WebSocketConnection(role: .client, configuration: configuration),
            server: WebSocketConnection(role: .server, configuration: configuration),
            keys: SeededGenerator(seed: seed &+ 1))
        var fromClient: [UInt8] = []
        var fromServer: [UInt8] = []
        for _ in 0..<60 {
            let bytes = generator.bytes(Int.random(in: 0...120, using: &generator))
            switch UInt8.random(in: 0...6, using: &generator) {
            case 0:
                try pair.client.send(bytes.span.bytes, as: .binary, into: &pair.clientOutput, using: &pair.keys)
                fromClient += bytes
            case 1:
                try pair.server.send(bytes.span.bytes, as: .binary, into: &pair.serverOutput, using: &pair.keys)
                fromServer += bytes
            case 2: try pair.client.ping(into: &pair.clientOutput, using: &pair.keys)
            case 3: try pair.server.ping(into: &pair.serverOutput, using: &pair.keys)
            case 4, 5: try pair.deliverToServer(Int.random(in: 0...200, using: &generator))
            default: try pair.deliverToClient(Int.random(in: 0...200, using: &generator))
            }
        }
        // Both may close at once; either way both end clean.
        let who = UInt8.random(in: 0...2, using: &generator)
        if who != 0 { try pair.client.close(.goingAway, into: &pair.clientOutput, using: &pair.keys) }
        if who != 1 { try pair.server.close(.serviceRestart, into: &pair.serverOutput, using: &pair.keys) }
        while !pair.clientOutput.isEmpty || !pair.serverOutput.isEmpty {
            try pair.deliverToServer(Int.random(in: 0...50, using: &generator))
            try pair.deliverToClient(Int.random(in: 0...50, using: &generator))
        }
        try #require(pair.serverPlaintext == fromClient && pair.clientPlaintext == fromServer, "seed \(seed)")
        try #require(pair.client.closure?.isClean == true && pair.server.closure?.isClean == true, "seed \(seed)")
        try #require(pair.client.phase == .closed && pair.server.phase == .closed)
    }
}
