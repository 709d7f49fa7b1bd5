import ClientTestSupport
import LoopbackBroker
import MQTT
import STOMP
import Synchronization
import TestSupport
import Testing

/// What the client is meant to read like: a value to publish, values to receive, and a worker, without a declaration of
/// formats. It compiles as it is written.
@Suite struct ClientSampleTests {
    private struct Alert: Codable, Sendable {
        var text: String
    }

    private struct Motion: Codable, Sendable {
        var pitch, roll, yaw: Double
    }

    private func motions(_ id: String, _ attitude: Motion, show: (Alert) -> Void) async throws {
        let client = MQTTClient("mqtt://localhost", clientID: "motions-%%%%")
        await client.start()
        let alerts = try await client.subscribe(to: "/mwm/\(id)/alert", as: Alert.self)
        // Before connecting: a worker misses nothing.
        let jobs = client.subscription(to: "jobs/#", acknowledgement: .manual)
        try await client.publish(attitude, to: "/mwm/\(id)/motion", retain: true)
        for try await alert in alerts { show(try alert.value) }
        for try await job in jobs { job.acknowledge() }
    }

    @Test func `The sample is compiled, and refuses a client that is never started`() async {
        let client = MQTTClient("mqtt://localhost")
        await #expect(throws: MQTTError.self) {
            try await client.publish(Motion(pitch: 0, roll: 0, yaw: 0), to: "motion", retain: true)
        }
    }

    @Test func `A worker on STOMP continues over a lost connection, and processes what comes again`() async throws {
        let broker = try await LoopbackBroker.judged()
        let shop = try STOMPClient(broker.stompURL)
        try await shop.connect()
        var configuration = STOMPConfiguration()
        configuration.clientID = "worker"
        configuration.reconnect.spread = .zero
        let client = STOMPClient(try broker.stompURL, configuration: configuration)
        try await client.connect()
        let subscribes = Mutex(0)
        let answers = Mutex(0)
        let arrivals = broker.arrivals()
        let counting = Task {
            for await arrival in arrivals {
                if arrival.packet == .stomp(.subscribe) { subscribes.withLock { $0 += 1 } }
                if [.stomp(.ack), .stomp(.nack)].contains(arrival.packet) { answers.withLock { $0 += 1 } }
            }
        }
        let held = HeldExecutor()
        let failure = Mutex<(any Error)?>(nil)
        let worker = Task(executorPreference: held) {
            do { try await processOrders(client: client) } catch { failure.withLock { $0 = error } }
        }
        await held.run()
        #expect(await eventually { subscribes.withLock { $0 } == 1 })
        // They arrive, and the worker sees none of them before its connection is lost.
        for number in 1...2 { try await shop.sendAndConfirm("pizza \(number)", to: "/queue/orders") }
        #expect(await eventually { client.counters.messagesReceived == 2 })
        await broker.dropConnection(of: "worker")
        #expect(await eventually { subscribes.withLock { $0 } == 2 })
        #expect(
            await eventually {
                await held.run()
                return answers.withLock { $0 } == 2 || failure.withLock { $0 != nil }
            })
        #expect(failure.withLock { $0 } == nil)
        worker.cancel()
        await held.run(until: worker)
        #expect((failure.withLock { $0 } as? STOMPError)?.code == .cancelled)
        await client.disconnect()
        // Nothing comes again.
        var orders = try await shop.subscribe(to: "/queue/orders").makeAsyncIterator()
        try await shop.sendAndConfirm("the last", to: "/queue/orders")
        #expect(try await orders.next()?.text == "the last")
        await shop.disconnect()
        await broker.stop()
        await counting.value
    }
}
