import STOMPCore
import TestSupport
import Testing

@Suite(.heavy) struct EngineCampaignTests {
    /// Two engines over a link that splits at random and breaks at random bytes. Whatever happens, each wait for a
    /// receipt ends once, a receipt means processed, messages keep their order, and each connection ends once.
    @Test func lossAndRestartNeverLoseOrInventAReceipt() throws {
        var received = 0
        var lost = 0
        for round in 0..<Campaign.rounds(20_000, least: 100) {
            let seed = Campaign.seed &+ UInt64(round)
            var campaign = try LossCampaign(seed: seed)
            try campaign.run()
            for complaint in campaign.complaints { Issue.record("CAMPAIGN_SEED=\(seed): \(complaint)") }
            if !campaign.complaints.isEmpty { return }
            received += campaign.received
            lost += campaign.lost
        }
        #expect(received > 0 && lost > 0)
    }

    /// Damaged streams give at most one end per connection, and no trap, in both roles.
    @Test(arguments: [STOMPRole.client, .server])
    func damagedStreamsEndAConnectionAtMostOnce(_ role: STOMPRole) throws {
        var generator = SeededGenerator(seed: Campaign.seed ^ 7)
        var ends = 0
        for round in 0..<Campaign.rounds(500_000, least: 2_000) {
            let version = STOMPVersion.allCases.randomElement(using: &generator)!
            let scripted = role == .client ? try ScriptedEngine.connected(version) : try ScriptedEngine.serving(version)
            if role == .client {
                try scripted.engine.subscribe(id: "a", destination: "/q", acknowledgement: .client, token: 1, at: 0)
                try scripted.engine.send(destination: "/q", body: [], receiptToken: 5, at: 0)
            }
            var bytes = Array(
                (role == .client
                    ? "MESSAGE\nsubscription:a\nmessage-id:1\nack:1\ncontent-length:2\n\nhi\0\nRECEIPT\nreceipt-id:1\n\n\0\n"
                    : "SUBSCRIBE\nid:1\ndestination:/q\n\n\0SEND\ndestination:/q\ncontent-length:2\n\nhi\0ACK\nid:1\n\n\0")
                    .utf8)
            for _ in 0..<Int.random(in: 1...3, using: &generator) { CodecCampaignTests.damage(&bytes, &generator) }
            for piece in VectorTests.pieces(bytes, using: &generator) { scripted.receive(Array(piece)) }
            scripted.close()
            let log = scripted.takeLog()
            let ended = log.count { $0.hasPrefix("failed") || $0 == "disconnected" }
            let waits = log.count { $0.hasPrefix("receipt 5") }
            guard ended == 1, waits == (role == .client ? 1 : 0) else {
                Issue.record("seed \(Campaign.seed), round \(round): \(log)")
                return
            }
            ends += ended
        }
        #expect(ends > 0)
    }
}

/// One life of a client over several connections.
struct LossCampaign {
    private var generator: SeededGenerator
    private let pair: EnginePair
    private var now: Int64 = 0
    private var token: UInt64 = 0
    /// Tokens that wait, with the body whose processing they ask for.
    private var waiting: [UInt64: String] = [:]
    private var delivered: [UInt64: [Int]] = [:]
    private var isConnected = false
    private var ends = 0
    private var messages = 0
    private(set) var received = 0
    private(set) var lost = 0
    private(set) var complaints: [String] = []

    init(seed: UInt64) throws {
        generator = SeededGenerator(seed: seed)
        pair = try EnginePair(STOMPVersion.allCases[Int(seed % 3)])
    }

    mutating func run() throws {
        for connection in 1...4 {
            delivered = [:]
            ends = 0
            pair.open(at: now)
            let isLast = connection == 4
            for _ in 0..<Int.random(in: 5...80, using: &generator) { try step() }
            if isLast { try finish() }
            pair.close(at: now)
            look()
            if ends != 1 { complaints.append("connection \(connection) ended \(ends) times") }
            isConnected = false
        }
        if !waiting.isEmpty { complaints.append("\(waiting.count) waits never ended") }
    }

    private mutating func step() throws {
        now += Int64.random(in: 0...200_000_000, using: &generator)
        if isConnected, Int.random(in: 0..<3, using: &generator) > 0 { try operate() }
        try pair.move(Int.random(in: 1...120, using: &generator), at: now)
        pair.client.timeout(at: now)
        pair.server.timeout(at: now)
        look()
    }

    private mutating func operate() throws {
        messages += 1
        let body = "\(messages)"
        let wantsReceipt = Bool.random(using: &generator)
        if wantsReceipt { token += 1 }
        let receipt = wantsReceipt ? token : nil
        do throws(STOMPUsageError) {
            switch Int.random(in: 0..<5, using: &generator) {
            case 0:
                let transaction = try pair.client.engine.begin(at: now)
                try pair.client.engine.send(
                    destination: "/q", body: Array(body.utf8), transaction: transaction, at: now)
                try pair.client.engine.commit(transaction, receiptToken: receipt, at: now)
            default:
                try pair.client.engine.send(destination: "/q", body: Array(body.utf8), receiptToken: receipt, at: now)
            }
            if let receipt { waiting[receipt] = body }
        } catch {
            if error.code != .notConnected { complaints.append(error.message) }
        }
    }

    /// An undisturbed end: everything is moved, then DISCONNECT.
    private mutating func finish() throws {
        for _ in 0..<200 { try pair.move(10_000, at: now) }
        look()
        try pair.client.engine.disconnect(at: now)
        for _ in 0..<5 { try pair.move(10_000, at: now) }
        look()
    }

    private mutating func look() {
        for completion in pair.client.completions {
            guard let body = waiting.removeValue(forKey: completion.token) else {
                complaints.append("receipt \(completion.token) ended twice")
                continue
            }
            if completion.outcome == .received { received += 1 } else { lost += 1 }
            if completion.outcome == .received, !pair.processed.contains(body) {
                complaints.append("receipt \(completion.token) without processing")
            }
            if ![.received, .connectionLost].contains(completion.outcome) {
                complaints.append("receipt \(completion.token) \(completion.outcome)")
            }
        }
        for event in pair.client.events {
            switch event {
            case .connected:
                isConnected = true
                for id in 0..<2 {
                    try? pair.client.engine.subscribe(id: "s\(id)", destination: "/q", token: UInt64(id), at: now)
                }
            case .disconnected: ends += 1
            case .connectionFailed(let failure):
                ends += 1
                if failure.reason != .closed, failure.reason != .closedBeforeConnected {
                    complaints.append(failure.message)
                }
            default: complaints.append("\(event)")
            }
        }
        for event in pair.server.events {
            if case .connectionFailed(let failure) = event, failure.reason != .closed,
                failure.reason != .closedBeforeConnected
            {
                complaints.append("server: \(failure.message)")
            }
        }
        for message in pair.client.messages {
            let number = Int(message.body) ?? -1
            if let last = delivered[message.token]?.last, last >= number { complaints.append("out of order") }
            delivered[message.token, default: []].append(number)
        }
        pair.client.takeEffects()
        pair.server.takeEffects()
    }
}
