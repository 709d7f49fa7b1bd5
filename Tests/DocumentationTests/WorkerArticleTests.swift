import ClientTestSupport
import Foundation
import LoopbackBroker
import MQTT
import TestSupport
import Testing

/// The code of the articles on MQTT workers, on projects on the main actor and on mistakes of tests, run as shown.
@Suite(.turns)
struct WorkerArticleTests {
    private struct Crash: Error {}

    private func clockedBroker() async throws -> (LoopbackBroker, MQTTClient, ManualClock) {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        return (broker, try MQTTClient(broker.mqttURL, clientID: "reader", clock: clock), clock)
    }

    @Test func `A job that a worker did not finish comes again, and its answer exists once`() async throws {
        let broker = try await LoopbackBroker.judged()
        let url = try broker.mqttURL
        let scratch = try ScratchDirectory("worker")
        let customer = MQTTClient(url, clientID: "customer")
        try await customer.connect()
        var answers = try await customer.subscribe(to: "done/+", qos: .exactlyOnce).makeAsyncIterator()

        // The first worker is there, and goes down with the job in hand.
        let subscribed = broker.arrivals().filter { $0.client == "worker-1" && $0.packet == .mqtt(.subscribe) }
        let first = Task {
            try await workOffJobs(url, store: scratch.path) { _ in throw Crash() }
        }
        for await _ in subscribed.prefix(1) {}
        #expect(broker.sessionCount == 2)
        try await customer.publish("wash", to: "jobs/car", qos: .atLeastOnce)
        await #expect(throws: Crash.self) { try await first.value }
        // While no worker runs the server keeps the next job, too.
        try await customer.publish("wax", to: "jobs/boat", qos: .atLeastOnce)
        let second = Task {
            try await workOffJobs(url, store: scratch.path) { job in "\(job.text ?? "") done" }
        }
        let done = try await [answers.next(), answers.next()].compactMap { $0.map { "\($0.topic) \($0.text ?? "")" } }
        #expect(done.sorted() == ["done/boat wax done", "done/car wash done"])
        second.cancel()
        _ = await second.result
        // Both were acknowledged: a third worker gets the next job first.
        try await customer.publish("dry", to: "jobs/bus", qos: .atLeastOnce)
        let third = Task {
            try await workOffJobs(url, store: scratch.path) { job in job.topic }
        }
        #expect(try await answers.next()?.text == "jobs/bus")
        third.cancel()
        _ = await third.result
        await customer.disconnect()
        await broker.stop()
    }

    @Test func `A worker that is stopped finishes its job, and leaves the next one to the session`() async throws {
        let broker = try await LoopbackBroker.judged()
        let url = try broker.mqttURL
        let scratch = try ScratchDirectory("stopped-worker")
        let customer = MQTTClient(url, clientID: "customer")
        try await customer.connect()
        var answers = try await customer.subscribe(to: "done/+", qos: .exactlyOnce).makeAsyncIterator()
        let subscribed = broker.arrivals().filter { $0.client == "worker-1" && $0.packet == .mqtt(.subscribe) }
        let (begun, begin) = AsyncStream<Void>.makeStream()
        let (stopped, stop) = AsyncStream<Void>.makeStream()
        let first = Task {
            try await workOffJobs(url, store: scratch.path) { job in
                begin.yield()
                for await _ in stopped.prefix(1) {}
                return "\(job.text ?? "") done, \(Task.isCancelled ? "in haste" : "in peace")"
            }
        }
        for await _ in subscribed.prefix(1) {}
        try await customer.publish("wash", to: "jobs/car", qos: .atLeastOnce)
        for await _ in begun.prefix(1) {}
        try await customer.publish("wax", to: "jobs/boat", qos: .atLeastOnce)
        first.cancel()
        stop.yield()
        _ = await first.result
        // The job was acknowledged, and the other one was not begun.
        let second = Task {
            try await workOffJobs(url, store: scratch.path) { job in job.text ?? "" }
        }
        #expect(try await answers.next()?.text == "wash done, in peace")
        #expect(try await answers.next()?.text == "wax")
        second.cancel()
        _ = await second.result
        await customer.disconnect()
        await broker.stop()
    }

