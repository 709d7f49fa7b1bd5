import STOMPCore
import TestSupport
import Testing

@Suite(.heavy) struct HeartBeatTests {
    private func client(_ mine: STOMPHeartBeat, _ theirs: String?) throws -> ScriptedEngine {
        try ScriptedEngine.connected(heartBeat: theirs) { $0.heartBeat = mine }
    }

    @Test func missingHeaderTurnsBothDirectionsOff() throws {
        let client = try client(.init(outgoing: 1_000, incoming: 1_000), nil)
        #expect(client.engine.heartBeat == .none && client.deadline == nil)
    }

    @Test func eitherZeroTurnsThatDirectionOff() throws {
        #expect(try client(.init(outgoing: 1_000, incoming: 0), "1000,0").engine.heartBeat == .none)
        #expect(
            try client(.init(outgoing: 0, incoming: 1_000), "2000,5").engine.heartBeat
                == .init(outgoing: 0, incoming: 2_000))
    }

    @Test func beatsAreSentEarlyAndOnlyWhenNothingElseWas() throws {
        let client = try client(.init(outgoing: 1_000, incoming: 0), "0,1000")
        #expect(client.deadline == 600)
        client.advance(to: 599)
        #expect(client.takeOutput() == "")
        client.advance(to: 600)
        #expect(client.takeOutput() == "\n")
        client.advance(to: 1_100)
        try client.engine.send(destination: "/q", body: [], at: client.nanoseconds)
        _ = client.takeOutput()
        client.advance(to: 1_699)
        #expect(client.takeOutput() == "")
        client.advance(to: 1_700)
        #expect(client.takeOutput() == "\n")
        #expect(client.engine.heartBeatsSent == 2)
    }

    @Test func whatIsTakenOutCountsAsWrittenThen() throws {
        let client = try client(.init(outgoing: 1_000, incoming: 0), "0,1000")
        let old = client.nanoseconds
        client.advance(to: 500)
        try client.engine.send(destination: "/q", body: [], at: old)
        #expect(client.deadline == 600)
        client.engine.outputTaken(at: client.nanoseconds)
        #expect(client.deadline == 1_100)
        try client.engine.send(destination: "/q", body: [], at: old)
        #expect(client.deadline == 1_100)
    }

    @Test func noIntervalWithoutAWriteIsAsLongAsAgreed() throws {
        var generator = SeededGenerator(seed: Campaign.seed)
        let client = try client(.init(outgoing: 1_000, incoming: 0), "0,1000")
        var last: Int64 = 0
        for _ in 0..<2_000 {
            client.advance(to: min(client.now + Int64.random(in: 0...400, using: &generator), client.deadline ?? .max))
            if Int.random(in: 0..<3, using: &generator) == 0 {
                try client.engine.send(destination: "/q", body: [], at: client.nanoseconds)
            }
            guard !client.takeOutput().isEmpty else { continue }
            #expect(client.now - last <= 800, "seed \(Campaign.seed)")
            last = client.now
        }
    }

    @Test func noBeatsBeforeConnectedAndNoneAfterDisconnect() throws {
        let client = try ScriptedEngine { $0.heartBeat = .init(outgoing: 100, incoming: 0) }
        client.open()
        _ = client.takeOutput()
        client.advance(to: 20_000)
        #expect(client.takeOutput() == "")
        client.receive("CONNECTED\nversion:1.2\nheart-beat:0,100\n\n\0")
        client.advance(to: 20_060)
        #expect(client.takeOutput() == "\n")
        try client.engine.disconnect(at: client.nanoseconds)
        _ = client.takeOutput()
        client.advance(to: 24_000)
        #expect(client.takeOutput() == "")
    }

    @Test(arguments: [Int64(0), 10, 300, 700, 1_200, 5_000])
    func silenceIsBornForTwoAndAHalfIntervalsAtAnyTime(last: Int64) throws {
        let client = try client(.init(outgoing: 0, incoming: 1_000), "1000,0")
        for time in stride(from: Int64(600), to: last, by: 600) {
            client.advance(to: time)
            client.receive("\n")
        }
        client.advance(to: last)
        if last > 0 { client.receive("\n") }
        #expect(client.deadline == last + 2_500)
        client.advance(to: last + 2_499)
        #expect(client.takeLog() == [])
        client.advance(to: last + 2_500)
        #expect(client.takeLog() == ["failed heartBeatLost", "close"])
    }

    /// ActiveMQ checks once in an interval whether anything was sent since the last check.
    @Test(arguments: [Int64(10), 1_001, 7_001]) func aHeartBeatMayComeTwoIntervalsAfterAFrame(time: Int64) throws {
        let client = try client(.init(outgoing: 0, incoming: 1_000), "1000,0")
        for beat in stride(from: Int64(1_000), through: time, by: 1_000) {
            client.advance(to: beat)
            client.receive("\n")
        }
        client.advance(to: time)
        client.receive("RECEIPT\nreceipt-id:1\n\n\0")
        client.advance(to: time + 2_050)
        #expect(client.takeLog() == [])
        client.receive("\n")
        #expect(client.deadline == time + 4_550)
    }

    @Test func anyByteIsLifeEvenHalfAFrame() throws {
        let client = try client(.init(outgoing: 0, incoming: 1_000), "1000,0")
        for (index, byte) in Array("MESSAGE\na:b\n\nxyz".utf8).enumerated() {
            client.advance(to: Int64(index + 1) * 1_900)
            client.receive([byte])
        }
        #expect(client.takeLog() == [])
        client.advance(to: client.now + 2_500)
        #expect(client.takeLog() == ["failed heartBeatLost", "close"])
    }

    @Test func `a long message that is being written does not stand in for the peer's heart-beats`() throws {
        for beats in [true, false] {
            let client = try client(.init(outgoing: 1_000, incoming: 1_000), "1000,1000")
            for time in stride(from: Int64(500), through: 60_000, by: 500) {
                // The peer's system takes another piece of it.
                client.advance(to: time)
                client.engine.outputTaken(at: client.nanoseconds)
                if beats { client.receive("\n") }
                guard client.takeLog().isEmpty else {
                    #expect(!beats && time == 2_500)
                    break
                }
                #expect(beats || time < 2_500)
            }
        }
    }

    @Test func whatIsPresentedAgainIsNoLife() throws {
        let client = try client(.init(outgoing: 0, incoming: 1_000), "1000,0")
        client.advance(to: 1_500)
        client.receive("MESS")
        client.advance(to: 3_000)
        client.receive([])
        #expect(client.deadline == 4_000)
    }

    @Test func silenceIsNotCountedWhileWeDoNotRead() throws {
        let client = try client(.init(outgoing: 1_000, incoming: 1_000), "1000,1000")
        client.engine.setReadingPaused(true, at: client.nanoseconds)
        client.advance(to: 60_000)
        #expect(client.takeLog() == [])
        #expect(client.takeOutput().utf8.count >= 90, "our own heart-beats go on")
        client.engine.setReadingPaused(false, at: client.nanoseconds)
        client.advance(to: 62_499)
        #expect(client.takeLog() == [])
        client.advance(to: 62_500)
        #expect(client.takeLog() == ["failed heartBeatLost", "close"])
    }

    /// The system of the client sleeps until so many milliseconds.
    private func sleep(_ client: ScriptedEngine, until time: Int64) {
        client.engine.systemSlept(since: client.nanoseconds, at: time * 1_000_000)
        client.now = time
        client.timeout()
    }

    @Test func `after a sleep a heart-beat is written at once, and that of the peer is awaited anew`() throws {
        let client = try client(.init(outgoing: 1_000, incoming: 1_000), "1000,1000")
        client.advance(to: 500)
        _ = client.takeOutput()
        sleep(client, until: 60_000)
        #expect(client.takeOutput() == "\n" && client.takeLog() == [])
        client.advance(to: 62_499)
        #expect(client.takeLog() == [])
        client.advance(to: 62_500)
        #expect(client.takeLog() == ["failed heartBeatLost", "close"])
    }

    @Test func `after a sleep CONNECTED is awaited anew`() throws {
        let client = try ScriptedEngine()
        client.open()
        _ = client.takeOutput()
        let timeout = try #require(client.deadline)
        sleep(client, until: 100_000)
        #expect(client.takeLog() == [] && client.deadline == 100_000 + timeout)
    }

    /// Callers on other threads send before the loop has noticed the sleep.
    @Test(arguments: [10, 3_600])
    func `a receipt that is asked for after the wake, before the sleep is noticed, has its own time`(
        seconds: Int64
    ) throws {
        var configuration = STOMPEngineConfiguration()
        configuration.receiptTimeout = 5_000_000_000
        let client = try ScriptedEngine.connected(configuration: configuration)
        try client.engine.send(destination: "/q", body: [], receiptToken: 1, at: 0)
        let wake = seconds * 1_000_000_000
        try client.engine.send(destination: "/q", body: [], receiptToken: 2, at: wake)
        client.engine.systemSlept(since: 0, at: wake)
        client.now = seconds * 1_000
        client.advance(to: client.now + 5_000)
        #expect(client.takeLog() == ["receipt 1 timedOut", "receipt 2 timedOut"])
    }

    @Test func `a pause of reading that begins before a sleep is noticed does not count it`() throws {
        var configuration = STOMPEngineConfiguration()
        configuration.receiptTimeout = 5_000_000_000
        let client = try ScriptedEngine.connected(configuration: configuration)
        try client.engine.send(destination: "/q", body: [], receiptToken: 1, at: 0)
        client.now = 3_600_000
        client.engine.setReadingPaused(true, at: client.nanoseconds)
        client.engine.systemSlept(since: 1_000_000_000, at: client.nanoseconds)
        client.advance(to: 4_000_000)
        client.engine.setReadingPaused(false, at: client.nanoseconds)
        client.advance(to: 4_003_999)
        #expect(client.takeLog().isEmpty)
        client.advance(to: 4_004_000)
        #expect(client.takeLog() == ["receipt 1 timedOut"])
    }

    /// A device that sleeps whenever it can.
    @Test(arguments: [1, 10, 29, 30, 3_600])
    func `short times awake between sleeps do not keep a dead connection`(seconds: Int64) throws {
        let client = try client(.init(outgoing: 1_000, incoming: 1_000), "1000,1000")
        var awake: Int64 = 0
        while client.engine.phase == .connected, awake < 10_000 {
            client.advance(to: client.now + 200)
            awake += 200
            sleep(client, until: client.now + seconds * 1_000)
        }
        // A long sleep has the next heart-beat awaited for its whole time, once.
        #expect(awake == (seconds < 30 ? 2_600 : 2_800))
        #expect(client.takeLog() == ["failed heartBeatLost", "close"])
    }

    @Test func `after a sleep all receipts are awaited anew`() throws {
        var configuration = STOMPEngineConfiguration()
        configuration.receiptTimeout = 5_000_000_000
        let client = try ScriptedEngine.connected(configuration: configuration)
        for token in 1...3 as ClosedRange<UInt64> {
            try client.engine.send(destination: "/q", body: [], receiptToken: token, at: client.nanoseconds)
            client.advance(to: client.now + 1_000)
        }
        _ = client.takeOutput()
        sleep(client, until: 100_000)
        client.receive("RECEIPT\nreceipt-id:1\n\n\0")
        client.advance(to: 104_999)
        #expect(client.takeLog() == ["receipt 1 received"])
        client.advance(to: 105_000)
        #expect(client.takeLog() == ["receipt 2 timedOut", "receipt 3 timedOut"])
        #expect(client.engine.phase == .connected)
    }

    @Test func earlyLateAndRepeatedTimeoutsAreHarmless() throws {
        let client = try client(.init(outgoing: 1_000, incoming: 0), "0,1000")
        for _ in 0..<10 { client.timeout() }
        #expect(client.takeOutput() == "")
        client.engine.handleTimeout(at: 5_000_000_000, into: &client.effects)
        client.engine.handleTimeout(at: 5_000_000_000, into: &client.effects)
        #expect(client.takeOutput() == "\n")
        client.close()
        client.timeout()
        #expect(client.takeOutput() == "" && client.takeLog() == ["failed closed"])
    }

    @Test func serverBeatsAndWatchesToo() throws {
        let server = try ScriptedEngine.serving(heartBeat: "1000,500")
        #expect(server.engine.heartBeat == .init(outgoing: 1_000, incoming: 1_000))
        server.advance(to: 600)
        #expect(server.takeOutput() == "\n")
        server.advance(to: 2_499)
        #expect(server.takeLog() == [])
        server.advance(to: 2_500)
        #expect(server.takeLog() == ["failed heartBeatLost", "close"])
    }

    @Test func lineEndsAreCounted() throws {
        let client = try ScriptedEngine.connected()
        let before = client.engine.lineEndsReceived
        client.receive("\n\r\n\n")
        #expect(client.engine.lineEndsReceived == before + 3)
        #expect(client.takeLog() == [])
    }
}
