import MQTTCore
import MessagingWire
import TestSupport
import Testing

/// A server that ends the connection instead of answering certain requests.
@Suite("Engine: requests that the server answers by ending the connection", .heavy)
struct RefusalTests {
    private func pair(
        _ version: MQTTVersion = .v5_0, _ change: (inout MQTTEngineConfiguration) -> Void = { _ in }
    ) throws -> EnginePair {
        let pair = EnginePair.persistent(version: version, client: change)
        try pair.connect()
        return pair
    }

    private func isForbidden(_ packet: MQTTPacket) -> Bool {
        switch packet {
        case .publish(let publish): publish.topic == "no"
        case .subscribe(let subscribe): subscribe.subscriptions.contains { $0.filter == "no" }
        default: false
        }
    }

    /// Lets both ends talk until nothing moves, or until the server ends the connection because of a request, in 5.0 with
    /// DISCONNECT. Returns whether it did.
    private func endsTalk(_ pair: EnginePair) -> Bool {
        while true {
            pair.flush()
            let packets = EnginePair.packets(pair.server.inbox, version: pair.client.engine.version)
            if let place = packets.firstIndex(where: isForbidden) {
                var before: [UInt8] = []
                for packet in packets[..<place] {
                    try? packet.encode(into: &before, version: pair.client.engine.version)
                }
                pair.server.inbox = before
                pair.deliver(to: pair.server)
                pair.flush()
                pair.deliver(to: pair.client)
                if pair.client.engine.version == .v5_0 {
                    try? pair.inject(.disconnect(.init(reasonCode: .notAuthorized)), into: pair.client)
                }
                pair.cut()
                return true
            }
            let toServer = pair.deliver(to: pair.server)
            pair.flush()
            let toClient = pair.deliver(to: pair.client)
            if pair.client.engine.nextDeadline <= pair.now { pair.advance(seconds: 0) }
            if !toServer, !toClient, pair.client.engine.output.isEmpty, pair.server.engine.output.isEmpty {
                return false
            }
        }
    }

    /// Connects, and talks. Returns whether the server ended the connection.
    private func endsConnection(_ pair: EnginePair) throws -> Bool {
        try pair.open()
        return endsTalk(pair)
    }

    /// Brings a pair to where requests are sent one at a time: three connections have ended because of a message.
    private func suspect(_ pair: EnginePair) throws {
        #expect(endsTalk(pair))
        #expect(try endsConnection(pair))
        #expect(!pair.client.sendsSingly)
        #expect(try endsConnection(pair))
        #expect(pair.client.sendsSingly)
    }

    private func refusals(_ pair: EnginePair) -> [MQTTRefusal] {
        pair.client.events.compactMap { if case .requestRefused(let refusal) = $0 { refusal } else { nil } }
    }

    @Test func `a request waits for its turn without being late, and has its time from then on`() throws {
        let pair = try pair { $0.requestTimeout = 10_000_000_000 }
        try pair.publish("x", to: "no", qos: .atLeastOnce)
        try suspect(pair)
        // The answer to PINGREQ, for which requests wait, is not read.
        try pair.open()
        pair.flush()
        pair.deliver(to: pair.server)
        pair.flush()
        pair.deliver(to: pair.client)
        pair.client.engine.setReadingPaused(true, at: pair.now)
        try pair.client.engine.subscribe([.init(filter: "yes")], at: pair.now)
        try pair.client.engine.unsubscribe(["old"], at: pair.now)
        var late: [[String]] {
            pair.client.events.compactMap { if case .requestLate(let request) = $0 { request.filters } else { nil } }
        }
        pair.advance(seconds: 11)
        #expect(late.isEmpty && pair.client.failure == nil)
        pair.client.engine.setReadingPaused(false, at: pair.now)
        pair.server.acknowledges = true
        pair.serverAnswers = false
        pair.settle()
        #expect(pair.client.types.contains(.subscribe))
        pair.advance(seconds: 11)
        #expect(late == [["yes"]] && pair.client.failure == nil)
    }

