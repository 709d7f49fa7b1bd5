import TestSupport
import Testing

@testable import MQTTCore

/// What a store has of filters, and what the next process does with it.
@Suite("Engine: filters in a session store", .heavy)
struct StoredFilterTests {
    /// A client that may die, and a server that keeps its session.
    private final class Setting {
        let pair: EnginePair
        /// What the client has given to its store, and how much of that is stored.
        private(set) var log: [MQTTStoreRecord] = []
        private var stored = 0
        /// How many records the store had when the process began.
        private var base = 0

        init(version: MQTTVersion = .v5_0, _ change: @escaping (inout MQTTEngineConfiguration) -> Void = { _ in }) {
            pair = .persistent(
                version: version,
                client: {
                    $0.persists = true
                    change(&$0)
                })
        }

        /// The records of filters that the store has.
        var filters: [MQTTStoreRecord] {
            var image = MQTTSessionImage()
            for record in log[..<stored] { image.apply(record) }
            return image.records.filter { $0 != .established }
        }

        var client: EnginePair.End { pair.client }

        /// The filters of the SUBSCRIBE and UNSUBSCRIBE packets that the client has sent, each with its sign.
        var requests: [String] {
            client.sent.flatMap { packet -> [String] in
                switch packet {
                case .subscribe(let packet): packet.subscriptions.map { "+" + $0.filter }
                case .unsubscribe(let packet): packet.filters.map { "-" + $0 }
                default: []
                }
            }
        }

        /// The filters that the client has records of.
        var known: Set<String> { Set(client.engine.filters.records.keys.map(\.text)) }

        func isUnclaimed(_ filter: String) -> Bool { client.engine.isUnclaimed(filter) }

        func connect() throws {
            try pair.open()
            drain()
            store()
            pair.settle()
            drain()
        }

        /// The server answers CONNECT, and no requests.
        func connectInSilence() throws {
            pair.serverAnswers = false
            try connect()
            let present = pair.server.engine.holdsSession
            pair.server.run { engine, effects in
                try? engine.acceptConnection(sessionPresent: present, properties: [], at: pair.now, into: &effects)
            }
            pair.settle()
            store()
            pair.settle()
        }

        func want(_ filters: String..., qos: QoS = .atLeastOnce) throws {
            for filter in filters { try client.engine.want(MQTTSubscriptionRequest(filter: filter, qos: qos)) }
            reconcile()
        }

        func unwant(_ filters: String...) throws {
            for filter in filters { try client.engine.unwant(filter) }
            reconcile()
        }

        func reconcile() {
            client.run { engine, effects in engine.reconcile(at: pair.now, into: &effects) }
            drain()
            pair.flush()
        }

        private func drain() {
            log += client.engine.storeRecords
            client.engine.storeRecords = []
        }

        /// The store has what it was given.
        func store() {
            drain()
            stored = log.count
            client.run { engine, effects in
                engine.persisted(through: UInt64(stored - base), at: pair.now, into: &effects)
            }
            pair.flush()
        }

        func settle() {
            repeat {
                pair.settle()
                store()
            } while !client.inbox.isEmpty || !pair.server.inbox.isEmpty || !client.engine.storeRecords.isEmpty
        }

        /// The process dies. The next one has what was stored.
        func die() {
            drain()
            pair.cut()
            client.engine.storeRecords = []
            log.removeSubrange(stored...)
            base = stored
            client.engine = MQTTEngine(
                configuration: client.engine.configuration, session: MQTTSession(restoring: log, at: pair.now))
            reopen()
            client.sent = []
        }

        /// The store is opened.
        func reopen() {
            var image = MQTTSessionImage()
            for record in log { image.apply(record) }
            client.engine.restoreFilters(of: image)
        }
    }

