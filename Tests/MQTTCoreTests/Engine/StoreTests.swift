import MQTTCore
import TestSupport
import Testing

@Suite("Engine: session store", .heavy)
struct StoreTests {
    /// Takes the records out, as the caller's store does.
    private func drain(_ end: EnginePair.End, into log: inout [MQTTStoreRecord]) {
        log += end.engine.storeRecords
        end.engine.storeRecords = []
    }

    private func persist(_ end: EnginePair.End, _ pair: EnginePair) {
        end.run { engine, effects in engine.persisted(through: engine.lastTicket, at: pair.now, into: &effects) }
    }

    @Test func `PUBLISH and PUBREL leave when their records are stored`() throws {
        let pair = EnginePair.persistent(client: { $0.persists = true })
        try pair.connect()
        #expect(try pair.publish("x", qos: .exactlyOnce, token: 1) == .queued)
        #expect(pair.client.engine.lastTicket == 2)
        pair.settle()
        #expect(pair.client.publishes.isEmpty)
        persist(pair.client, pair)
        pair.settle()
        #expect(pair.client.types == [.connect, .publish])
        persist(pair.client, pair)
        pair.settle()
        #expect(pair.client.types == [.connect, .publish, .pubrel])
        #expect(pair.client.completions.map(\.token) == [1])
        var log: [MQTTStoreRecord] = []
        drain(pair.client, into: &log)
        #expect(log.first == .established)
        #expect(log.dropFirst(2) == [.released(sequence: 1), .finished(sequence: 1)])
    }

    @Test func `what was sent in a clean session is reported when a later CONNECT asks for a session`() throws {
        let pair = EnginePair(version: .v3_1_1, client: { $0.persists = true })
        pair.server.acknowledges = false
        try pair.connect()
        try pair.publish("x", qos: .exactlyOnce, token: 1)
        persist(pair.client, pair)
        pair.settle()
        #expect(pair.server.texts == ["x"])
        pair.cut()
        pair.client.engine.configuration.cleanStart = false
        try pair.connect()
        let lost = pair.client.events.compactMap { event -> [UInt64]? in
            if case .sessionLost(1, let duplicates) = event { duplicates } else { nil }
        }
        #expect(lost == [[1]])
    }

    @Test func `an exchange whose PUBREC an earlier process had stored is reported when the session is lost`() throws {
        let pair = EnginePair(version: .v3_1_1, client: { $0.persists = true })
        try pair.connect()
        try pair.publish("x", qos: .exactlyOnce, token: 1)
        persist(pair.client, pair)
        pair.settle()
        var log: [MQTTStoreRecord] = []
        drain(pair.client, into: &log)
        // A clean session, so that no server has one that outlives the process.
        #expect(log.contains(.released(sequence: 1)) && !log.contains(.established))
        pair.cut()
        var configuration = pair.client.engine.configuration
        configuration.cleanStart = false
        pair.client.engine = MQTTEngine(configuration: configuration, session: MQTTSession(restoring: log))
        try pair.open()
        persist(pair.client, pair)
        pair.settle()
        let lost = pair.client.events.contains { event in
            if case .sessionLost(1, _) = event { true } else { false }
        }
        #expect(lost, "\(pair.client.events)")
    }

    @Test func `a CONNECT that gets no answer loses nothing, since nothing was sent`() throws {
        let pair = EnginePair.persistent(client: { $0.persists = true })
        // An earlier process has stored a message with its identifier, and had no connection.
        let message = MQTTStoreRecord.Message(
            sequence: 1, packetID: 1, topic: "t", payload: Array("x".utf8), qos: .exactlyOnce, retain: false,
            properties: [])
        pair.client.engine = MQTTEngine(
            configuration: pair.client.engine.configuration, session: MQTTSession(restoring: [.message(message)]))
        for _ in 0..<2 {
            try pair.open()
            persist(pair.client, pair)
            #expect(!pair.client.engine.output.isEmpty)
            pair.cut()
        }
        try pair.connect()
        persist(pair.client, pair)
        pair.settle()
        #expect(pair.server.texts == ["x"])
        let losses = pair.client.events.filter { event in
            if case .sessionLost = event { true } else { false }
        }
        #expect(losses.isEmpty, "\(losses)")
    }

