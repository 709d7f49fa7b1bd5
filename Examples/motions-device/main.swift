import Inspector
import MQTT
import MessagingDeviceSupport

// The device side of the Motions app: publishes how it is held to an MQTT broker, and shows the alerts that headquarters
// sends. All that it does with the library is in this file, in the order in which it happens. `MessagingDeviceSupport` has what has
// nothing to do with a protocol: options, recordings, the terminal, the headquarters page.

await Program.run(.motions, MotionsOptions.parse) { options, program in
    if options.losesSession {
        program.console.problem(
            "WARNING: --keep-session without --device-id: the next run has another identifier and gets nothing of this session. Give both the same --device-id."
        )
    }
    let motions = try ReplaySource.motions(options, program)
    try await Fleet.run(
        program, options.common, unit: "motions", isConfirmed: options.qos > 0, readsKeys: !motions.isLive
    ) { post in
        try await MotionsDevice(post, options, motions.source(for: post)).run()
    }
}

struct MotionsDevice: Sendable {
    private let id: String
    private let options: MotionsOptions
    private let client: MQTTClient
    /// Connects and reconnects the client, prints how that goes, and plays the motions while there is a connection.
    private let link: DeviceLink<MQTTClient, Attitude>
    /// Held until the connection has ended: releasing a subscription unsubscribes.
    private let kept = Watched<MQTTSubscription?>(nil)
    private var post: Fleet.Post { link.post }

    init(_ post: Fleet.Post, _ options: MotionsOptions, _ motions: ReplaySource<Attitude>) {
        id = post.id
        self.options = options
        client = MQTTClient(post.fleet.urls, configuration: MQTTConfiguration(options, deviceID: post.id))
        link = DeviceLink(client, motions, post)
    }

    func run() async throws {
        try await link.run(publish: publishForVisitor) {
            let alerts = try await subscribe()
            // Made before the first motion goes out: what follows it, a key perhaps, is not missed.
            let (keys, events) = (post.keys, client.events)
            do {
                try await link.running(
                    beside: [{ try await show(alerts) }, { await watch(events) }, { try await act(on: keys) }], replay)
            } catch {
                await leave(alerts)
                throw error
            }
            await leave(alerts)
        }
    }

    /// What a visitor of the inspector page types.
    private func publishForVisitor(_ topic: String, _ payload: [UInt8]) async throws {
        try await client.publish(payload, to: topic, qos: .atLeastOnce)
    }

    // MARK: Subscribe

    private func subscribe() async throws -> MQTTSubscription {
        let topic = "/mwm/\(id)/alert"
        do throws(MQTTError) {
            let alerts = try await client.subscribe(to: topic, qos: .atLeastOnce)
            await link.untilConnected()
            post.report("subscribed to \(topic)\(alerts.grantedQoS.map { " with \($0)" } ?? "")", .faint)
            return alerts
        } catch {
            throw DeviceFailure(subscribing: error)
        }
    }

    /// The client subscribes again by itself after each reconnect.
    private func watch(_ events: Updates<MQTTEvent>) async {
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

    // MARK: Replay

    private func replay() async throws {
        try await link.play(interval: options.interval, publish)
    }

    private func publish(_ attitude: Attitude) async throws -> Bool {
        let qos = QoS(rawValue: UInt8(options.qos)) ?? .atMostOnce
        try await link.send { () throws(MQTTError) in
            do throws(MQTTError) {
                try await client.publish(attitude.bytes, to: "/mwm/\(id)/motion", qos: qos, retain: true)
            } catch {
                // The next one comes in a moment: no reason to end.
                guard error.code == .sessionLost else { throw error }
                post.say("a motion may be lost: \(error.message)")
            }
        }
        // With QoS 1 and 2, `publish` has waited for the acknowledgement.
        post.fleet.meter.answered()
        return true
    }

    // MARK: Show

    private func show(_ alerts: MQTTSubscription) async throws {
        do throws(MQTTError) {
            for try await alert in alerts {
                post.fleet.meter.count { $0.received += 1 }
                post.showAlert(alert.text ?? "\(alert.payload.count) bytes that are no text")
            }
        } catch {
            // The link reports a client that has stopped connecting, for whatever reason.
            guard error.code == .refused else { return }
            throw DeviceFailure(subscribing: error)
        }
    }

    private func act(on keys: Updates<Key>) async throws {
        for await key in keys where key == .shake { try await link.shake(publish) }
    }

    // MARK: Stop

    /// The link disconnects afterwards.
    private func leave(_ alerts: MQTTSubscription) async {
        // A session that is kept keeps its subscription, or nothing would arrive on return.
        if options.keepsSession {
            kept.value = alerts
        } else {
            await link.leave { try? await alerts.unsubscribe() }
        }
    }
}

// MARK: - Configuration

extension MQTTClient: DeviceClient {}
extension MQTTPacketRecord: DeviceFrame {}

extension MQTTConfiguration {
    init(_ options: MotionsOptions, deviceID: String) {
        self.init(clientID: deviceID)
        keepAlive = .seconds(options.keepAlive)
        cleanStart = !options.keepsSession
        let payload = #"{"deviceID":\#(JSON.quoted(deviceID))}"#
        will = MQTTWill(Array(payload.utf8), to: "/mwm/lastWill", qos: .exactlyOnce)
        credentials = options.common.credentials
        reconnect = options.common.reconnectPolicy
        tls = options.common.tls
    }
}
