import STOMPCore

/// An engine with an accepted connection, or with one that is being opened, and a peer that sends anything: the same
/// effects and the same answers for every splitting, each wait ends once, each connection ends once.
enum STOMPConversation {
    private enum Entry: Equatable {
        case message(subscription: UInt64, flags: UInt8, headers: [UInt8], destination: [UInt8], body: [UInt8])
        /// Which of several mistakes is noticed first depends on how much has arrived.
        case violated
        case failed(STOMPConnectionFailure.Reason)
        case disconnected
        case other(String)

        init(_ event: STOMPEngineEvent.Kind) {
            switch event {
            case .connectionFailed(let failure):
                if case .violation = failure.reason { self = .violated } else { self = .failed(failure.reason) }
            case .disconnected: self = .disconnected
            default: self = .other("\(event)")
            }
        }

        var isEnd: Bool {
            switch self {
            case .violated, .failed, .disconnected: true
            case .message, .other: false
            }
        }
    }

    private struct End: ~Copyable {
        var engine: STOMPEngine
        var effects = STOMPEffects()
        var log: [Entry] = []
        var completions: [UInt64] = []
        var output: [UInt8] = []
        var tail: [UInt8] = []

        mutating func receive(_ bytes: [UInt8]) {
            tail += bytes
            let held = tail
            let consumed = engine.receive(held.span.bytes, at: 2, into: &effects)
            require((0...held.count).contains(consumed), "\(consumed) of \(held.count) bytes were consumed")
            collect(held)
            tail.removeFirst(consumed)
        }

        /// Writes down what happened in the order in which it happened.
        mutating func collect(_ bytes: [UInt8] = []) {
            var next = 0
            for (index, message) in effects.messages.enumerated() {
                while next < effects.events.count, effects.events[next].messagesBefore <= index {
                    log.append(Entry(effects.events[next].kind))
                    next += 1
                }
                log.append(
                    .message(
                        subscription: message.subscription, flags: message.flags.rawValue,
                        headers: Array(bytes[message.headers]), destination: Array(bytes[message.destination]),
                        body: Array(bytes[message.body])))
            }
            for event in effects.events[next...] { log.append(Entry(event.kind)) }
            completions += effects.completions.map(\.token)
            effects.removeAll()
            output += engine.output
            engine.output = []
        }

        var ends: Int { log.count { $0.isEnd } }
    }

    static func check(_ input: FuzzInput, role: STOMPRole) {
        var input = input
        let version = input.choice(STOMPVersion.allCases)
        let variant = input.byte()
        let pattern = input.byte()
        var whole = end(role, version, variant)
        var split = end(role, version, variant)
        whole.receive(Array(input.bytes))
        for piece in input.pieces(pattern) { split.receive(piece) }
        finish(&whole)
        finish(&split)
        require(whole.log == split.log, "\(whole.log) became \(split.log) in pieces of \(pattern)")
        // ERROR quotes the mistake.
        if !whole.log.contains(.violated) {
            require(whole.output == split.output, "\(whole.output) became \(split.output) in pieces of \(pattern)")
        }
        require(whole.completions == split.completions, "receipts depend on the splitting")
        require(whole.ends == 1, "the connection ended \(whole.ends) times: \(whole.log)")
        if role == .client && variant & 1 == 0 {
            require(whole.completions.sorted() == [5, 6], "receipts ended as \(whole.completions)")
        }
        require(whole.output.count <= 16 * input.bytes.count + 4_096, "\(whole.output.count) bytes of answers")
    }

    /// - Parameter variant: With bit 0 nothing was exchanged before.
    private static func end(_ role: STOMPRole, _ version: STOMPVersion, _ variant: UInt8) -> End {
        var configuration = STOMPEngineConfiguration(role: role)
        configuration.limits = STOMPLimits(
            maximumLineBytes: 512, maximumHeaders: 16, maximumHeaderBytes: 1_024, maximumBodyBytes: 2_048)
        do {
            switch role {
            case .client:
                configuration.connect.host = "h"
                var end = End(engine: STOMPEngine(configuration: configuration))
                try end.engine.connectionOpened(at: 0)
                guard variant & 1 == 0 else { return end }
                end.receive(Array("CONNECTED\nversion:\(version)\n\n\0".utf8))
                try end.engine.subscribe(id: "a", destination: "/q", acknowledgement: .client, token: 1, at: 1)
                try end.engine.send(destination: "/q", body: [1], receiptToken: 5, at: 1)
                try end.engine.send(destination: "/q", body: [2], receiptToken: 6, at: 1)
                return begun(end)
            case .server:
                var end = End(engine: STOMPEngine(configuration: configuration))
                try end.engine.connectionOpened(at: 0)
                guard variant & 1 == 0 else { return end }
                end.receive(Array("CONNECT\naccept-version:\(version)\nhost:h\n\n\0".utf8))
                try end.engine.accept(at: 1)
                return begun(end)
            }
        } catch {
            fatalError("the connection could not be prepared: \(error)")
        }
    }

    private static func begun(_ end: consuming End) -> End {
        end.collect()
        end.output = []
        end.log = []
        return end
    }

    /// Time passes, and the connection ends.
    private static func finish(_ end: inout End) {
        end.engine.handleTimeout(at: 3, into: &end.effects)
        end.collect()
        end.engine.connectionClosed(at: 4, into: &end.effects)
        end.collect()
    }
}