    @Test func `PUBREC and PUBCOMP leave when their records are stored`() throws {
        let pair = EnginePair.persistent(client: { $0.persists = true })
        try pair.connect()
        try pair.publish("x", qos: .exactlyOnce, from: pair.server)
        pair.settle()
        #expect(pair.client.texts == ["x"])
        #expect(pair.client.types == [.connect])
        persist(pair.client, pair)
        pair.settle()
        #expect(pair.client.types == [.connect, .pubrec])
        persist(pair.client, pair)
        pair.settle()
        #expect(pair.client.types == [.connect, .pubrec, .pubcomp])
        var log: [MQTTStoreRecord] = []
        drain(pair.client, into: &log)
        #expect(log == [.established, .received(packetID: 1), .receivedReleased(packetID: 1)])
    }

    @Test func `QoS 0 and QoS 1 acknowledgements do not wait for the store`() throws {
        let pair = EnginePair.persistent(client: { $0.persists = true })
        try pair.connect()
        #expect(try pair.publish("0") == .written)
        try pair.publish("1", qos: .atLeastOnce, from: pair.server)
        pair.settle()
        #expect(pair.client.types == [.connect, .publish, .puback])
        #expect(pair.client.engine.storeRecords == [.established])
    }

    @Test func `a lost session stores the new identifiers before anything is sent under them`() throws {
        let pair = EnginePair.persistent(client: { $0.persists = true })
        try pair.connect()
        try pair.publish("x", qos: .atLeastOnce, token: 1)
        persist(pair.client, pair)
        pair.flush()
        pair.cut()
        pair.serverKeepsSession = false
        try pair.connect()
        #expect(pair.server.texts.isEmpty)
        persist(pair.client, pair)
        pair.settle()
        #expect(pair.server.texts == ["x"])
        #expect(pair.client.publishes.last?.isDuplicate == false)
    }

    @Test func `an exchange that had its PUBREC begins anew in the next process if the server lost the session`() throws
    {
        let pair = EnginePair.persistent(client: {
            $0.persists = true
            $0.subscribesAgainAfterRefusals = true
        })
        func subscriptionsSent() {
            pair.client.run { engine, effects in engine.reconcile(at: pair.now, into: &effects) }
        }
        try pair.connect()
        subscriptionsSent()
        try pair.publish("x", qos: .exactlyOnce)
        persist(pair.client, pair)
        pair.settle()
        var log: [MQTTStoreRecord] = []
        drain(pair.client, into: &log)
        #expect(log.last == .released(sequence: 1))
        pair.cut()
        pair.server.engine = MQTTEngine(configuration: pair.server.engine.configuration)
        pair.serverKeepsSession = false
        // This process ends before the server has answered its subscriptions.
        try pair.connect()
        drain(pair.client, into: &log)
        pair.cut()
        pair.serverKeepsSession = true
        pair.client.engine = MQTTEngine(
            configuration: pair.client.engine.configuration, session: MQTTSession(restoring: log))
        pair.client.sent = []
        try pair.connect()
        subscriptionsSent()
        for _ in 0..<3 {
            pair.settle()
            persist(pair.client, pair)
        }
        pair.settle()
        #expect(pair.lastSessionPresent)
        #expect(pair.client.types == [.connect, .publish, .pubrel])
        #expect(pair.server.texts == ["x", "x"])
        #expect(pair.client.completions.map(\.outcome) == [.acknowledged])
    }

    /// A loss of power may take the end of a log, and with it a message that the server has not released.
    @Test(arguments: MQTTVersion.allCases)
    func `a process whose store has lost its end begins at another packet identifier`(version: MQTTVersion) throws {
        let pair = EnginePair.persistent(version: version, client: { $0.persists = true })
        try pair.connect()
        try pair.publish("first process", qos: .exactlyOnce)
        persist(pair.client, pair)
        pair.flush()
        pair.deliver(to: pair.server)
        pair.cut()
        pair.now += 1_000_000
        pair.client.engine = MQTTEngine(
            configuration: pair.client.engine.configuration,
            session: MQTTSession(restoring: [.established], at: pair.now))
        try pair.connect()
        try pair.publish("second process", qos: .exactlyOnce, token: 2)
        for _ in 0..<2 {
            persist(pair.client, pair)
            pair.settle()
        }
        #expect(pair.server.texts == ["first process", "second process"])
        #expect(pair.client.completions.map(\.token) == [2])
    }

