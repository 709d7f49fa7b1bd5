import MQTT
import MQTTCore
import MessagingShell
import Synchronization
import TestSupport
import Transport

/// A server whose every answer is a test's: an engine in the server's role, and a closure that is shown each event.
///
/// The closure runs on the loop's thread. PINGREQ, and the acknowledgement of what it is sent, are the engine's.
final class ScriptedServer: Sendable {
    /// An event of one connection, and what may be done about it.
    struct Step {
        /// Counts connections, from 1.
        let connection: Int
        let event: MQTTEngineEvent.Kind
        let link: Link<ScriptedMachine>

        func perform(_ body: (inout ScriptedMachine) -> Void) { link.perform { body(&$0) } }

        func accept(sessionPresent: Bool = false, properties: MQTTProperties = []) {
            perform { machine in
                var effects = MQTTEffects()
                try? machine.engine.acceptConnection(
                    sessionPresent: sessionPresent, properties: properties, at: link.loop.now, into: &effects)
            }
        }

        /// Refuses the connection, and names another server.
        func refuse(_ reason: MQTTReasonCode = .useAnotherServer, referringTo reference: String) {
            refuse(reason, properties: Self.properties(reference))
        }

        /// Ends the connection, and names another server.
        func disconnect(referringTo reference: String) {
            disconnect(.useAnotherServer, properties: Self.properties(reference))
        }

        private static func properties(_ reference: String) -> MQTTProperties {
            var properties = MQTTProperties()
            properties.serverReference = reference
            return properties
        }

        func refuse(_ reason: MQTTReasonCode, properties: MQTTProperties = []) {
            perform { machine in
                try? machine.engine.refuseConnection(reason, properties: properties, at: link.loop.now)
                machine.wantsClose = true
            }
        }

        func disconnect(_ reason: MQTTReasonCode, properties: MQTTProperties = []) {
            perform { machine in
                try? machine.engine.disconnect(reason: reason, properties: properties, at: link.loop.now)
                machine.wantsClose = true
            }
        }

        func authenticate(_ reason: MQTTReasonCode = .continueAuthentication, _ data: [UInt8]) {
            perform { try? $0.engine.authenticate(reason: reason, data: data, at: link.loop.now) }
        }
    }

    // A struct, because a mutex wraps a function that is the whole of its value once more at each use.
    private struct State {
        var links: [Link<ScriptedMachine>] = []
        var versions: [MQTTVersion] = []
        var remarks: Remarks?
    }

    private let script: @Sendable (Step) -> Void
    private let state = Mutex(State())

    /// Makes the packets that acknowledge a message; nil leaves it to the engine, and the packets come before what the
    /// engine says.
    typealias Remarks = @Sendable (MQTTMessageRecord) -> [MQTTPacket]

    private let clock: ManualClock?
    private let maximumPacketSize: UInt32

    /// - Parameter clock: also that of its clients. Default: nil, the system's clock.
    init(
        maximumPacketSize: UInt32 = 16 << 20, clock: ManualClock? = nil, _ script: @escaping @Sendable (Step) -> Void
    ) {
        self.clock = clock
        self.maximumPacketSize = maximumPacketSize
        self.script = script
    }

    /// The connections so far.
    var connectionCount: Int { state.withLock { $0.links.count } }
    /// The version of each CONNECT so far.
    var versions: [MQTTVersion] { state.withLock { $0.versions } }
    /// The connection opened last.
    var link: Link<ScriptedMachine>? { state.withLock { $0.links.last } }

    /// What connections from now on say to messages.
    func remark(_ remarks: @escaping Remarks) { state.withLock { $0.remarks = remarks } }

    func client(
        _ urls: [String] = ["mqtt://scripted"], _ change: (inout MQTTConfiguration) -> Void = { _ in }
    ) -> MQTTClient {
        var configuration = MQTTConfiguration(clientID: "scripted")
        configuration.reconnect.initialDelay = .milliseconds(10)
        configuration.reconnect.maximumDelay = .milliseconds(50)
        if clock == nil { configuration.allowSlowMachines() }
        change(&configuration)
        return MQTTClient(urls, configuration: configuration, loop: loop, override: override, clock: clock)
    }

