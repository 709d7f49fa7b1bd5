import ClientTestSupport
import LoopbackBroker
import Synchronization
import TestSupport
import Testing

@testable import MQTT

@Suite("Subscriptions: messages that a program has not acknowledged", .turns)
struct UnacknowledgedMessageTests {
    /// What a client with a Receive Maximum of four reports while a program works on its messages.
    private func reports(
        _ change: @Sendable (inout MQTTConfiguration) -> Void = { _ in },
        during body: (ManualClock, MQTTClient, _ sender: MQTTClient) async throws -> Void
    ) async throws -> [String] {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        var configuration = MQTTConfiguration(clientID: "worker")
        configuration.version = .v5_0
        configuration.receiveMaximum = 4
        change(&configuration)
        let client = MQTTClient(try broker.mqttURL, configuration: configuration, clock: clock)
        let sender = MQTTClient(try broker.mqttURL, clientID: "sender", clock: clock)
        var events = client.events.makeAsyncIterator()
        try await client.connect()
        try await sender.connect()
        try await body(clock, client, sender)
        await client.disconnect()
        await sender.disconnect()
        var reports: [String] = []
        while let event = await events.next() {
            if case .receiveMaximumReached(let topic, let age) = event { reports.append("\(topic) \(age)") }
            if case .stateChanged(.disconnected) = event { break }
        }
        await broker.stop()
        return reports
    }

    private func publish(_ numbers: Range<Int>, from sender: MQTTClient, _ clock: ManualClock) async throws {
        for number in numbers { try await sender.publish("\(number)", to: "jobs/\(number)", qos: .atLeastOnce) }
        await clock.waitUntilQuiet()
    }

    @Test(arguments: [QoS.atLeastOnce, .exactlyOnce])
    func `the message that was forgotten is reported once, with its age, when the server can send no more`(
        qos: QoS
    ) async throws {
        let reports = try await reports { clock, client, sender in
            let jobs = try await client.subscribe(to: "jobs/#", qos: qos, acknowledgement: .manual)
            for number in 0..<3 {
                try await sender.publish("\(number)", to: "jobs/\(number)", qos: qos)
                await clock.waitUntilQuiet()
                await clock.advance(by: .seconds(10))
            }
            let first = try await jobs.first(3)
            #expect(client.backlog.unacknowledgedMessages == 3)
            // The first is forgotten, and the others wait for it.
            first[1].acknowledge()
            first[2].acknowledge()
            #expect(client.backlog.unacknowledgedMessages == 1)
            for number in 3..<9 {
                try await sender.publish("\(number)", to: "jobs/\(number)", qos: qos)
                await clock.waitUntilQuiet()
            }
            #expect(client.backlog.unacknowledgedMessages == 2)
            first[0].acknowledge()
            for number in 3..<9 {
                let job = try #require(try await jobs.first(1).first)
                #expect(job.text == "\(number)")
                job.acknowledge()
            }
            await clock.waitUntilQuiet()
            #expect(client.backlog.unacknowledgedMessages == 0)
        }
        #expect(reports.first == "jobs/0 30.0 seconds")
        #expect(reports.count <= 2, "\(reports)")
    }

    @Test(arguments: [9, 10])
    func `it is reported again once half of the places have been free, ten seconds later`(seconds: Int) async throws {
        let reports = try await reports { clock, client, sender in
            let jobs = try await client.subscribe(to: "jobs/#", acknowledgement: .manual)
            try await publish(0..<4, from: sender, clock)
            let messages = try await jobs.first(4)
            messages[0].acknowledge()
            try await publish(4..<5, from: sender, clock)
            for message in messages[1...] { message.acknowledge() }
            await clock.advance(by: .seconds(seconds))
            try await publish(5..<8, from: sender, clock)
        }
        let first = "jobs/0 0.0 seconds"
        #expect(reports == (seconds < 10 ? [first] : [first, "jobs/4 \(seconds).0 seconds"]))
    }

