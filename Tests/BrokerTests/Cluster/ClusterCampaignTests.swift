import MQTT
import STOMP
import TestSupport
import Testing

/// Servers that belong together, one of which fails while messages are sent and received: what is lost, and for how long
/// nothing is served, beside what the servers themselves need.
///
/// A plain run has one failure of one set-up; `CAMPAIGN=1 REQUIRE_BROKERS=1 swift test --filter ClusterCampaign` has all
/// of them, in six minutes. Each prints a row of the table.
@Suite(
    "Cluster campaign", .serialized, .turns,
    Campaign.scale >= 1 ? .requires(.mosquitto, .activeMQWithMQTT, .rabbitMQ) : .requires(.mosquitto))
struct ClusterCampaignTests {
    enum Failure: String, CustomStringConvertible {
        case kill = "SIGKILL"
        case stop = "SIGTERM"
        case freeze = "SIGSTOP"
        var description: String { rawValue }
    }

    /// How the failing node is told to fail, and how it comes back.
    private struct Node {
        let broker: any RunningBroker
        /// Starts it again after it has ended.
        let start: @Sendable () async throws -> Void

        func fail(_ failure: Failure) async {
            switch failure {
            case .kill: await broker.kill()
            case .stop: await broker.stop()
            case .freeze: await broker.freeze()
            }
        }

        func comeBack(_ failure: Failure) async throws {
            if failure == .freeze { broker.thaw() } else { try await start() }
        }
    }

    // MARK: Set-ups

    enum SetUp {
        case mosquittoBridge, activeMQPair, rabbitMQQuorum
    }

    struct Case: CustomTestStringConvertible {
        let setUp: SetUp
        let failure: Failure
        let isMQTT: Bool
        var testDescription: String { "\(setUp), \(failure), \(isMQTT ? "MQTT" : "STOMP")" }
    }

    private static let bridge = [Failure.stop, .kill, .freeze].map {
        Case(setUp: .mosquittoBridge, failure: $0, isMQTT: true)
    }
    // A pair shares one lock, which a frozen node keeps: no client can do anything about that.
    private static let pair = [Failure.kill, .stop].flatMap { failure in
        [false, true].map { Case(setUp: .activeMQPair, failure: failure, isMQTT: $0) }
    }
    private static let quorum = [Failure.kill, .stop, .freeze].flatMap { failure in
        [false, true].map { Case(setUp: .rabbitMQQuorum, failure: failure, isMQTT: $0) }
    }

    // One test has them all: a test without a case would be reported as skipped.
    @Test(arguments: Campaign.scale >= 1 ? bridge + pair + quorum : [bridge[0]])
    func `a node fails, and nothing that was confirmed is lost`(_ row: Case) async throws {
        switch row.setUp {
        case .mosquittoBridge: try await runMosquittoBridge(row.failure)
        case .activeMQPair: try await runActiveMQPair(row.failure, isMQTT: row.isMQTT)
        case .rabbitMQQuorum: try await runRabbitMQQuorum(row.failure, isMQTT: row.isMQTT)
        }
    }

    /// The session store of a node that is killed is as old as its last write: Mosquitto may lose what it has just
    /// acknowledged, and had not passed to the other one.
    private func runMosquittoBridge(_ failure: Failure) async throws {
        let first = try await Mosquitto.start { $0.persistence = true }
        let second = try await Mosquitto.start {
            $0.persistence = true
            $0.extraLines = [
                "connection pair", "address 127.0.0.1:\(first.port)", "topic # both 1", "restart_timeout 1",
                "cleansession false", "notifications false",
            ]
        }
        let traffic = try await ClusterTraffic.mqtt([first.port, second.port], receivesElsewhere: true)
        try await run(
            "Mosquitto, bridge, MQTT", traffic, failure, Node(broker: first) { try await first.restart() },
            detection: .seconds(30), brokerMayLose: failure == .kill ? 2 : 0)
        await first.kill()
        await second.kill()
    }

    private func runActiveMQPair(_ failure: Failure, isMQTT: Bool) async throws {
        let pair = try await ActiveMQ.startPair()
        let traffic =
            isMQTT
            ? try await ClusterTraffic.mqtt(pair.map { try $0.mqttPort }) { $0.reconnect.maximumDelay = .seconds(1) }
            : try await ClusterTraffic.stomp(pair.map(\.stompPort)) { $0.reconnect.maximumDelay = .seconds(1) }
        try await run(
            "ActiveMQ, one store, \(isMQTT ? "MQTT" : "STOMP")", traffic, failure,
            Node(broker: pair[0]) { try await pair[0].launch() })
        for broker in pair { await broker.kill() }
    }