    /// A process that dies at any moment: what it had stored is all that its successor knows.
    private func crashRound(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        let pair = EnginePair.persistent(client: { $0.persists = true })
        pair.client.acknowledges = false
        var log: [MQTTStoreRecord] = []
        var stored: UInt64 = 0
        var safe: [String] = []
        var waiting: [(text: String, ticket: UInt64)] = []
        var taken = 0

        func store() {
            // The store is done with some prefix of what it was given.
            let count = Int.random(in: 0...pair.client.engine.storeRecords.count, using: &random)
            log += pair.client.engine.storeRecords.prefix(count)
            pair.client.engine.storeRecords.removeFirst(count)
            stored += UInt64(count)
            let ticket = stored
            pair.client.run { engine, effects in engine.persisted(through: ticket, at: pair.now, into: &effects) }
            safe += waiting.filter { $0.ticket <= ticket }.map(\.text)
            waiting.removeAll { $0.ticket <= ticket }
        }

        /// CONNECT leaves when the store knows of the session, or the process dies before that.
        func connect() throws {
            try pair.open()
            if Bool.random(using: &random) { store() }
            if Int.random(in: 0..<4, using: &random) == 0 {
                crash()
                try pair.open()
            }
            log += pair.client.engine.storeRecords
            stored += UInt64(pair.client.engine.storeRecords.count)
            pair.client.engine.storeRecords = []
            let ticket = stored
            pair.client.run { engine, effects in engine.persisted(through: ticket, at: pair.now, into: &effects) }
            safe += waiting.filter { $0.ticket <= ticket }.map(\.text)
            waiting.removeAll { $0.ticket <= ticket }
            pair.settle()
        }

        func crash() {
            pair.flush()
            pair.cut()
            let configuration = pair.client.engine.configuration
            // A store may write its log anew at any time.
            if Bool.random(using: &random) { log = MQTTSession(restoring: log).records }
            pair.client.engine = MQTTEngine(configuration: configuration, session: MQTTSession(restoring: log))
            waiting = []
            stored = 0
            taken = pair.client.messages.count
        }

        try connect()
        for step in 0..<Int.random(in: 10...60, using: &random) {
            switch Int.random(in: 0..<10, using: &random) {
            case 0...2:
                let text = "\(step)"
                try pair.publish(text, qos: .exactlyOnce, token: UInt64(step))
                waiting.append((text, pair.client.engine.lastTicket))
            case 3: try pair.publish("\(step)", to: "in", qos: .exactlyOnce, from: pair.server)
            case 4...5: store()
            case 6: pair.settle()
            case 7:
                while taken < pair.client.messages.count {
                    pair.client.engine.acknowledge(pair.client.messages[taken].delivery, at: pair.now)
                    taken += 1
                }
            case 8:
                crash()
                try connect()
            default:
                pair.flush()
                pair.deliver(to: Bool.random(using: &random) ? pair.client : pair.server)
            }
        }
        for _ in 0..<12 {
            pair.settle()
            pair.client.engine.acknowledgeAll(through: .max, at: pair.now)
            log += pair.client.engine.storeRecords
            stored += UInt64(pair.client.engine.storeRecords.count)
            pair.client.engine.storeRecords = []
            let ticket = stored
            pair.client.run { engine, effects in engine.persisted(through: ticket, at: pair.now, into: &effects) }
        }
        safe += waiting.map(\.text)
        let comment: Comment = "CAMPAIGN_SEED=\(seed)"
        #expect(pair.client.failure == nil, comment)
        #expect(pair.server.failure == nil, comment)
        let received = pair.server.texts
        #expect(Set(received).count == received.count, comment)
        #expect(Set(safe).isSubset(of: Set(received)), comment)
        #expect(received == received.sorted { Int($0)! < Int($1)! }, comment)
        #expect(MQTTSession(restoring: log).inFlightCount == 0, comment)
        #expect(pair.server.engine.inFlightCount == 0, comment)
    }

    @Test func `what was stored survives a crash at any moment, and QoS 2 stays exactly once`() throws {
        for index in 0..<Campaign.rounds(20_000) { try crashRound(seed: Campaign.seed &+ UInt64(index)) }
    }

