import Foundation

/// What the rows share: their size, and the brokers in C, which start when the first row needs them.
final class Setting {
    let rounds: Int
    let scale: Double
    private var brokers: [Child] = []

    /// The other clients that are measured too; nil if none are.
    let peers: PeerRows?

    /// - Parameter peers: those that are named; nil if no other clients are measured.
    init(rounds: Int, scale: Double, peers: [PeerRows.Peer]?) {
        self.peers = peers.map { PeerRows(rounds: rounds, scale: scale, peers: PeerRows.find($0)) }
        self.rounds = rounds
        self.scale = scale
    }

    /// One thread, and no task: these run where Swift's concurrency does not, as below Valgrind, which crashes when
    /// Dispatch starts its threads.
    static let codecRows: [(name: String, run: @Sendable (CodecRows) throws -> [Row])] = [
        ("codec-mqtt-encode", { try $0.forBothVersions($0.encodePublish) }),
        ("codec-mqtt-decode", { try $0.forBothVersions($0.decodePublish) }),
        ("codec-mqtt-packets", { try $0.forBothVersions($0.decodeWhole) }),
        ("codec-mqtt-engine", { [try $0.engineReceives()] }),
        ("codec-mqtt-qos1", { [try $0.engineReceivesAtLeastOnce()] }),
        ("codec-mqtt-qos2", { [try $0.enginePublishesExactlyOnce()] }),
        ("codec-mqtt-mixed", { [try $0.enginePublishesMixedTraffic()] }),
        ("codec-mqtt-topics", { [try $0.engineReceivesTopics()] }),
        ("codec-mqtt-properties", { [try $0.engineReceivesProperties()] }),
        ("codec-stomp-send", { [try $0.encodeSend()] }),
        ("codec-stomp-receive", { [try $0.decodeMessage()] }),
        ("codec-stomp-destinations", { [try $0.encodeSendToMany()] }),
        ("codec-stomp-headers", { [try $0.readHeaders()] }),
        ("codec-log", { [try $0.keepFrames()] }),
    ]