    private func runRabbitMQQuorum(_ failure: Failure, isMQTT: Bool) async throws {
        let cluster = try await RabbitMQCluster.start(extraLines: ["mqtt.durable_queue_type = quorum"])
        let traffic =
            isMQTT
            ? try await ClusterTraffic.mqtt(cluster.nodes.map { $0.mqttPort ?? 0 }, user: "guest:guest@")
            : try await ClusterTraffic.stomp(
                cluster.nodes.map(\.stompPort), user: "guest:guest@",
                headers: ["x-queue-type": "quorum", "durable": "true", "auto-delete": "false"])
        let node = cluster.nodes[0]
        try await run(
            "RabbitMQ × 3, quorum, \(isMQTT ? "MQTT" : "STOMP")", traffic, failure,
            Node(broker: node) { try await node.restart() }, detection: .seconds(isMQTT ? 30 : 20))
        await cluster.stop()
    }

    // MARK: A run

    /// - Parameters:
    ///   - node: the first server of the list.
    ///   - detection: how long a client with default options needs to notice that its server is silent.
    ///   - brokerMayLose: how many messages the servers may lose that they have confirmed.
    private func run(
        _ name: String, _ traffic: ClusterTraffic, _ failure: Failure, _ node: Node, detection: Duration = .zero,
        brokerMayLose: Int = 0
    ) async throws {
        let ledger = ClusterLedger()
        let receiving = Task {
            while !Task.isCancelled {
                try? await traffic.receive { ledger.noteReceived($0) }
                try? await Task.sleep(for: .milliseconds(20))
            }
        }
        #expect(
            await eventually(every: .milliseconds(100)) {
                try? await traffic.send("-1")
                return ledger.now.received[-1] != nil
            })
        let sending = Task {
            var number = 0
            while !Task.isCancelled {
                do {
                    try await traffic.send("\(number)")
                    ledger.noteConfirmed(number)
                    number += 1
                } catch {
                    try? await Task.sleep(for: .milliseconds(20))
                }
                try? await Task.sleep(for: .milliseconds(5))
            }
        }
        #expect(await hasServed(100, ledger))

        ledger.measure(true)
        let probing = Task { await longestSilence(of: traffic) }
        await node.fail(failure)
        #expect(await hasServed(100, ledger))
        ledger.measure(false)
        probing.cancel()
        let (broker, silence) = (await probing.value, ledger.now)
        try await node.comeBack(failure)
        #expect(await hasServed(100, ledger))
        sending.cancel()
        await sending.value
        let isComplete = await eventually(timeout: brokerMayLose > 0 ? .seconds(20) : .patience) {
            ledger.now.lost.isEmpty
        }
        receiving.cancel()
        await traffic.end()
        await receiving.value

        let end = ledger.now
        #expect(isComplete || end.lost.count <= brokerMayLose, "lost: \(end.lost)")
        // A server that ends is noticed at once; the time of the broker itself is nobody's.
        let allowed = broker + (failure == .freeze ? detection : .zero) + .seconds(10)
        #expect(silence.silenceOfConfirmations <= allowed, "the broker itself needed \(broker)")
        print(
            "| \(name) | \(failure) | \(end.confirmed.count) | \(end.lost.count) | \(end.repeatedCount) | "
                + "\(Self.seconds(silence.silenceOfConfirmations)) | \(Self.seconds(silence.silenceOfReceipts)) | "
                + "\(Self.seconds(broker)) |")
    }

    /// Waits until so many more messages were confirmed, and as many received.
    private func hasServed(_ count: Int, _ ledger: ClusterLedger) async -> Bool {
        let start = ledger.now
        return await eventually {
            let now = ledger.now
            return now.confirmed.count >= start.confirmed.count + count
                && now.received.count >= start.received.count + count
        }
    }

    /// The longest time in which the second server confirmed nothing, until the task is cancelled.
    private func longestSilence(of traffic: ClusterTraffic) async -> Duration {
        var (last, longest) = (ContinuousClock.now, Duration.zero)
        while !Task.isCancelled {
            let isServed = (try? await withTimeout(.seconds(2)) { try await traffic.probe(1) }) != nil
            let now = ContinuousClock.now
            // What the end has cut off says nothing.
            if !isServed, Task.isCancelled { break }
            longest = max(longest, now - last)
            if isServed { last = now }
            try? await Task.sleep(for: .milliseconds(20))
        }
        return longest
    }

    private static func seconds(_ duration: Duration) -> String {
        let tenths = Int(duration / .milliseconds(100))
        return "\(tenths / 10).\(tenths % 10) s"
    }
}