    @Test func `A meter is online, reports readings, and is offline when it has ended`() async throws {
        let broker = try await LoopbackBroker.judged()
        let url = try broker.mqttURL
        let scratch = try ScratchDirectory("meter")
        let reader = MQTTClient(url, clientID: "reader")
        try await reader.connect()
        var states = try await reader.subscribe(to: "meters/+/status").makeAsyncIterator()
        var readings = try await reader.subscribe(to: "meters/+/reading").makeAsyncIterator()
        let meter = makeMeter(url, store: scratch.path)
        let running = Task { try await runMeter(meter, read: { 21.5 }, log: { _ in }) }
        #expect(try await states.next()?.text == "online")
        #expect(try await readings.next()?.text == "21.5")
        await end(meter)
        try await running.value
        #expect(try await states.next()?.text == "offline")
        await reader.disconnect()
        await broker.stop()
    }

    @Test func `A meter that is stopped before it runs ends all the same`() async throws {
        let broker = try await LoopbackBroker.judged()
        let scratch = try ScratchDirectory("stopped-meter")
        let meter = makeMeter(try broker.mqttURL, store: scratch.path)
        let (held, letGo) = AsyncStream<Void>.makeStream()
        let running = Task {
            for await _ in held {}
            try await runMeter(meter, read: { 21.5 }, log: { _ in })
        }
        stopMeter(running, meter)
        #expect(await eventually { running.isCancelled })
        letGo.finish()
        try await withTimeout(.patience, "the meter") { try await running.value }
        #expect(!meter.state.isConnected)
        await broker.stop()
    }

    @Test func `A signal is not lost that comes as soon as it is handled`() async throws {
        for _ in 0..<20 {
            let (signals, signal) = AsyncStream<Void>.makeStream()
            // One that has no effect where it is not handled.
            let source = await onSignal(SIGURG) { signal.yield() }
            kill(getpid(), SIGURG)
            try await withTimeout(.patience, "the signal") { for await _ in signals.prefix(1) {} }
            source.cancel()
        }
    }

    @MainActor @Test func `A model without an attribute for its actor shows and reports readings`() async throws {
        let broker = try await LoopbackBroker.judged()
        let model = RoomModel(client: MQTTClient(try broker.mqttURL, clientID: "phone"))
        let subscribed = broker.arrivals().filter { $0.packet == .mqtt(.subscribe) }
        let tasks = [Task { await model.watchConnection() }, Task { await model.watchRooms() }]
        #expect(await eventually { @MainActor in model.status == "online" })
        for await _ in subscribed.prefix(1) {}
        await model.report(21.5, of: "kitchen")
        #expect(await eventually { @MainActor in model.rooms == ["kitchen": 21.5] })
        #expect(model.problem == nil)
        for task in tasks { task.cancel() }
        await broker.stop()
    }

    @Test func `A request that is under way times out when the clock is advanced`() async throws {
        let (broker, client, clock) = try await clockedBroker()
        try await client.connect()
        await expectATimeout(broker: broker, client: client, clock: clock)
        await client.disconnect()
        await broker.stop()
    }

    @Test func `Wrong credentials are an error of connect, and the reason of the last state`() async throws {
        var options = LoopbackBrokerOptions()
        options.users = [.init(name: "ann", password: "right")]
        let broker = try await LoopbackBroker.judged(options)
        var configuration = MQTTConfiguration(clientID: "reader")
        configuration.credentials = Credentials(userName: "ann", password: "wrong")
        await expectARefusal(MQTTClient(try broker.mqttURL, configuration: configuration))
        let reason = await reasonOfTheEnd(of: MQTTClient(try broker.mqttURL, configuration: configuration))
        #expect(reason?.code == .badCredentials)
        await broker.stop()
    }

    @Test func `A loop and its subscription end in the same place`() async throws {
        let broker = try await LoopbackBroker.judged()
        let client = MQTTClient(try broker.mqttURL, clientID: "reader")
        try await client.connect()
        let reading = Task { await readAlerts(client) }
        #expect(await eventually { broker.statistics.connections == 1 && client.state.isConnected })
        await client.disconnect()
        #expect(!(await reading.value).isEmpty)
        await broker.stop()
    }

    @Test func `A program that is stopped while it connects ends at once`() async throws {
        // No time passes on their clock, so that nothing ends by a time limit.
        let (broker, client, clock) = try await clockedBroker()
        let start = clock.now
        try await withTimeout(.patience, "the program") {
            try await stopWhileConnecting(broker: broker, client: client)
        }
        #expect(clock.now == start)
        await broker.stop()
    }
}
