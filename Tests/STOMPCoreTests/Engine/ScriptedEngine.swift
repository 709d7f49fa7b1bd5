import MessagingWire
import STOMPCore

/// An engine under test in virtual time, with what it did as readable lines. Times are milliseconds here.
final class ScriptedEngine {
    var engine: STOMPEngine
    var effects = STOMPEffects()
    /// What happened so far, in order; taken by `takeLog`.
    private var log: [String] = []
    private var tail: [UInt8] = []
    /// Whether the log has the engine's wish to close already.
    private var isClosing = false
    var now: Int64 = 0

    init(client change: (inout STOMPConnectOptions) -> Void = { _ in }) throws {
        var options = STOMPConnectOptions()
        options.host = "h"
        change(&options)
        engine = STOMPEngine(configuration: STOMPEngineConfiguration(connect: options))
        try engine.configuration.checkConnect()
    }

    init(client options: STOMPConnectOptions, configuration: STOMPEngineConfiguration) throws {
        var configuration = configuration
        configuration.connect = options
        try configuration.checkConnect()
        engine = STOMPEngine(configuration: configuration)
    }

    init(server configuration: STOMPEngineConfiguration) {
        var configuration = configuration
        configuration.role = .server
        engine = STOMPEngine(configuration: configuration)
    }

    /// A client that is connected, with nothing in its output and its log.
    static func connected(
        _ version: STOMPVersion = .v12, server: String = "test", heartBeat: String? = nil,
        configuration: STOMPEngineConfiguration = STOMPEngineConfiguration(),
        client change: (inout STOMPConnectOptions) -> Void = { _ in }
    ) throws -> ScriptedEngine {
        var options = STOMPConnectOptions()
        options.host = "h"
        change(&options)
        let client = try ScriptedEngine(client: options, configuration: configuration)
        client.connect(version, server: server, heartBeat: heartBeat)
        return client
    }

    func connect(_ version: STOMPVersion = .v12, server: String = "test", heartBeat: String? = nil) {
        open()
        let beat = heartBeat.map { "heart-beat:\($0)\n" } ?? ""
        receive("CONNECTED\nversion:\(version)\nserver:\(server)\n\(beat)\n\0\n")
        _ = takeOutput()
        _ = takeLog()
    }

    /// A server whose client is connected, with nothing in its output and its log.
    static func serving(_ version: STOMPVersion = .v12, heartBeat: String? = nil) throws -> ScriptedEngine {
        let server = ScriptedEngine(server: STOMPEngineConfiguration())
        server.open()
        let beat = heartBeat.map { "heart-beat:\($0)\n" } ?? ""
        server.receive("CONNECT\naccept-version:\(version)\nhost:h\n\(beat)\n\0")
        try server.engine.accept(heartBeat: .init(outgoing: 1_000, incoming: 1_000), at: server.nanoseconds)
        _ = server.takeOutput()
        _ = server.takeLog()
        return server
    }

    var nanoseconds: Int64 { now * 1_000_000 }

    /// The next deadline in milliseconds, nil for none.
    var deadline: Int64? { engine.nextDeadline == .max ? nil : engine.nextDeadline / 1_000_000 }

    func open() {
        tail = []
        do { try engine.connectionOpened(at: nanoseconds) } catch { preconditionFailure(error.message) }
    }

    func close() {
        engine.connectionClosed(at: nanoseconds, into: &effects)
        drain([])
    }

    func receive(_ text: String) { receive(Array(text.utf8)) }

    func receive(_ received: [UInt8]) {
        tail += received
        let bytes = tail
        let consumed = engine.receive(bytes.span.bytes, at: nanoseconds, into: &effects)
        precondition((0...bytes.count).contains(consumed))
        drain(bytes)
        tail.removeFirst(consumed)
    }

    /// Lets time pass, with a timeout at each deadline.
    func advance(to time: Int64) {
        while engine.nextDeadline <= time * 1_000_000 {
            now = max(now, engine.nextDeadline / 1_000_000)
            engine.handleTimeout(at: engine.nextDeadline, into: &effects)
            drain([])
            if engine.shouldClose { break }
        }
        now = time
    }

    func timeout() {
        engine.handleTimeout(at: nanoseconds, into: &effects)
        drain([])
    }

    func takeOutput() -> String {
        defer { engine.output = [] }
        return String(decoding: engine.output, as: UTF8.self)
    }

    func takeLog() -> [String] {
        defer { log = [] }
        return log
    }

    /// The code that an operation throws; nil when it does not. What is in the output must not change by a misuse.
    func misuse(_ operation: (ScriptedEngine) throws(STOMPUsageError) -> Void) -> STOMPUsageError.Code? {
        let before = engine.output
        let receipts = engine.pendingReceipts
        do throws(STOMPUsageError) {
            try operation(self)
            return nil
        } catch {
            precondition(engine.output == before && engine.pendingReceipts == receipts && !error.message.isEmpty)
            return error.code
        }
    }

    private func drain(_ bytes: [UInt8]) {
        var next = 0
        for (index, message) in effects.messages.enumerated() {
            while next < effects.events.count, effects.events[next].messagesBefore <= index {
                log.append(describe(effects.events[next].kind))
                next += 1
            }
            let token = message.subscription == STOMPMessageRecord.unmatched ? "-" : "\(message.subscription)"
            let body = String(decoding: bytes[message.body], as: UTF8.self)
            log.append("message \(token) \(String(decoding: bytes[message.destination], as: UTF8.self)) \(body)")
        }
        for event in effects.events[next...] { log.append(describe(event.kind)) }
        for completion in effects.completions { log.append("receipt \(completion.token) \(completion.outcome)") }
        if engine.shouldClose, !isClosing { log.append("close") }
        isClosing = engine.shouldClose
        effects.removeAll()
    }

    private func describe(_ event: STOMPEngineEvent.Kind) -> String {
        switch event {
        case .connected(let connected): "connected \(connected.version)"
        case .errorReceived(let error): "error \(error.message)"
        case .disconnected: "disconnected"
        case .acknowledgementTimedOut(let receipt, let silence): "unacknowledged \(receipt) \(silence / 1_000_000)"
        case .connectionFailed(let failure): "failed \(failure.reason)"
        case .unknownFrameReceived(let frame): "unknown \(frame.commandName)"
        case .connectReceived(let request): "CONNECT \(request.version)"
        case .subscribeReceived(let request): "SUBSCRIBE \(request.id ?? "-") \(request.destination) \(request.ackMode)"
        case .unsubscribeReceived(let request): "UNSUBSCRIBE \(request.id ?? request.destination ?? "-")"
        case .ackReceived(let request): "ACK \(request.id ?? request.messageID ?? "-")"
        case .nackReceived(let request): "NACK \(request.id ?? request.messageID ?? "-")"
        case .beginReceived(let request): "BEGIN \(request.transaction)"
        case .commitReceived(let request): "COMMIT \(request.transaction)"
        case .abortReceived(let request): "ABORT \(request.transaction)"
        case .disconnectReceived(let receipt): "DISCONNECT \(receipt ?? "-")"
        }
    }
}