    /// Listens on a port of 127.0.0.1 as well, for clients that come by TCP.
    func listen(on endpoint: Endpoint = .host("127.0.0.1", port: 0)) async throws -> Listener {
        try await Listener.listen(on: endpoint, loop: loop) { [weak self] stream in
            self?.serve(stream)
        }
    }

    private var loop: EventLoop { clock?.loop ?? .shared }

    private var override: StreamOpener.Override {
        { [self] () async throws(TransportError) in
            let (near, far) = MemoryPair.make()
            serve(far)
            return OpenedStream(stream: near)
        }
    }

    private func serve(_ stream: any ByteStream) {
        var configuration = MQTTEngineConfiguration(role: .server)
        configuration.maximumPacketSize = maximumPacketSize
        var machine = ScriptedMachine(engine: MQTTEngine(configuration: configuration))
        machine.remarks = state.withLock { $0.remarks }
        let link = Link(machine: machine, loop: loop, maximumOutboxBytes: 1 << 20)
        let number = state.withLock { state in
            state.links.append(link)
            return state.links.count
        }
        let script = script
        link.perform { machine in
            machine.handle = { [weak self] event in
                if case .connectReceived(let connect) = event {
                    self?.state.withLock { $0.versions.append(connect.version) }
                }
                script(Step(connection: number, event: event, link: link))
            }
        }
        link.attach(stream)
    }
}

struct ScriptedMachine: LinkMachine, ~Copyable {
    typealias AfterLock = ScriptedAfterLock
    var engine: MQTTEngine
    var handle: (@Sendable (MQTTEngineEvent.Kind) -> Void)?
    var remarks: ScriptedServer.Remarks?
    var wantsClose = false
    var output: [UInt8] {
        get { engine.output }
        _modify { yield &engine.output }
    }
    var nextDeadline: Int64 { mutating get { engine.nextDeadline } }
    var wantsReadingPaused: Bool { false }

    init(engine: consuming MQTTEngine) { self.engine = engine }

    mutating func connectionOpened(at now: Int64, into afterLock: ScriptedAfterLock) {
        try? engine.connectionOpened(at: now)
    }

    mutating func connectionClosed(_ error: TransportError?, at now: Int64, into afterLock: ScriptedAfterLock) {
        engine.connectionClosed(at: now, into: &afterLock.effects)
        // The closure holds the link: the circle ends with the connection.
        handle = nil
    }

    mutating func receive(_ bytes: RawSpan, at now: Int64, into afterLock: ScriptedAfterLock) -> Int {
        afterLock.handle = handle
        let consumed = engine.receive(bytes, at: now, into: &afterLock.effects)
        for message in afterLock.effects.messages where message.delivery != 0 {
            for packet in remarks?(message) ?? [] { try? packet.encode(into: &engine.output, version: engine.version) }
        }
        if let last = afterLock.effects.messages.last(where: { $0.delivery != 0 }) {
            engine.acknowledgeAll(through: last.delivery, at: now)
        }
        if engine.shouldClose { wantsClose = true }
        return consumed
    }

    mutating func handleTimeout(at now: Int64, progress: OutputProgress, into afterLock: ScriptedAfterLock) {
        afterLock.handle = handle
        engine.handleTimeout(at: now, into: &afterLock.effects)
    }
}

final class ScriptedAfterLock: LinkAfterLock {
    var effects = MQTTEffects()
    var handle: (@Sendable (MQTTEngineEvent.Kind) -> Void)?

    init() {}

    func perform(_ bytes: RawSpan) {
        let events = effects.events
        let handle = handle
        effects.removeAll()
        self.handle = nil
        for event in events { handle?(event.kind) }
    }
}