    @Test func `messages that another subscription gets as well count once, and wait for the one that acknowledges`()
        async throws
    {
        let reports = try await reports { clock, client, sender in
            let jobs = try await client.subscribe(to: "jobs/#", acknowledgement: .manual)
            let others = try await client.subscribe(to: "jobs/0", acknowledgement: .manual)
            let automatic = try await client.subscribe(to: "noise/#")
            try await publish(0..<1, from: sender, clock)
            #expect(client.backlog.unacknowledgedMessages == 1)
            // The message that fills the places is another subscription's.
            for _ in 0..<3 { try await sender.publish("", to: "noise/a", qos: .atLeastOnce) }
            await clock.waitUntilQuiet()
            withExtendedLifetime((jobs, others, automatic)) {}
        }
        #expect(reports == ["jobs/0 0.0 seconds"])
    }

    @Test(arguments: [QoS.atLeastOnce, .exactlyOnce])
    func `a reader that is replaced while it works leaves its messages to the next, and nothing waits for them`(
        qos: QoS
    ) async throws {
        _ = try await reports { clock, client, sender in
            let jobs = try await client.subscribe(to: "jobs/#", qos: qos, acknowledgement: .manual)
            var old = jobs.makeAsyncIterator()
            try await sender.publish((0..<3).map { .init([UInt8($0)], to: "jobs/a", qos: qos) }).check()
            await clock.waitUntilQuiet()
            let begun = try #require(try await old.next())
            let done = Mutex<[UInt8]>([])
            let new = Task {
                for try await job in jobs {
                    done.withLock { $0 += job.bytes }
                    job.acknowledge()
                }
            }
            try await sender.publish([3], to: "jobs/a", qos: qos)
            #expect(await eventually { done.withLock { $0 == [1, 2, 3] } })
            begun.acknowledge()
            // More than Receive Maximum.
            for number in UInt8(4)..<10 { try await sender.publish([number], to: "jobs/a", qos: qos) }
            #expect(await eventually { done.withLock { $0 == Array(1..<10) } })
            #expect(await eventually { client.backlog.unacknowledgedMessages == 0 })
            new.cancel()
            _ = await new.result
        }
    }

    @Test(arguments: [QoS.atLeastOnce, .exactlyOnce])
    func `a message counts as taken once an iterator has returned it, whichever that was`(qos: QoS) async throws {
        _ = try await reports { clock, client, sender in
            do {
                let jobs = try await client.subscribe(to: "jobs/#", qos: qos, acknowledgement: .manual)
                var old = jobs.makeAsyncIterator()
                try await sender.publish((0..<4).map { .init([UInt8($0)], to: "jobs/a", qos: qos) }).check()
                await clock.waitUntilQuiet()
                try await old.next()?.acknowledge()
                var new = jobs.makeAsyncIterator()
                #expect(try await new.next()?.bytes == [1])
            }
            let next = try await client.subscribe(to: "jobs/#", qos: qos, acknowledgement: .manual)
            let left = try await next.first(3)
            #expect(left.map(\.bytes) == [[1], [2], [3]])
            #expect(left.map(\.isDuplicate) == [true, false, false])
        }
    }

    @Test(arguments: [QoS.atLeastOnce, .exactlyOnce])
    func `acknowledge() of an automatic subscription does nothing to a message that a manual one has too`(qos: QoS)
        async throws
    {
        _ = try await reports { clock, client, sender in
            let log = try await client.subscribe(to: "#", qos: qos)
            let jobs = try await client.subscribe(to: "jobs/#", qos: qos, acknowledgement: .manual)
            try await publish(0..<1, from: sender, clock)
            for message in try await log.first(1) { message.acknowledge() }
            #expect(client.backlog.unacknowledgedMessages == 1)
            for message in try await jobs.first(1) { message.acknowledge() }
            #expect(client.backlog.unacknowledgedMessages == 0)
        }
    }

    @Test func `automatic acknowledgements and versions without Receive Maximum report nothing`() async throws {
        let automatic = try await reports { clock, client, sender in
            let jobs = try await client.subscribe(to: "jobs/#", buffer: BufferPolicy(messages: 2))
            try await publish(0..<9, from: sender, clock)
            #expect(client.backlog.unacknowledgedMessages == 0)
            withExtendedLifetime(jobs) {}
        }
        let old = try await reports {
            $0.version = .v3_1_1
        } during: { clock, client, sender in
            let jobs = try await client.subscribe(to: "jobs/#", acknowledgement: .manual)
            try await publish(0..<9, from: sender, clock)
            #expect(client.backlog.unacknowledgedMessages > 0)
            withExtendedLifetime(jobs) {}
        }
        #expect(automatic + old == [])
    }
}
