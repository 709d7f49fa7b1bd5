/// Three RabbitMQ nodes on this machine that are one broker, with ports of their own.
///
/// They share a cookie and a port mapper, join one after the other (a lock lets only one in at a time), and take 20 to
/// 40 seconds to start.
public final class RabbitMQCluster: Sendable {
    public let nodes: [RabbitMQ]
    private let portMapper: ChildProcess

    /// Starts three nodes on free ports; they end with the last reference.
    ///
    /// - Parameter extraLines: for the `rabbitmq.conf` of each node.
    public static func start(extraLines: [String] = []) async throws -> RabbitMQCluster {
        try Broker.rabbitMQ.requireInstalled()
        let mapperPort = FreePort.next()
        let portMapper = try await RabbitMQ.startPortMapper(mapperPort)
        let first = try await node("one", mapperPort, joins: nil, extraLines)
        let second = try await node("two", mapperPort, joins: "one", extraLines)
        let third = try await node("three", mapperPort, joins: "one", extraLines)
        let cluster = RabbitMQCluster([first, second, third], portMapper)
        try await Turn.lend {
            // One permit for all: none of the three may wait for a permit while another waits for it.
            try await Permits.starts.hold {
                try await first.server.startNow()
                async let joined: Void = second.server.startNow()
                _ = await eventually(every: .milliseconds(50)) { second.hasJoined }
                try await third.server.startNow()
                try await joined
            }
        }
        return cluster
    }

    private static func node(
        _ name: String, _ mapperPort: Int, joins first: String?, _ extraLines: [String]
    ) async throws -> RabbitMQ {
        var options = RabbitMQ.Options()
        options.extraLines = extraLines
        return try await RabbitMQ(options, RabbitMQ.Membership(name: name, mapperPort: mapperPort, joins: first))
    }

    private init(_ nodes: [RabbitMQ], _ portMapper: ChildProcess) {
        self.nodes = nodes
        self.portMapper = portMapper
    }

    /// Ends all nodes at once: what they hold is not wanted any more.
    public func stop() async {
        for node in nodes { await node.kill() }
        await portMapper.stop()
    }
}