    @Test func `CONNECT leaves when it is stored that the server may hold a session`() throws {
        let pair = EnginePair.persistent(client: { $0.persists = true })
        try pair.open()
        pair.settle()
        #expect(pair.client.sent.isEmpty)
        #expect(pair.client.engine.storeRecords == [.established])
        persist(pair.client, pair)
        pair.settle()
        #expect(pair.client.engine.phase == .connected)
        // Known from then on, also to the next process.
        let session = MQTTSession(restoring: pair.client.engine.storeRecords)
        let next = MQTTEngine(configuration: pair.client.engine.configuration, session: session)
        let holdsSession = next.holdsSession
        #expect(holdsSession)
        pair.cut()
        try pair.open()
        #expect(!pair.client.engine.output.isEmpty)
        // A session that ends with its connection is nothing to remember.
        let brief = EnginePair(client: { $0.persists = true })
        try brief.open()
        #expect(!brief.client.engine.output.isEmpty && brief.client.engine.storeRecords.isEmpty)
    }

    @Test func `CONNECT waits for the store again after a connection that was lost before it left`() throws {
        let pair = EnginePair.persistent(client: { $0.persists = true })
        try pair.open()
        pair.cut()
        try pair.open()
        pair.settle()
        #expect(pair.client.sent.isEmpty)
        persist(pair.client, pair)
        pair.settle()
        #expect(pair.client.engine.phase == .connected)
    }

    @Test func `records that nothing can follow, or that fit into no packet, are ignored`() throws {
        let last = MQTTStoreRecord.Message(
            sequence: .max, packetID: 0, topic: "a", payload: [], qos: .atLeastOnce, retain: false,
            properties: [])
        let long = MQTTStoreRecord.Message(
            sequence: 1, packetID: 0, topic: String(repeating: "a", count: 65_536), payload: [], qos: .atLeastOnce,
            retain: false,
            properties: [])
        var image = MQTTSessionImage()
        for message in [last, long] {
            image.apply(.message(message))
            image.apply(.kept(message))
        }
        #expect(image.messageCount == 0 && image.kept.isEmpty)
        let pair = EnginePair.persistent(client: { $0.persists = true })
        pair.client.engine.restore(MQTTSession(restoring: [.message(last)]))
        #expect(try pair.publish("x", qos: .atLeastOnce) == .queued)
    }

    @Test func `CONNECT does not wait for a record that a failed store has lost`() throws {
        let pair = EnginePair.persistent(client: { $0.persists = true })
        try pair.open()
        pair.cut()
        pair.client.engine.storeRecords = []
        pair.client.engine.restore(MQTTSession(restoring: [.established]))
        try pair.open()
        pair.settle()
        #expect(pair.client.engine.phase == .connected)
    }

    @Test func `the store learns of the session although messages had identifiers before it`() throws {
        let pair = EnginePair.persistent(client: { $0.persists = true })
        try pair.publish("x", qos: .atLeastOnce)
        var log: [MQTTStoreRecord] = []
        drain(pair.client, into: &log)
        // Another process takes the message over, and the message is finished in it.
        pair.client.engine = MQTTEngine(
            configuration: pair.client.engine.configuration, session: MQTTSession(restoring: log))
        try pair.connect()
        persist(pair.client, pair)
        pair.settle()
        pair.cut()
        drain(pair.client, into: &log)
        #expect(log.contains(.established))
        pair.client.engine = MQTTEngine(
            configuration: pair.client.engine.configuration, session: MQTTSession(restoring: log))
        try pair.connect()
        #expect(pair.client.failure == nil)
        #expect(pair.client.info?.sessionPresent == true)
    }

    @Test func `PUBREC and PUBCOMP wait for the store on a later connection too`() throws {
        let pair = EnginePair.persistent(client: { $0.persists = true })
        try pair.connect()
        try pair.publish("x", qos: .exactlyOnce, from: pair.server)
        pair.settle()
        // The record of the acknowledgement is not stored when the message comes again.
        pair.cut()
        try pair.open()
        pair.settle()
        #expect(pair.client.types == [.connect, .connect])
        persist(pair.client, pair)
        pair.settle()
        #expect(pair.client.types == [.connect, .connect, .pubrec])
        // The same with PUBREL.
        pair.cut()
        try pair.open()
        pair.settle()
        #expect(pair.client.types == [.connect, .connect, .pubrec, .connect])
        persist(pair.client, pair)
        pair.settle()
        #expect(pair.client.types == [.connect, .connect, .pubrec, .connect, .pubcomp])
    }

