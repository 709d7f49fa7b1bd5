import MQTT
import STOMP
import Synchronization
import TestSupport

/// Numbered messages of one client to another over servers that belong together, and what came of them.
struct ClusterTraffic: Sendable {
    /// Returns when a message is confirmed.
    let send: @Sendable (String) async throws -> Void
    /// Receives until the subscription ends.
    let receive: @Sendable (_ received: @Sendable (String) -> Void) async throws -> Void
    /// Sends a message with a client of its own to a server, and returns when it is confirmed.
    let probe: @Sendable (_ server: Int) async throws -> Void
    let end: @Sendable () async -> Void

    /// A queue of STOMP.
    static func stomp(
        _ ports: [Int], user: String = "", headers: STOMPHeaders = [:],
        _ change: (inout STOMPConfiguration) -> Void = { _ in }
    ) async throws -> ClusterTraffic {
        let urls = ports.map { "stomp://\(user)127.0.0.1:\($0)" }
        var configuration = STOMPConfiguration()
        change(&configuration)
        let (sender, receiver) = (
            STOMPClient(urls, configuration: configuration), STOMPClient(urls, configuration: configuration)
        )
        await sender.start()
        await receiver.start()
        let options = STOMPSendOptions(persistent: true, headers: headers)
        let queue = "/queue/campaign"
        return ClusterTraffic(
            send: { text in
                try await sender.connect()
                try await sender.sendAndConfirm(text, to: queue, options: options)
            },
            receive: { received in
                try await receiver.connect()
                let messages = try await receiver.subscribe(
                    to: queue, acknowledgement: .clientIndividual, options: STOMPSubscribeOptions(headers: headers))
                for try await message in messages {
                    received(message.text ?? "")
                    // One of a connection that is gone comes again.
                    try? message.acknowledge()
                }
            },
            probe: { server in
                try await STOMPClient(urls[server]).withConnection {
                    try await $0.sendAndConfirm("probe", to: queue, options: options)
                }
            },
            end: {
                await sender.disconnect()
                await receiver.disconnect()
            })
    }

    /// A topic of MQTT with QoS 1 and sessions that are kept.
    ///
    /// - Parameter receivesElsewhere: whether the receiver prefers the last server, and not the sender's.
    static func mqtt(
        _ ports: [Int], user: String = "", receivesElsewhere: Bool = false,
        _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) async throws -> ClusterTraffic {
        let urls = ports.map { "mqtt://\(user)127.0.0.1:\($0)" }
        var configuration = MQTTConfiguration()
        configuration.cleanStart = false
        change(&configuration)
        configuration.clientID = "campaign-sender"
        let sender = MQTTClient(urls, configuration: configuration)
        configuration.clientID = "campaign-receiver"
        let receiver = MQTTClient(receivesElsewhere ? urls.reversed() : urls, configuration: configuration)
        await sender.start()
        await receiver.start()
        let topic = "campaign/numbers"
        return ClusterTraffic(
            send: { text in
                try await sender.connect()
                try await sender.publish(text, to: topic, qos: .atLeastOnce)
            },
            receive: { received in
                try await receiver.connect()
                for try await message in try await receiver.subscribe(to: topic) { received(message.text ?? "") }
            },
            probe: { server in
                try await MQTTClient(urls[server], clientID: "probe-%%%%").withConnection {
                    _ = try await $0.publish("probe", to: topic, qos: .atLeastOnce)
                }
            },
            end: {
                await sender.disconnect()
                await receiver.disconnect()
            })
    }
}

/// Which messages were confirmed and received, and the longest times between two of them.
final class ClusterLedger: Sendable {
    struct State {
        var confirmed: Set<Int> = []
        var received: [Int: Int] = [:]
        var isMeasuring = false
        var lastConfirmation = ContinuousClock.now
        var lastReceipt = ContinuousClock.now
        var silenceOfConfirmations = Duration.zero
        var silenceOfReceipts = Duration.zero
    }

    private let state = Mutex(State())

    func noteConfirmed(_ number: Int) {
        state.withLock { state in
            state.confirmed.insert(number)
            let now = ContinuousClock.now
            if state.isMeasuring {
                state.silenceOfConfirmations = max(state.silenceOfConfirmations, now - state.lastConfirmation)
            }
            state.lastConfirmation = now
        }
    }

    func noteReceived(_ text: String) {
        guard let number = Int(text) else { return }
        state.withLock { state in
            state.received[number, default: 0] += 1
            let now = ContinuousClock.now
            if state.isMeasuring {
                state.silenceOfReceipts = max(state.silenceOfReceipts, now - state.lastReceipt)
            }
            state.lastReceipt = now
        }
    }

    /// Measures the times between two messages from now on, or no longer.
    func measure(_ isMeasuring: Bool) { state.withLock { $0.isMeasuring = isMeasuring } }

    var now: State { state.withLock { $0 } }
}

extension ClusterLedger.State {
    var lost: [Int] { confirmed.filter { received[$0] == nil }.sorted() }
    var repeatedCount: Int { received.values.filter { $0 > 1 }.count }
}