    @Test(arguments: MQTTVersion.allCases)
    func `SUBSCRIBE leaves when its record is stored, with those of all that are due`(version: MQTTVersion) throws {
        let setting = Setting(version: version)
        try setting.connect()
        try setting.want("a", "b", "c")
        #expect(setting.requests.isEmpty)
        #expect(setting.log == [.established, .filterWanted("a"), .filterWanted("b"), .filterWanted("c")])
        setting.store()
        #expect(setting.requests == ["+a", "+b", "+c"])
        setting.settle()
        // A further SUBSCRIBE needs no further record.
        try setting.want("a", qos: .exactlyOnce)
        #expect(setting.requests == ["+a", "+b", "+c", "+a"] && setting.log.count == 4)
        setting.settle()
        try setting.unwant("a")
        #expect(setting.log.last == .filterEnded("a"))
        #expect(setting.requests.last == "-a")
        setting.settle()
        #expect(setting.log.last == .filterForgotten("a"))
        #expect(setting.filters == [.filterWanted("b"), .filterWanted("c")])
    }

    @Test func `a process that dies before its record is stored has asked for nothing`() throws {
        let setting = Setting()
        try setting.connect()
        try setting.want("a")
        setting.die()
        try setting.connect()
        setting.settle()
        #expect(setting.pair.lastSessionPresent && setting.requests.isEmpty && setting.filters.isEmpty)
        #expect(!setting.isUnclaimed("a"))
    }

    @Test(arguments: MQTTVersion.allCases, [false, true])
    func `a subscription of a process that died is kept until the same is wanted`(
        version: MQTTVersion, isGranted: Bool
    ) throws {
        let setting = Setting(version: version)
        try setting.connect()
        try setting.want("a", "b")
        setting.store()
        if isGranted { setting.settle() }
        for _ in 0..<2 {
            setting.die()
            #expect(setting.isUnclaimed("a") && setting.isUnclaimed("b"))
            try setting.connect()
            setting.settle()
            #expect(setting.requests.isEmpty)
            #expect(setting.filters == [.filterWanted("a"), .filterWanted("b")])
        }
        // It may be asked for again at once: the store knows of it.
        try setting.want("a")
        #expect(setting.requests == ["+a"])
        setting.settle()
        try setting.unwant("a")
        setting.settle()
        #expect(setting.requests == ["+a", "-a"])
        #expect(setting.filters == [.filterWanted("b")])
        #expect(setting.isUnclaimed("b"))
    }

    @Test(
        arguments: MQTTVersion.allCases, ["in flight", "with SUBSCRIBE in flight", "offline", "offline, stored later"])
    func `what a process did not live to unsubscribe is unsubscribed by the next`(
        version: MQTTVersion, when: String
    ) throws {
        let setting = Setting(version: version)
        try setting.connect()
        try setting.want("a", "b")
        setting.store()
        if when != "with SUBSCRIBE in flight" { setting.settle() }
        if when.hasPrefix("offline") { setting.pair.cut() }
        try setting.unwant("a")
        if when == "offline, stored later" {
            // Not stored, so that it has not ended for the next process.
            setting.die()
            #expect(setting.isUnclaimed("a"))
            try setting.unwant("a")
        }
        setting.store()
        for _ in 0..<2 {
            setting.die()
            #expect(setting.filters == [.filterEnded("a"), .filterWanted("b")])
        }
        try setting.connect()
        setting.settle()
        #expect(setting.requests == ["-a"])
        #expect(setting.filters == [.filterWanted("b")])
        setting.die()
        try setting.connect()
        setting.settle()
        #expect(setting.requests.isEmpty)
    }

    @Test func `what is wanted again is not unsubscribed by the next process`() throws {
        let setting = Setting()
        try setting.connect()
        try setting.want("a")
        setting.settle()
        setting.pair.cut()
        try setting.unwant("a")
        try setting.want("a")
        setting.store()
        #expect(setting.filters == [.filterWanted("a")])
        setting.die()
        try setting.connect()
        setting.settle()
        #expect(setting.requests.isEmpty)
    }

    @Test func `a server without the session has no filters of earlier processes`() throws {
        let setting = Setting()
        try setting.connect()
        try setting.want("a", "b", "c")
        setting.settle()
        try setting.unwant("b")
        setting.store()
        setting.die()
        setting.pair.serverKeepsSession = false
        try setting.want("c")
        try setting.connect()
        setting.settle()
        #expect(setting.requests == ["+c"])
        #expect(setting.filters == [.filterWanted("c")])
        #expect(setting.known == ["c"])
    }

