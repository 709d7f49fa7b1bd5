import MQTT
import MQTTCore
import Synchronization
import TestSupport
import Transport

/// A server that keeps the SUBSCRIBE and UNSUBSCRIBE packets that it receives, and answers SUBSCRIBE itself unless it
/// withholds that.
final class SubscribingServer: Sendable {
    private struct State {
        var subscribed: [MQTTPacket.Subscribe] = []
        var unsubscribed: [String] = []
        var withholds = false
        var unanswered: [(step: ScriptedServer.Step, packetID: UInt16)] = []
    }

    private let state = Mutex(State())
    private let scripted = Mutex<ScriptedServer?>(nil)

    private let connackProperties: MQTTProperties

    /// - Parameter change: what CONNACK has.
    init(
        clock: ManualClock? = nil, maximumPacketSize: UInt32 = 16 << 20,
        _ change: (inout MQTTProperties) -> Void = { _ in }
    ) {
        var properties = MQTTProperties()
        change(&properties)
        connackProperties = properties
        let server = ScriptedServer(maximumPacketSize: maximumPacketSize, clock: clock) { [weak self] step in
            self?.handle(step)
        }
        scripted.withLock { $0 = server }
    }

    var scriptedServer: ScriptedServer { scripted.withLock { $0! } }
    var subscribed: [MQTTSubscriptionRequest] { state.withLock { $0.subscribed.flatMap(\.subscriptions) } }
    /// The number of filters in each SUBSCRIBE.
    var requestSizes: [Int] { state.withLock { $0.subscribed.map(\.subscriptions.count) } }
    var properties: [MQTTProperties] { state.withLock { $0.subscribed.map(\.properties) } }
    var unsubscribed: [String] { state.withLock { $0.unsubscribed } }
    var unansweredCount: Int { state.withLock { $0.unanswered.count } }
    func setWithholding(_ withholds: Bool) { state.withLock { $0.withholds = withholds } }

    /// Answers the SUBSCRIBE at this place among those that are not answered.
    func answer(_ code: MQTTReasonCode, at place: Int = 0) {
        let found = state.withLock { state in
            place < state.unanswered.count ? state.unanswered.remove(at: place) : nil
        }
        guard let (step, packetID) = found else { return }
        step.perform { try? $0.engine.acknowledgeSubscribe(packetID, codes: [code], at: MonotonicClock.now) }
    }

    /// Answers all SUBSCRIBE packets that are not answered, in their order; the answers arrive in one read.
    func answerAll(_ codes: MQTTReasonCode...) {
        let all = state.withLock { state in
            defer { state.unanswered = [] }
            return state.unanswered
        }
        all.first?.step.perform { machine in
            for (entry, code) in zip(all, codes) {
                try? machine.engine.acknowledgeSubscribe(entry.packetID, codes: [code], at: MonotonicClock.now)
            }
        }
    }

    /// Sends messages of QoS 0, which arrive in one read.
    func send(_ texts: String..., to topic: String) { send(texts, to: topic) }

    func send(_ texts: [String], to topic: String) {
        scriptedServer.link?.perform { machine in
            for text in texts {
                _ = try? machine.engine.publish(
                    topic: topic, payload: Array(text.utf8), qos: .atMostOnce, retain: false, properties: [], token: 1,
                    at: MonotonicClock.now)
            }
        }
    }

    private func handle(_ step: ScriptedServer.Step) {
        switch step.event {
        case .connectReceived: step.accept(properties: connackProperties)
        case .subscribeReceived(let packet):
            let isWithheld = state.withLock { state in
                state.subscribed.append(packet)
                if state.withholds { state.unanswered.append((step, packet.packetID)) }
                return state.withholds
            }
            guard !isWithheld else { return }
            step.perform { machine in
                let codes = packet.subscriptions.map { MQTTReasonCode(rawValue: $0.qos.rawValue) }
                try? machine.engine.acknowledgeSubscribe(packet.packetID, codes: codes, at: MonotonicClock.now)
            }
        case .unsubscribeReceived(let packet):
            state.withLock { $0.unsubscribed += packet.filters }
            step.perform { machine in
                try? machine.engine.acknowledgeUnsubscribe(
                    packet.packetID, codes: packet.filters.map { _ in .success }, at: MonotonicClock.now)
            }
        default: break
        }
    }
}