    /// In the order of the table, after those of the codecs.
    static let rows: [(name: String, run: @Sendable (Setting) async throws -> [Row])] = [
        ("mqtt-publish-single", { [try await $0.mqtt.publishSingly()] }),
        ("mqtt-publish-array", { [try await $0.mqtt.publishArrays()] }),
        ("mqtt-publish-large", { [try await $0.mqtt.publishLarge()] }),
        ("mqtt-receive-slices", { [try await $0.mqtt.receive(.slices)] }),
        ("mqtt-receive-owned", { [try await $0.mqtt.receive(.owned)] }),
        ("mqtt-receive-batches", { [try await $0.mqtt.receive(.batches)] }),
        ("mqtt-window-array", { [try await $0.mqtt.windowByArray()] }),
        ("mqtt-window-tasks", { [try await $0.mqtt.windowByTasks(.pool)] }),
        ("mqtt-window-executor", { [try await $0.mqtt.windowByTasks(.loop)] }),
        ("mqtt-roundtrip-idle", { try await $0.mqtt.roundTrip(.pool, .idle) }),
        ("mqtt-roundtrip-idle-executor", { try await $0.mqtt.roundTrip(.loop, .idle) }),
        ("mqtt-roundtrip-awake", { try await $0.mqtt.roundTrip(.pool, .awake) }),
        ("mqtt-roundtrip-awake-executor", { try await $0.mqtt.roundTrip(.loop, .awake) }),
        ("traffic-mixed", { try await $0.traffic.mixed() }),
        ("traffic-receive", { try await $0.traffic.receive() }),
        ("traffic-receive-qos1", { [try await $0.traffic.receiveAtLeastOnce()] }),
        ("traffic-single", { [try await $0.traffic.receiveSingly()] }),
        ("traffic-filters", { [try await $0.traffic.filters()] }),
        ("traffic-sequences", { [try await $0.traffic.sequences()] }),
        ("traffic-policy", { [try await $0.traffic.defaultPolicy()] }),
        ("traffic-properties", { try await $0.traffic.properties() }),
        ("traffic-qos2", { [try await $0.traffic.exactlyOnce()] }),
        ("traffic-watched", { try await $0.traffic.watched() }),
        ("connections", { try await $0.traffic.connections(.pool) }),
        ("connections-executor", { try await $0.traffic.connections(.loop) }),
        ("threads", { try await ThreadRows(port: $0.mqtt.port, rounds: $0.rounds, scale: $0.scale).rows() }),
        ("main-actor", { try await $0.mainActor.rows() }),
        ("start", { try $0.starts.rows() }),
        ("latency-mosquitto-idle", { try await $0.latency.mosquitto(.idle) }),
        ("latency-mosquitto-awake", { try await $0.latency.mosquitto(.awake) }),
        ("latency-rabbitmq-idle", { try await $0.latency.rabbitMQ(.idle) }),
        ("latency-rabbitmq-awake", { try await $0.latency.rabbitMQ(.awake) }),
        ("resumption", { await ResumptionRow(rounds: $0.rounds, scale: $0.scale).rows() }),
        ("stomp-connections", { [try await $0.stomp.connections()] }),
        ("stomp-send", { [try await $0.stomp.send()] }),
        ("stomp-receive", { [try await $0.stomp.receive()] }),
        ("stomp-headers", { [try await $0.stomp.receiveHeaders()] }),
        ("stomp-destinations", { [try await $0.stomp.sendToMany()] }),
        ("stomp-watched", { [try await $0.stomp.watched()] }),
        ("stomp-receipts", { [try await $0.stomp.receipts(.pool)] }),
        ("stomp-receipts-executor", { [try await $0.stomp.receipts(.loop)] }),
        ("stomp-receipts-array", { [try await $0.stomp.receiptsByArray()] }),
        ("idle", { try await IdleRows(port: try $0.serve("idle_broker"), scale: $0.scale).rows() }),
        ("streams", { try await StreamRows(rounds: $0.rounds, scale: $0.scale).all() }),
        ("store-memory", { [try await $0.stores.row(.memory)] }),
        ("store-file", { [try await $0.stores.row(.file)] }),
        ("store-synced", { [try await $0.stores.row(.synced)] }),
        ("peers-connections", { $0.peers?.connections($0.mqtt, $0.traffic.limit) ?? [] }),
        ("peers-mqtt", { try $0.peers?.mqtt($0.mqtt) ?? [] }),
        ("peers-stomp", { try $0.peers?.stomp($0.stomp) ?? [] }),
    ]

    var mainActor: MainActorRows {
        let (mqtt, stomp) = (mqtt, stomp)
        return MainActorRows(
            rounds: rounds, count: mqtt.scaled(10_000), mqtt: { try await mqtt.client() },
            stomp: { try await stomp.client() })
    }
    var latency: LatencyRows { LatencyRows(rounds: rounds, scale: scale, peers: peers) }
    var starts: StartRows { StartRows(port: mqtt.port, limit: mqtt.limit, rounds: rounds, scale: scale) }
    var stores: StoreRows { StoreRows(mqtt: mqtt, rounds: rounds) }

    private(set) lazy var mqtt = Result {
        MQTTRows(
            port: try serve("mqtt_broker"), limit: try Shell.compile("mqtt_limit"), rounds: rounds, scale: scale)
    }.unwrapped

    private(set) lazy var traffic = Result {
        TrafficRows(
            port: mqtt.port, limit: try Shell.compile("traffic_limit"), rounds: rounds, scale: scale)
    }.unwrapped

    private(set) lazy var stomp = Result {
        STOMPRows(
            port: try serve("stomp_broker"), limit: try Shell.compile("stomp_limit"), rounds: rounds, scale: scale)
    }.unwrapped

    /// Starts a broker of ours and returns its port.
    func serve(_ name: String) throws -> String {
        let (broker, port) = try Shell.serve(try Shell.compile(name))
        brokers.append(broker)
        return port
    }

    func end() {
        for broker in brokers { broker.end() }
        try? FileManager.default.removeItem(at: Shell.directory)
    }
}

extension Result {
    /// A benchmark that cannot start its broker has nothing to say.
    fileprivate var unwrapped: Success {
        switch self {
        case .success(let value): value
        case .failure(let error): fatalError("\(error)")
        }
    }
}