    /// A client whose session holds `count` messages that were never sent and have no identifiers.
    private func pair(holding count: Int, window: UInt16) -> EnginePair {
        let pair = EnginePair.persistent(client: {
            $0.persists = true
            $0.maximumInFlight = window
            $0.maximumQueuedMessages = 100_000
        })
        let log: [MQTTStoreRecord] = (0..<count).map {
            .message(
                .init(
                    sequence: UInt64($0 + 1), packetID: 0, topic: "t", payload: Array("\($0)".utf8), qos: .exactlyOnce,
                    retain: false, properties: []))
        }
        pair.client.engine = MQTTEngine(
            configuration: pair.client.engine.configuration, session: MQTTSession(restoring: log))
        return pair
    }

    @Test func `identifiers of messages that go on are stored many at a time`() throws {
        let pair = pair(holding: 1000, window: 100)
        try pair.connect()
        var commits = 0
        while pair.client.completions.count < 1000, commits < 1000 {
            persist(pair.client, pair)
            pair.settle()
            commits += 1
        }
        #expect(pair.server.texts == (0..<1000).map { "\($0)" })
        // PUBREL waits for one of its own: there are two for each fifty or more.
        #expect(commits <= 40)
    }

    @Test func `a message gets no identifier before those that came first`() throws {
        let pair = pair(holding: 3, window: 2)
        try pair.publish("3", qos: .exactlyOnce)
        guard case .message(let message)? = pair.client.engine.storeRecords.last else {
            Issue.record("the message is not stored")
            return
        }
        #expect(message.packetID == 0)
        try pair.connect()
        var identified: [UInt64] = []
        for case .identified(let sequence, _) in pair.client.engine.storeRecords { identified.append(sequence) }
        #expect(identified == [1, 2])
    }

