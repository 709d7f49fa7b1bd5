import DeviceSupport
import MQTT

/// The device side of the Motions app: publishes how it is held, and shows alerts.
struct MotionsDevice: Sendable {
    private let id: String
    private let options: MotionsOptions
    private let source: ReplaySource<Attitude>
    private let link: DeviceLink<MQTTClient>
    private let last = Latest<Attitude>()
    /// Held until the connection has ended: releasing a subscription unsubscribes.
    private let kept = Latest<MQTTSubscription>()
    private var post: Fleet.Post { link.post }
    private var motionTopic: String { "/mwm/\(id)/motion" }
    private var alertTopic: String { "/mwm/\(id)/alert" }

    init(_ post: Fleet.Post, _ options: MotionsOptions, _ source: ReplaySource<Attitude>) {
        id = post.id
        self.options = options
        self.source = source
        let configuration = MQTTConfiguration(options, deviceID: post.id)
        link = DeviceLink(MQTTClient(post.fleet.urls, configuration: configuration), post)
    }

    func run() async throws -> DeviceSummary {
        try await link.run {
            let alerts = try await subscribe()
            do {
                try await untilEnd(of: alerts)
            } catch {
                await leave(alerts)
                throw error
            }
            await leave(alerts)
        }
        return link.tally.summary
    }

    private func subscribe() async throws -> MQTTSubscription {
        do throws(MQTTError) {
            let alerts = try await link.client.subscribe(to: alertTopic, qos: .atLeastOnce)
            await link.untilConnected()
            post.report("subscribed to \(alertTopic)\(alerts.grantedQoS.map { " with \($0)" } ?? "")", .faint)
            return alerts
        } catch {
            throw DeviceFailure(subscribing: error)
        }
    }

    private func leave(_ alerts: MQTTSubscription) async {
        // A session that is kept keeps its subscription, or nothing would arrive on return.
        if options.keepsSession {
            kept.value = alerts
            return
        }
        await link.leave { try? await alerts.unsubscribe() }
    }

    private func untilEnd(of alerts: MQTTSubscription) async throws {
        // Made before the first value goes out: what follows it, a key perhaps, is not missed.
        let (keys, events) = (post.keys, link.client.events)
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                try await show(alerts)
                return false
            }
            group.addTask {
                await showResubscriptions(in: events)
                return false
            }
            group.addTask {
                for await key in keys where key == .shake { try await shake() }
                return false
            }
            group.addTask {
                try await replay()
                return true
            }
            defer { group.cancelAll() }
            while let isAtEnd = try await group.next(), !isAtEnd {}
        }
    }

    // MARK: Motions

    private func replay() async throws {
        let meter = post.fleet.meter
        meter.begin(device: post.index, duration: source.duration, loops: source.loops)
        var pass = 0
        let ending = try await link.replay.play(source, interval: options.interval) { attitude, place in
            if let place, place.pass != pass {
                pass = place.pass
                post.announceRun(pass + 1)
            }
            last.value = attitude
            try await publish(attitude, due: place?.due)
            post.showSent("\(attitude)")
        }
        if ending == .atEnd { meter.ended(device: post.index) }
    }

    private func publish(_ attitude: Attitude, due: Int64?) async throws {
        let qos = QoS(rawValue: UInt8(options.qos)) ?? .atMostOnce
        try await link.send { () throws(MQTTError) in
            do throws(MQTTError) {
                try await link.client.publish(attitude.bytes, to: motionTopic, qos: qos, retain: true)
            } catch {
                // The next one comes in a moment: no reason to end.
                guard error.code == .sessionLost else { throw error }
                post.say("a motion may be lost: \(error.message)")
            }
        }
        link.tally.add { $0.sent += 1 }
        post.fleet.meter.sent(device: post.index, due: due)
        // The acknowledgement of QoS 1 and 2 has been awaited.
        if qos != .atMostOnce { post.fleet.meter.answered() }
    }

    private func shake() async throws {
        guard let last = last.value else { return post.say("shaken, but there is no motion yet to send again") }
        try await publish(last, due: nil)
        post.report("shaken: \(last)")
    }

    // MARK: Alerts

    private func show(_ alerts: MQTTSubscription) async throws {
        do throws(MQTTError) {
            for try await alert in alerts {
                link.tally.add { $0.received += 1 }
                post.showAlert(alert.text ?? "\(alert.payload.count) bytes that are no text")
            }
        } catch {
            // The watcher reports a client that has stopped connecting, for whatever reason.
            guard error.code == .refused else { return }
            throw DeviceFailure(subscribing: error)
        }
    }

    private func showResubscriptions(in events: Updates<MQTTEvent>) async {
        for await event in events {
            switch event {
            case .resubscribed(let filter, let code):
                post.report("subscribed again to \(filter) with QoS \(code.rawValue)", .faint)
            case .sessionLost(let republished, let duplicates):
                post.say(
                    "the broker lost the session; \(republished) sent again, of which \(duplicates) may come twice")
            default: break
            }
        }
    }
}
