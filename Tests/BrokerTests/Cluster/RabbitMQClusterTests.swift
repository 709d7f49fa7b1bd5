import MQTT
import STOMP
import Synchronization
import TestSupport
import Testing

/// A cluster of three nodes, one of which dies.
@Suite(
    .serialized, .requires(.rabbitMQ),
    .enabled(if: Broker.areRequired, "three RabbitMQ nodes take most of a small machine: REQUIRE_BROKERS=1 runs it"),
    .turns)
struct RabbitMQClusterTests {
    private static let queue = "/queue/confirmed"
    /// What makes a queue live on several nodes.
    private static let quorum: STOMPHeaders = [
        "x-queue-type": "quorum", "durable": "true", "auto-delete": "false", "exclusive": "false",
    ]

    private func stomp(_ cluster: RabbitMQCluster) -> STOMPClient {
        var configuration = STOMPConfiguration()
        configuration.allowSlowBrokers()
        configuration.reconnect.initialDelay = .milliseconds(50)
        configuration.reconnect.maximumDelay = .milliseconds(500)
        return STOMPClient(
            cluster.nodes.map { "stomp://guest:guest@127.0.0.1:\($0.stompPort)" }, configuration: configuration)
    }

    private func mqtt(_ cluster: RabbitMQCluster) -> MQTTClient {
        var configuration = MQTTConfiguration(clientID: "cluster-%%%%")
        configuration.allowSlowBrokers()
        configuration.reconnect.initialDelay = .milliseconds(50)
        configuration.reconnect.maximumDelay = .milliseconds(500)
        return MQTTClient(
            cluster.nodes.map { "mqtt://guest:guest@127.0.0.1:\($0.mqttPort ?? 0)" }, configuration: configuration)
    }

    @Test func `the node of all clients is killed: they move, and nothing confirmed is lost`() async throws {
        let cluster = try await RabbitMQCluster.start()
        let (sender, receiver, client) = (stomp(cluster), stomp(cluster), mqtt(cluster))
        try await sender.connect()
        try await receiver.connect()
        try await client.connect()
        #expect(sender.server?.endpoint == .host("127.0.0.1", port: UInt16(cluster.nodes[0].stompPort)))

        // MQTT: what is published after the move arrives after the move. With QoS 0, since RabbitMQ 3.10 keeps the
        // queue of a QoS 1 subscription on its node, and lets nobody subscribe with that identifier while it is down.
        let arrived = Mutex<Set<String>>([])
        let refusals = Mutex<[String]>([])
        let listening = Task {
            // On a busy machine the nodes may not agree in time that one of them is gone, and refuse the subscription.
            while !Task.isCancelled {
                do {
                    let numbers = try await client.subscribe(to: "cluster/numbers", qos: .atMostOnce)
                    for try await message in numbers { arrived.withLock { _ = $0.insert(message.text ?? "") } }
                } catch {
                    refusals.withLock { $0.append("\(error)") }
                    try await Task.sleep(for: .milliseconds(100))
                }
            }
        }
        let isListening = await eventually(every: .milliseconds(100)) {
            _ = try? await client.publish("before", to: "cluster/numbers", qos: .atLeastOnce)
            return arrived.withLock { $0.contains("before") }
        }
        #expect(isListening, "\(refusals.withLock { $0.suffix(3) })")

        // STOMP: a sender repeats what is not confirmed; a receiver acknowledges what it has noted.
        let received = Mutex<Set<String>>([])
        let receiving = Task {
            // On a busy machine the nodes may not agree on the queue in time, and refuse the subscription.
            while !Task.isCancelled {
                do throws(STOMPError) {
                    let messages = try await receiver.subscribe(
                        to: Self.queue, acknowledgement: .clientIndividual,
                        options: STOMPSubscribeOptions(headers: Self.quorum))
                    for try await message in messages {
                        received.withLock { _ = $0.insert(message.text ?? "") }
                        // One of a connection that is gone comes again.
                        try? message.acknowledge()
                    }
                } catch {
                    try await Task.sleep(for: .milliseconds(20))
                }
            }
        }
        let total = 200
        let confirmed = Mutex<[String]>([])
        let repeats = Atomic(0)
        let isKilled = Atomic(false)
        let sending = Task {
            var number = 0
            // At least until the node has been killed.
            while !Task.isCancelled, number < total || !isKilled.load(ordering: .relaxed) {
                while !Task.isCancelled {
                    do {
                        try await sender.sendAndConfirm(
                            "\(number)", to: Self.queue,
                            options: STOMPSendOptions(persistent: true, headers: Self.quorum))
                        confirmed.withLock { $0.append("\(number)") }
                        break
                    } catch {
                        repeats.add(1, ordering: .relaxed)
                        try await Task.sleep(for: .milliseconds(20))
                    }
                }
                number += 1
            }
            return number
        }
        #expect(await eventually { confirmed.withLock { $0.count } >= total / 4 })
        await cluster.nodes[0].kill()
        isKilled.store(true, ordering: .relaxed)

        let sent = try await sending.value(within: .seconds(300), "confirming what is sent")
        #expect(confirmed.withLock { $0.count } == sent)
        let isComplete = await eventually {
            received.withLock { $0 }.isSuperset(of: confirmed.withLock { $0 })
        }
        #expect(isComplete, "lost: \(Set(confirmed.withLock { $0 }).subtracting(received.withLock { $0 }))")
        #expect(repeats.load(ordering: .relaxed) > 0)

        #expect(
            await eventually { client.counters.connections >= 2 && client.state.isConnected })
        let isHeard = await eventually(every: .milliseconds(100)) {
            // The subscription may stand a moment later than the connection.
            _ = try? await client.publish("after", to: "cluster/numbers", qos: .atLeastOnce)
            return arrived.withLock { $0.contains("after") }
        }
        #expect(isHeard, "\(client.state); \(refusals.withLock { $0.suffix(3) })")
        let dead = Set([cluster.nodes[0].stompPort, cluster.nodes[0].mqttPort ?? 0])
        for server in [sender.server, receiver.server, client.server] {
            guard case .host(_, let port)? = server?.endpoint else {
                Issue.record("no server")
                continue
            }
            #expect(!dead.contains(Int(port)))
        }
        listening.cancel()
        receiving.cancel()
        await sender.disconnect()
        await receiver.disconnect()
        await client.disconnect()
        await cluster.stop()
    }
}