    @Test func `a filter that the server refuses leaves the store with its subscription`() throws {
        let setting = Setting()
        try setting.connectInSilence()
        try setting.want("a")
        setting.settle()
        guard case .subscribe(let packet)? = setting.client.sent.last else {
            Issue.record("no SUBSCRIBE was sent")
            return
        }
        try setting.pair.server.engine.acknowledgeSubscribe(
            packet.packetID, codes: [.notAuthorized], at: setting.pair.now)
        setting.settle()
        #expect(setting.filters == [.filterWanted("a")])
        try setting.unwant("a")
        setting.settle()
        #expect(setting.filters.isEmpty && setting.requests == ["+a"])
    }

    @Test func `messages wait for the record of what a connection subscribes first`() throws {
        let setting = Setting { $0.queuesQoS0WhileDisconnected = true }
        try setting.connect()
        setting.pair.cut()
        try setting.want("a")
        try setting.pair.publish("0")
        try setting.connect()
        // The record is due with SUBSCRIBE, and not before.
        #expect(setting.client.types == [.connect, .connect] && setting.log.last == .filterWanted("a"))
        try setting.pair.publish("1")
        setting.pair.settle()
        #expect(setting.client.types == [.connect, .connect])
        setting.settle()
        #expect(setting.client.types == [.connect, .connect, .subscribe, .publish, .publish])
    }

    @Test func `a discarded session has no filters`() throws {
        let setting = Setting()
        try setting.connect()
        try setting.want("a", "b")
        setting.settle()
        setting.pair.cut()
        setting.client.run { engine, effects in try? engine.discardSession(into: &effects) }
        setting.store()
        #expect(setting.filters.isEmpty)
        try setting.unwant("b")
        setting.pair.serverKeepsSession = false
        try setting.connect()
        setting.settle()
        #expect(setting.requests == ["+a", "+b", "+a"] && setting.filters == [.filterWanted("a")])
    }

    @Test func `a filter that the store has to forget still is unsubscribed for whoever asks`() throws {
        let setting = Setting()
        try setting.connect()
        try setting.want("a")
        setting.settle()
        try setting.unwant("a")
        // What has changed waits with it.
        try setting.want("b")
        setting.pair.settle()
        #expect(setting.requests == ["+a", "-a"])
        #expect(setting.known == ["a", "b"] && !setting.client.engine.isUnsubscribing("a"))
        try setting.unwant("a")
        #expect(setting.requests.count == 2 && setting.client.engine.isUnsubscribing("a"))
        setting.settle()
        #expect(setting.requests == ["+a", "-a", "-a", "+b"])
        #expect(setting.known == ["b"] && setting.filters == [.filterWanted("b")])
    }

    @Test func `the topic of replies to a process that died is unsubscribed by the next one`() throws {
        let setting = Setting()
        try setting.connect()
        setting.client.engine.want(
            MQTTSubscriptionRequest(filter: "replies"), identifier: 0, [], mayBeHeld: false, isTemporary: true)
        try setting.want("a")
        setting.settle()
        #expect(setting.filters == [.filterWanted("a"), .filterEnded("replies")])
        setting.die()
        try setting.connect()
        setting.settle()
        #expect(setting.requests == ["-replies"] && setting.filters == [.filterWanted("a")])
    }

    /// Each process has identifiers of its own, and so has another client of the store.
    @Test(arguments: [false, true])
    func `a filter that was restored has no identifier before the server has granted it`(dies: Bool) throws {
        let setting = Setting()
        func want() {
            setting.client.engine.want(MQTTSubscriptionRequest(filter: "a"), identifier: 1, [], mayBeHeld: false)
            setting.reconcile()
        }
        func held() -> MQTTEngine.HeldIdentifier { setting.client.engine.heldIdentifier(of: "a") }
        try setting.connect()
        want()
        setting.settle()
        #expect(held() == .own && setting.requests == ["+a"])
        setting.pair.cut()
        setting.client.engine.stop("a")
        if dies { setting.die() } else { setting.reopen() }
        #expect(held() == .maybeNone)
        try setting.connect()
        want()
        #expect(held() == .maybeNone && setting.requests.last == "+a" && setting.requests.count == (dies ? 1 : 2))
        setting.settle()
        #expect(held() == .own && setting.filters == [.filterWanted("a")])
    }