    @Test(arguments: [false, true])
    func `a first subscription that has to wait for its turn ends the connection when it is late, if the client reads`(
        isPaused: Bool
    ) throws {
        let pair = try pair { $0.requestTimeout = 5_000_000_000 }
        try pair.publish("x", to: "no", qos: .atLeastOnce)
        try suspect(pair)
        pair.client.engine.configuration.subscribesAgainAfterRefusals = true
        try pair.open()
        pair.flush()
        pair.deliver(to: pair.server)
        pair.flush()
        pair.deliver(to: pair.client)
        pair.client.engine.setReadingPaused(isPaused, at: pair.now)
        try pair.client.engine.subscribe([.init(filter: "yes")], at: pair.now)
        // PINGREQ, for which it waits, may still be answered.
        pair.advance(seconds: 6)
        let late = pair.client.events.flatMap { event -> [String] in
            if case .requestLate(let request) = event { request.filters } else { [] }
        }
        #expect(late == (isPaused ? [] : ["yes"]))
        #expect(pair.client.failure == (isPaused ? nil : .subscribeTimeout))
    }

    // MARK: The culprit is found

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0], [QoS.atLeastOnce, .exactlyOnce])
    func `after three ends requests are sent one at a time, and the second end names the culprit`(
        version: MQTTVersion, qos: QoS
    ) throws {
        let pair = try pair(version)
        for (token, topic) in ["a", "no", "b", "c"].enumerated() {
            try pair.publish("x", to: topic, qos: qos, token: UInt64(token))
        }
        try suspect(pair)
        // The fourth and the fifth connection.
        for end in 4...5 {
            #expect(refusals(pair).isEmpty)
            let sent = pair.client.sent.count
            #expect(try endsConnection(pair))
            let packets = pair.client.sent[sent...]
            #expect(packets.filter(isForbidden).count == 1)
            // Others go first, once one is accused.
            #expect(packets.last { $0.type != .pingreq }.map(isForbidden) == true, "\(end)")
        }
        let refusal = try #require(refusals(pair).first)
        #expect(refusals(pair).count == 1)
        #expect(
            refusal.request == .message(topic: "no", qos) && (refusal.disconnect == nil) == (version == .v3_1_1)
                && !refusal.isSilence)
        #expect(try !endsConnection(pair))
        #expect(pair.client.completions.filter { $0.outcome == .refused }.map(\.token) == [1])
        #expect(Set(pair.client.completions.filter { $0.outcome == .acknowledged }.map(\.token)) == [0, 2, 3])
        #expect(pair.client.engine.inFlightCount == 0 && pair.client.engine.queuedCount == 0)
        #expect(!pair.client.sendsSingly && pair.client.engine.endsWithoutAnswer == 0)
        // The window is whole again.
        for _ in 0..<3 { #expect(try pair.publish("y", to: "d", qos: qos) == .written) }
        #expect(!endsTalk(pair))
        #expect(pair.server.messages.suffix(3).map(\.text) == ["y", "y", "y"])
    }

    @Test func `what leaves in a second is limited while the search runs, and after it`() throws {
        let pair = try pair { $0.maximumPublishesPerSecond = 10 }
        try pair.publish("x", to: "no", qos: .atLeastOnce, token: 1)
        #expect(endsTalk(pair))
        for _ in 2...5 {
            pair.now += 1_000_000_000
            #expect(try endsConnection(pair))
        }
        #expect(refusals(pair).count == 1)
        pair.now += 1_000_000_000
        #expect(try !endsConnection(pair))
        let sent = pair.client.publishes.count
        for number in 0..<10 {
            try pair.publish("\(number)", to: "a", qos: number % 2 == 0 ? .atMostOnce : .atLeastOnce)
        }
        #expect(!endsTalk(pair))
        #expect(pair.client.publishes.count == sent + 1)
        for _ in 0..<20 where pair.client.publishes.count < sent + 10 {
            let before = pair.client.publishes.count
            #expect(pair.client.engine.nextDeadline > pair.now)
            pair.advance(seconds: Double(pair.client.engine.nextDeadline - pair.now) / 1e9)
            #expect(!endsTalk(pair))
            #expect(pair.client.publishes.count <= before + 1)
        }
        #expect(pair.client.publishes.count == sent + 10)
    }

    @Test func `messages that a lost session left are still searched`() throws {
        let pair = EnginePair(version: .v3_1_1)
        try pair.connect()
        try pair.publish("x", to: "no", qos: .atLeastOnce, token: 1)
        try pair.publish("x", to: "a", qos: .atLeastOnce, token: 2)
        try suspect(pair)
        for _ in 4...5 { #expect(try endsConnection(pair)) }
        #expect(try !endsConnection(pair))
        #expect(pair.client.completions.map(\.token) == [2, 1])
        #expect(pair.client.completions.map(\.outcome) == [.acknowledged, .refused])
    }

    @Test func `a SUBSCRIBE that ends connections is found among others`() throws {
        let pair = try pair { $0.maximumFiltersPerRequest = 1 }
        for filter in ["a", "no", "b"] { try pair.client.engine.subscribe([.init(filter: filter)], at: pair.now) }
        #expect(endsTalk(pair))
        for end in 2...5 {
            #expect(refusals(pair).isEmpty)
            try pair.open()
            pair.flush()
            pair.deliver(to: pair.server)
            pair.flush()
            pair.deliver(to: pair.client)
            #expect(pair.client.sendsSingly == (end > 3))
            #expect(endsTalk(pair))
        }
        #expect(refusals(pair).map(\.request) == [.subscription(filters: ["no"])])
        #expect(pair.client.sendsAlone("no"))
        try pair.client.engine.unwant("no")
        // Only what was sent has failed.
        let failed = pair.client.events.compactMap {
            if case .requestFailed(let request) = $0 { request.filters } else { nil }
        }
        #expect(failed.filter { $0 == ["b"] }.count == 3)
        try pair.open()
        #expect(!endsTalk(pair))
        #expect(!pair.client.sendsSingly && !pair.client.sendsAlone("a"))
    }

    @Test func `what the server sends with DISCONNECT is reported, also after PINGRESP`() throws {
        let pair = try pair(.v5_0)
        pair.server.acknowledges = false
        try pair.publish("x", to: "t", qos: .atLeastOnce)
        for end in 1...5 {
            if end > 1 { try pair.connect() }
            pair.settle()
            pair.advance(seconds: 0.1)
            try pair.inject(.disconnect(.init(reasonCode: .quotaExceeded)), into: pair.client)
            pair.cut()
        }
        #expect(refusals(pair).map { $0.disconnect?.reasonCode } == [.quotaExceeded])
        #expect(refusals(pair).map(\.byteCount) == [2])
        #expect(pair.client.completions.map(\.reason) == [.quotaExceeded])
    }

    @Test(arguments: [QoS.atLeastOnce, .exactlyOnce])
    func `a message that is never acknowledged is given up with QoS 2 only`(qos: QoS) throws {
        let pair = try pair(.v3_1_1) {
            $0.acknowledgementTimeout = 1_000_000_000
            $0.keepAlive = 0
        }
        pair.server.acknowledges = false
        try pair.publish("x", to: "t", qos: qos)
        for end in 1...8 where refusals(pair).isEmpty {
            if end > 1 { try pair.connect() }
            pair.settle()
            pair.advance(seconds: 200)
            #expect(pair.client.engine.shouldClose == true)
            pair.cut()
        }
        #expect(refusals(pair).map(\.isSilence) == (qos == .exactlyOnce ? [true] : []))
    }

    // MARK: Nothing is condemned

    @Test func `a request that has not left is not the reason of an end`() throws {
        let pair = try pair()
        try pair.publish("x", to: "no", qos: .atLeastOnce)
        try suspect(pair)
        for _ in 0..<10 {
            // CONNACK, and nothing else.
            try pair.open()
            pair.flush()
            pair.deliver(to: pair.server)
            pair.flush()
            pair.deliver(to: pair.client)
            #expect(pair.client.engine.phase == .connected && !pair.client.engine.output.isEmpty)
            pair.cut()
        }
        #expect(refusals(pair).isEmpty)
    }

    @Test func `a lone request that ends connections without a word is sent on, and named once`() throws {
        let pair = try pair(.v3_1_1)
        try pair.publish("x", to: "no", qos: .atLeastOnce, token: 1)
        #expect(endsTalk(pair))
        for _ in 2...20 { #expect(try endsConnection(pair)) }
        let passed = pair.client.events.compactMap { event -> MQTTRefusal? in
            if case .requestPassedOver(let refusal) = event { refusal } else { nil }
        }
        #expect(passed.map(\.request) == [.message(topic: "no", .atLeastOnce)])
        #expect(refusals(pair).isEmpty && pair.client.completions.isEmpty)
    }

    @Test func `others pass a request that no evidence decides, until its time has come`() throws {
        let pair = try pair(.v3_1_1)
        try pair.publish("x", to: "no", qos: .atLeastOnce, token: 1)
        #expect(endsTalk(pair))
        for _ in 2...5 { #expect(try endsConnection(pair)) }
        // Others flow, and must not be interrupted all the time.
        try pair.publish("y", to: "a", qos: .atLeastOnce, token: 2)
        #expect(try !endsConnection(pair))
        #expect(pair.client.completions.map(\.token) == [2])
        let wait = Double(pair.client.engine.nextDeadline - pair.now) / 1e9
        #expect((10...20).contains(wait), "\(wait)")
        pair.advance(seconds: wait)
        #expect(endsTalk(pair))
        #expect(refusals(pair).isEmpty)
    }

    @Test func `a request that the server has passed is not its reason to end connections`() throws {
        let pair = try pair()
        pair.server.acknowledges = false
        try pair.publish("x", to: "t", qos: .atLeastOnce, token: 7)
        for end in 1...20 {
            if end > 1 { try pair.connect() }
            pair.settle()
            pair.advance(seconds: 0.1)
            pair.cut()
        }
        #expect(refusals(pair).isEmpty && pair.client.completions.isEmpty)
        #expect(pair.client.engine.endsWithoutAnswer == 20)
        pair.server.acknowledges = true
        try pair.connect()
        #expect(pair.client.completions.map(\.token) == [7])
        #expect(!pair.client.sendsSingly)
    }

    @Test(arguments: [
        MQTTReasonCode.serverShuttingDown, .serverBusy, .useAnotherServer, .sessionTakenOver, .messageRateTooHigh,
        .administrativeAction,
    ])
    func `a reason that has nothing to do with a request does not count`(reason: MQTTReasonCode) throws {
        let pair = try pair(.v5_0)
        pair.server.acknowledges = false
        try pair.publish("x", to: "t", qos: .atLeastOnce)
        for end in 1...10 {
            if end > 1 { try pair.connect() }
            pair.settle()
            try pair.inject(.disconnect(.init(reasonCode: reason)), into: pair.client)
            pair.cut()
        }
        #expect(refusals(pair).isEmpty && !pair.client.sendsSingly)
    }

    @Test func `our own DISCONNECT does not count`() throws {
        let pair = try pair()
        pair.server.acknowledges = false
        try pair.publish("x", to: "t", qos: .atLeastOnce)
        for end in 1...10 {
            if end > 1 { try pair.connect() }
            pair.settle()
            try pair.client.engine.disconnect(at: pair.now)
            pair.cut()
        }
        #expect(refusals(pair).isEmpty && !pair.client.sendsSingly)
    }

    // MARK: Sending one at a time

    @Test func `while a request is alone everything else waits, QoS 0 as well`() throws {
        let pair = try pair()
        pair.server.acknowledges = false
        try pair.publish("x", to: "no", qos: .atLeastOnce)
        try suspect(pair)
        try pair.open()
        pair.flush()
        pair.deliver(to: pair.server)
        pair.flush()
        pair.deliver(to: pair.client)
        pair.flush()
        #expect(pair.client.types.suffix(2) == [.publish, .pingreq])
        #expect(try pair.publish("0", to: "a") == .queued)
        #expect(try pair.publish("1", to: "a", qos: .atLeastOnce) == .queued)
        try pair.client.engine.subscribe([.init(filter: "f")], at: pair.now)
        try pair.client.engine.unsubscribe(["g"], at: pair.now)
        // What is not wanted any more is not asked for.
        try pair.client.engine.subscribe([.init(filter: "h")], at: pair.now)
        try pair.client.engine.unwant("h")
        #expect(pair.client.engine.output.isEmpty)
        // Now the server allows it.
        pair.server.acknowledges = true
        let sent = pair.client.sent.count
        pair.settle()
        let after = pair.client.types[sent...].filter { $0 != .pingreq }
        #expect(after == [.subscribe, .unsubscribe, .publish, .publish])
        #expect(pair.server.messages.suffix(2).map(\.text) == ["0", "1"])
        #expect(pair.client.engine.inFlightCount == 0 && !pair.client.sendsSingly)
    }

    @Test(arguments: [false, true])
    func `a topic that was refused is sent alone from then on, and one end is enough`(isStored: Bool) throws {
        let pair = try pair { $0.persists = isStored }
        /// Stores what there is to store.
        func persist() {
            guard isStored else { return }
            pair.client.run { engine, effects in
                engine.storeRecords = []
                engine.persisted(through: engine.lastTicket, at: pair.now, into: &effects)
            }
        }
        func ends() throws -> Bool {
            if pair.client.engine.phase == .closed { try pair.open() }
            var ended = false
            for _ in 0..<8 where !ended {
                persist()
                ended = endsTalk(pair)
            }
            return ended
        }
        try pair.publish("x", to: "no", qos: .exactlyOnce)
        for _ in 1...5 { #expect(try ends()) }
        #expect(refusals(pair).count == 1)
        #expect(try !ends())
        for round in 2...4 {
            try pair.publish("1", to: "a", qos: .exactlyOnce)
            try pair.publish("x", to: "no", qos: .exactlyOnce)
            try pair.publish("2", to: "a", qos: .exactlyOnce)
            #expect(try ends())
            #expect(refusals(pair).count == round)
            #expect(try !ends())
            #expect(pair.client.engine.inFlightCount == 0 && pair.client.engine.queuedCount == 0)
            #expect(pair.server.texts.suffix(2) == ["1", "2"])
        }
        #expect(pair.server.messages.count == 6)
    }

    @Test func `an identifier of QoS 2 that was given up is not used again while the session lives`() throws {
        let pair = try pair()
        try pair.publish("x", to: "no", qos: .exactlyOnce)
        try suspect(pair)
        for _ in 4...5 { #expect(try endsConnection(pair)) }
        let identifier = try #require(pair.client.publishes.last?.packetID)
        #expect(try !endsConnection(pair))
        let sent = pair.client.publishes.count
        for _ in 0..<200 {
            try pair.publish("y", to: "a", qos: .atLeastOnce)
            pair.settle()
        }
        #expect(!pair.client.publishes[sent...].contains { $0.packetID == identifier })
        pair.cut()
        pair.serverKeepsSession = false
        try pair.connect()
        for _ in 0..<200 {
            try pair.publish("y", to: "a", qos: .atLeastOnce)
            pair.settle()
        }
        #expect(pair.client.publishes.suffix(200).contains { $0.packetID == identifier })
    }

    @Test func `the next process does not use an identifier of QoS 2 that was given up either`() throws {
        let pair = try pair { $0.persists = true }
        var log: [MQTTStoreRecord] = []
        func persist() {
            pair.client.run { engine, effects in
                log += engine.storeRecords
                engine.storeRecords = []
                engine.persisted(through: engine.lastTicket, at: pair.now, into: &effects)
            }
        }
        /// Connects if necessary, publishes, and talks until nothing moves or the connection ends.
        func talk(_ count: Int = 0) throws {
            if pair.client.engine.phase == .closed { try pair.open() }
            persist()
            _ = endsTalk(pair)
            for _ in 0..<count {
                try pair.publish("y", to: "a", qos: .atLeastOnce)
                for _ in 0..<4 {
                    persist()
                    _ = endsTalk(pair)
                }
            }
        }
        /// Restores what was stored, or what a store makes of it that shortens its log.
        func restart(shortens: Bool) {
            if shortens {
                var image = MQTTSessionImage()
                for record in log { image.apply(record) }
                log = MQTTSession(restoring: image.records).records
            }
            if pair.client.engine.phase != .closed { pair.cut() }
            pair.client.engine = MQTTEngine(
                configuration: pair.client.engine.configuration, session: MQTTSession(restoring: log))
        }
        try pair.publish("x", to: "no", qos: .exactlyOnce)
        for _ in 1...20 where refusals(pair).isEmpty { try talk() }
        let identifier = try #require(pair.client.publishes.last?.packetID)
        #expect(refusals(pair).count == 1)
        try talk()
        for shortens in [false, true, true] {
            restart(shortens: shortens)
            let sent = pair.client.publishes.count
            try talk(70)
            #expect(pair.client.publishes.count == sent + 70)
            #expect(!pair.client.publishes[sent...].contains { $0.packetID == identifier })
        }
        // A server that has lost the session knows no identifier; neither does the store then.
        pair.cut()
        pair.serverKeepsSession = false
        try talk()
        pair.serverKeepsSession = true
        persist()
        restart(shortens: true)
        try talk(70)
        #expect(pair.client.publishes.suffix(70).contains { $0.packetID == identifier })
    }
}

extension EnginePair.End {
    fileprivate var sendsSingly: Bool { engine.sendsSingly }
    fileprivate func sendsAlone(_ filter: String) -> Bool { engine.sendsAlone(filter: filter) }
}