    @Test func `what was stored without a connection expires while no process runs, what may have been sent does not`()
        throws
    {
        let pair = EnginePair.persistent(client: { $0.persists = true })
        pair.server.acknowledges = false
        var expiry = MQTTProperties()
        expiry.messageExpiryInterval = 10
        try pair.connect()
        try pair.publish("sent", qos: .exactlyOnce, properties: expiry)
        persist(pair.client, pair)
        pair.settle()
        pair.cut()
        try pair.publish("late", qos: .exactlyOnce, properties: expiry)
        try pair.publish("kept", qos: .exactlyOnce)
        var log: [MQTTStoreRecord] = []
        drain(pair.client, into: &log)
        pair.now += 60_000_000_000
        pair.client.engine = MQTTEngine(
            configuration: pair.client.engine.configuration, session: MQTTSession(restoring: log, at: pair.now))
        pair.server.acknowledges = true
        for message in pair.server.messages { pair.server.engine.acknowledge(message.delivery, at: pair.now) }
        try pair.connect()
        for _ in 0..<5 {
            persist(pair.client, pair)
            pair.settle()
        }
        #expect(pair.server.texts == ["sent", "kept"])
        #expect(pair.client.engine.queuedCount + pair.client.engine.inFlightCount == 0)
        #expect(
            pair.client.completions.map(\.outcome).sorted { "\($0)" < "\($1)" } == [
                .acknowledged, .acknowledged, .expired,
            ])
    }

    @Test func `a long queue leaves packet identifiers to SUBSCRIBE`() throws {
        let pair = pair(holding: 0, window: 10)
        for _ in 0..<65_600 { try pair.publish("x", qos: .atLeastOnce) }
        try pair.connect()
        try pair.client.engine.subscribe([MQTTSubscriptionRequest(filter: "a")], at: pair.now)
    }

    /// Servers that lose their sessions make messages of the queue out of those that were sent, again and again.
    @Test func `nothing that was stored is left behind, whatever the server forgets`() throws {
        for index in 0..<Campaign.rounds(20_000) {
            let seed = Campaign.seed &+ UInt64(index)
            var random = SeededGenerator(seed: seed)
            let pair = pair(
                holding: Int.random(in: 0...10, using: &random), window: UInt16.random(in: 1...4, using: &random))
            var count = pair.client.engine.queuedCount
            for _ in 0..<Int.random(in: 5...40, using: &random) {
                switch Int.random(in: 0..<6, using: &random) {
                case 0...1:
                    let qos: QoS = Bool.random(using: &random) ? .atLeastOnce : .exactlyOnce
                    try pair.publish("\(count)", qos: qos)
                    count += 1
                case 2: persist(pair.client, pair)
                case 3: pair.settle()
                case 4:
                    pair.flush()
                    pair.deliver(to: Bool.random(using: &random) ? pair.client : pair.server)
                default:
                    if pair.client.engine.phase != .closed { pair.cut() }
                    pair.serverKeepsSession = Bool.random(using: &random)
                    try pair.connect()
                }
            }
            if pair.client.engine.phase != .connected {
                if pair.client.engine.phase != .closed { pair.cut() }
                try pair.connect()
            }
            var commits = 0
            while pair.client.engine.queuedCount + pair.client.engine.inFlightCount > 0, commits < 200 {
                persist(pair.client, pair)
                pair.settle()
                commits += 1
            }
            var seen: Set<String> = []
            let first = pair.server.texts.filter { seen.insert($0).inserted }
            #expect(first == (0..<count).map { "\($0)" }, "CAMPAIGN_SEED=\(seed)")
            #expect(pair.client.engine.queuedCount + pair.client.engine.inFlightCount == 0, "CAMPAIGN_SEED=\(seed)")
        }
    }

    @Test(arguments: [(UInt32(4), UInt32?.some(6)), (20, nil)])
    func `the time between two processes counts against the expiry of messages`(
        pause: UInt32, left: UInt32?
    ) throws {
        let pair = EnginePair.persistent(client: {
            $0.persists = true
            $0.wallClockOffset = 1_700_000_000_000_000_000
        })
        var properties = MQTTProperties()
        properties.messageExpiryInterval = 10
        try pair.publish("ages", qos: .atLeastOnce, properties: properties, token: 7)
        try pair.publish("does not", qos: .atLeastOnce, token: 8)
        var log: [MQTTStoreRecord] = []
        drain(pair.client, into: &log)
        // Whether the message was given an identifier or not: it was never sent.
        log = log.map { record in
            guard case .message(var message) = record else { return record }
            #expect((message.time == 0) == message.properties.isEmpty)
            message.packetID = 0
            return .message(message)
        }
        // Another process, whose monotonic clock begins elsewhere.
        pair.now = 5_000_000_000
        var configuration = pair.client.engine.configuration
        configuration.wallClockOffset += (Int64(pause) - 4) * 1_000_000_000
        pair.client.engine = MQTTEngine(
            configuration: configuration,
            session: MQTTSession(
                restoring: log, at: pair.now, wallClockOffset: configuration.wallClockOffset, token: { $0 }))
        try pair.connect()
        // The identifiers are stored together.
        persist(pair.client, pair)
        pair.settle()
        #expect(pair.server.texts == (left == nil ? ["does not"] : ["ages", "does not"]))
        #expect(pair.client.publishes.first?.properties.messageExpiryInterval == left)
        #expect(pair.client.completions.contains { $0.outcome == .expired } == (left == nil))
    }

    @Test(arguments: [QoS.atLeastOnce, .exactlyOnce])
    func `an acknowledgement from before a session was restored answers none of its messages`(qos: QoS) throws {
        let pair = EnginePair.persistent(client: { $0.persists = true })
        pair.client.acknowledges = false
        try pair.connect()
        try pair.publish("held", qos: qos, from: pair.server)
        pair.settle()
        let old = try #require(pair.client.messages.last).delivery
        pair.cut()
        var log: [MQTTStoreRecord] = []
        drain(pair.client, into: &log)
        pair.client.engine.restore(MQTTSession(restoring: log))
        pair.client.engine.acknowledge(old, at: pair.now)
        #expect(pair.client.engine.storeRecords.isEmpty)
        try pair.connect()
        persist(pair.client, pair)
        pair.settle()
        #expect(pair.client.texts == ["held", "held"])
        pair.client.engine.acknowledge(old, at: pair.now)
        persist(pair.client, pair)
        pair.settle()
        #expect(pair.server.completions.isEmpty)
        pair.client.engine.acknowledge(try #require(pair.client.messages.last).delivery, at: pair.now)
        persist(pair.client, pair)
        pair.settle()
        persist(pair.client, pair)
        pair.settle()
        #expect(pair.server.completions.count == 1)
    }

    @Test func `QoS 0 messages that wait for a connection are sent although a session is restored meanwhile`() throws {
        let pair = EnginePair.persistent(client: {
            $0.persists = true
            $0.queuesQoS0WhileDisconnected = true
        })
        #expect(try pair.publish("0") == .queued)
        try pair.publish("1", qos: .atLeastOnce)
        pair.client.engine.restore(MQTTSession())
        try pair.connect()
        persist(pair.client, pair)
        pair.settle()
        #expect(pair.server.texts == ["0"])
    }
}
