import Synchronization
import TestSupport
import Transport

/// The streams that links run over.
enum StreamKind: CaseIterable, Sendable {
    case tcp, unix, memory
    #if canImport(Network)
        case network
    #endif

    /// Those that report which bytes the peer's system has acknowledged: Network.framework does not.
    static var reportingAcknowledgements: [StreamKind] {
        #if canImport(Network)
            allCases.filter { $0 != .network }
        #else
            allCases
        #endif
    }
}

/// One loop and pairs of connected streams on it; every test runs with both selectors.
final class Setting: Sendable {
    let loop: EventLoop
    let kind: StreamKind
    /// Whose loop it is, if no time passes.
    private let clock: ManualClock?
    private let directory: ScratchDirectory?
    private let counter = Atomic(0)

    init(_ selector: SelectorKind, _ kind: StreamKind = .tcp, isTimeless: Bool = false) throws {
        clock = isTimeless ? try ManualClock(selector: selector) : nil
        loop = if let clock { clock.loop } else { try EventLoop.start(selector: selector) }
        self.kind = kind
        directory = kind == .unix ? try ScratchDirectory("transport") : nil
    }

    deinit {
        if clock == nil { loop.stop() }
    }

    /// Where to listen: a free port, or a path of its own.
    func endpoint() -> Endpoint {
        guard let directory else { return .host("127.0.0.1", port: 0) }
        return .unix(path: directory.file("s\(counter.add(1, ordering: .relaxed).newValue)"))
    }

    /// Where a client finds `listener`.
    func endpoint(of listener: Listener, on endpoint: Endpoint) -> Endpoint {
        if case .unix = endpoint { endpoint } else { .host("127.0.0.1", port: listener.port) }
    }

    func streams() async throws -> (client: any ByteStream, server: any ByteStream) {
        if kind == .memory {
            let pair = MemoryPair.make()
            return (pair.client, pair.server)
        }
        let accepted = Mutex<SocketStream?>(nil)
        let endpoint = endpoint()
        let listener = try await Listener.listen(on: endpoint, loop: loop) { stream in
            accepted.withLock { $0 = stream }
        }
        let client = try await connect(to: self.endpoint(of: listener, on: endpoint))
        guard await eventually({ accepted.withLock { $0 != nil } }), let server = accepted.withLock({ $0 }) else {
            throw TimeoutError("nothing was accepted")
        }
        await listener.close()
        return (client, server)
    }

    private func connect(to endpoint: Endpoint) async throws -> any ByteStream {
        #if canImport(Network)
            if kind == .network {
                return try await Connector.connectByNetwork(to: endpoint, timeout: 60_000_000_000, loop: loop)
            }
        #endif
        return try await Connector.connect(to: endpoint, timeout: 60_000_000_000, loop: loop)
    }

    func link(_ probe: Probe, limit: Int = 1 << 20, _ change: (inout LineMachine) -> Void = { _ in }) -> LineLink {
        let link = Link(machine: LineMachine(probe), loop: loop, maximumOutboxBytes: limit)
        link.perform { change(&$0) }
        return link
    }

    /// Two links over a pair of streams, both open.
    func links(
        limit: Int = 1 << 20, server change: (inout LineMachine) -> Void = { _ in }
    ) async throws -> Ends {
        let streams = try await streams()
        let ends = Ends(self, client: link(Probe(), limit: limit), server: link(Probe(), limit: limit, change))
        ends.client.attach(streams.client)
        ends.server.attach(streams.server)
        guard await ends.areOpen() else { throw TimeoutError("the links did not open") }
        return ends
    }
}

typealias LineLink = Link<LineMachine>

extension Link where Machine == LineMachine {
    var probe: Probe { perform { $0.probe } }

    func append(_ bytes: [UInt8], urgent: Bool = false) {
        perform(urgent: urgent) { $0.output += bytes }
    }

    /// Appends as soon as there is room, while there is a connection; returns false when there is none.
    func send(_ bytes: [UInt8], urgent: Bool = false, limit: Int = 1 << 20) async -> Bool {
        while true {
            let sent: Bool? = perform(urgent: urgent) { machine in
                guard machine.isOpen else { return false }
                guard machine.output.count < limit else { return nil }
                machine.output += bytes
                return true
            }
            if let sent { return sent }
            if Task.isCancelled { return false }
            _ = await outboxRoom()
        }
    }
}

/// Two links that talk to each other; their connection ends with this object.
final class Ends: Sendable {
    let setting: Setting
    let client: LineLink
    let server: LineLink

    init(_ setting: Setting, client: LineLink, server: LineLink) {
        self.setting = setting
        self.client = client
        self.server = server
    }

    deinit {
        client.dropConnection()
        server.dropConnection()
    }

    /// Runs the handshakes at both ends of a connection, then attaches them.
    func attach(
        _ streams: (client: any ByteStream, server: any ByteStream), client clientLayers: LayerStack?,
        server serverLayers: LayerStack?
    ) async throws {
        async let opened: Void = open(serverLayers, over: streams.server)
        try await open(clientLayers, over: streams.client)
        try await opened
        server.attach(streams.server, layers: serverLayers)
        client.attach(streams.client, layers: clientLayers)
    }

    private func open(_ layers: LayerStack?, over stream: any ByteStream) async throws(TransportError) {
        if let layers { try await LayerHandshake.run(layers, over: stream, loop: setting.loop) }
    }

    func areOpen() async -> Bool {
        await eventually { self.client.probe.openings > 0 && self.server.probe.openings > 0 }
    }
}