    @Test func `filters that were granted before there was a store are in it`() throws {
        let setting = Setting { $0.persists = false }
        try setting.connect()
        try setting.want("a")
        setting.settle()
        #expect(setting.filters.isEmpty)
        setting.client.engine.configuration.persists = true
        setting.pair.cut()
        setting.store()
        #expect(setting.filters == [.filterWanted("a")])
    }

    @Test func `a session that ends with its connection waits for no store`() throws {
        let setting = Setting {
            $0.cleanStart = true
            $0.sessionExpiry = 0
        }
        try setting.connect()
        try setting.want("a")
        #expect(setting.requests == ["+a"])
        setting.settle()
        #expect(setting.filters.isEmpty)
    }

    @Test func `requests that go one at a time wait for the store too`() throws {
        let setting = Setting()
        try setting.connect()
        setting.pair.cut()
        try setting.want("a", "b")
        for _ in 0..<3 {
            try setting.connectInSilence()
            setting.pair.cut()
        }
        let sendsSingly = setting.client.engine.sendsSingly
        #expect(sendsSingly)
        setting.client.sent = []
        setting.pair.serverAnswers = true
        try setting.want("c")
        try setting.connect()
        #expect(setting.requests == ["+a", "+b"])
        #expect(setting.log.last == .filterWanted("c"))
        setting.settle()
        #expect(setting.requests == ["+a", "+b", "+c"])
        #expect(setting.filters == [.filterWanted("a"), .filterWanted("b"), .filterWanted("c")])
    }

    /// The order of events is drawn, and the process may die at each.
    @Test func `no filter is left at the server that no process knows, and none is lost that is wanted`() throws {
        var random = SeededGenerator(seed: Campaign.seed)
        for round in 0..<Campaign.rounds(2_000) {
            let setting = Setting(version: Bool.random(using: &random) ? .v3_1_1 : .v5_0)
            /// The filters of the server's session.
            var held: Set<String> = []
            var seen = 0
            func look() {
                for event in setting.pair.server.events[seen...] {
                    switch event {
                    case .connectReceived: if !setting.pair.lastSessionPresent { held = [] }
                    case .subscribeReceived(let packet): held.formUnion(packet.subscriptions.map(\.filter))
                    case .unsubscribeReceived(let packet): held.subtract(packet.filters)
                    default: break
                    }
                }
                seen = setting.pair.server.events.count
            }
            var wanted: Set<String> = []
            for _ in 0..<Int.random(in: 1...25, using: &random) {
                let filter = ["a", "b", "c"].randomElement(using: &random)!
                switch Int.random(in: 0..<12, using: &random) {
                case 0...2: if setting.client.engine.phase == .closed { try setting.connect() }
                case 3, 4:
                    wanted.insert(filter)
                    try setting.want(filter)
                case 5, 6:
                    wanted.remove(filter)
                    try setting.unwant(filter)
                case 7: setting.store()
                case 8: setting.settle()
                case 9: if setting.client.engine.phase != .closed { setting.pair.cut() }
                case 10: setting.pair.serverKeepsSession.toggle()
                default:
                    setting.die()
                    wanted = []
                }
                look()
            }
            if setting.client.engine.phase == .closed { try setting.connect() }
            setting.settle()
            look()
            let known = setting.known
            let comment: Comment = "round \(round), CAMPAIGN_SEED=\(Campaign.seed): held \(held), wanted \(wanted)"
            #expect(wanted.isSubset(of: held), comment)
            #expect(held.isSubset(of: known), comment)
            // A process may have died after the record and before its SUBSCRIBE, or after UNSUBSCRIBE and before its record.
            #expect(setting.filters == known.sorted().map { .filterWanted($0) }, comment)
            #expect(known.subtracting(wanted).allSatisfy { setting.isUnclaimed($0) }, comment)
        }
    }
}
