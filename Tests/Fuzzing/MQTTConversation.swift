import MQTTCore

/// An engine with an accepted connection, or with one that is being opened, and a peer that sends anything: the same
/// effects and the same answers for every splitting, and answers in proportion to what was sent.
enum MQTTConversation {
    private enum Entry: Equatable {
        case message(topic: String, flags: UInt8, packetID: UInt16, properties: [UInt8], payload: [UInt8])
        case refused
        case failed(MQTTConnectionFailure)
        case other(String)
    }

    private struct Completion: Equatable {
        var token: UInt64
        var outcome: MQTTPublishCompletion.Outcome
        var reason: MQTTReasonCode
    }

    private struct End: ~Copyable {
        var engine: MQTTEngine
        var effects = MQTTEffects()
        var log: [Entry] = []
        var completions: [Completion] = []
        var output: [UInt8] = []
        var tail: [UInt8] = []
        var shouldClose = false

        init(_ configuration: MQTTEngineConfiguration) {
            engine = MQTTEngine(configuration: configuration)
        }

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
                    note(effects.events[next].kind)
                    next += 1
                }
                log.append(
                    .message(
                        topic: effects.topic(of: message, in: bytes.span.bytes), flags: message.flags.rawValue,
                        packetID: message.packetID,
                        properties: Array(bytes[message.properties]), payload: Array(bytes[message.payload])))
            }
            for event in effects.events[next...] { note(event.kind) }
            completions += effects.completions.map {
                Completion(token: $0.token, outcome: $0.outcome, reason: $0.reason)
            }
            if engine.shouldClose { shouldClose = true }
            effects.removeAll()
            output += engine.output
            engine.output = []
        }

        private mutating func note(_ event: MQTTEngineEvent.Kind) {
            switch event {
            // What is shown of a refused packet depends on how much of it had arrived.
            case .packetRefused: log.append(.refused)
            case .connectionFailed(let failure): log.append(.failed(failure))
            default: log.append(.other("\(event)"))
            }
        }
    }

    static func check(_ input: FuzzInput, role: MQTTRole) {
        var input = input
        let version = input.choice(MQTTVersion.allCases)
        let variant = input.byte()
        let pattern = input.byte()
        var whole = end(role, version, variant)
        var split = end(role, version, variant)
        whole.receive(Array(input.bytes))
        for piece in input.pieces(pattern) { split.receive(piece) }
        finish(&whole)
        finish(&split)
        require(whole.output == split.output, "\(whole.output) became \(split.output) in pieces of \(pattern)")
        require(whole.shouldClose == split.shouldClose, "the end depends on the splitting")
        require(whole.log == split.log, "\(whole.log) became \(split.log) in pieces of \(pattern)")
        require(whole.completions == split.completions, "\(whole.completions) became \(split.completions)")
        require(whole.output.count <= 16 * input.bytes.count + 4_096, "\(whole.output.count) bytes of answers")
    }

    /// - Parameter variant: Bits for what was exchanged before; with bit 0 nothing was.
    private static func end(_ role: MQTTRole, _ version: MQTTVersion, _ variant: UInt8) -> End {
        var configuration = MQTTEngineConfiguration(role: role, version: version, clientID: "fuzz")
        configuration.cleanStart = variant & 2 == 0
        configuration.sessionExpiry = 60
        configuration.topicAliasMaximum = 4
        configuration.receiveMaximum = 4
        configuration.maximumPacketSize = 1 << 15
        configuration.maximumControlPacketSize = 1 << 12
        configuration.dropsInvalidMessages = variant & 4 != 0
        var end = End(configuration)
        do {
            try end.engine.connectionOpened(at: 0)
            end.collect()
            guard variant & 1 == 0 else { return end }
            switch role {
            case .client:
                end.receive(version.hasProperties ? [0x20, 3, 0, 0, 0] : [0x20, 2, 0, 0])
                if variant & 8 != 0 { try prepareClient(&end) }
            case .server:
                var connect: [UInt8] = []
                try MQTTPacket.connect(.init(version: version, clientID: "fuzz")).encode(
                    into: &connect, version: version)
                end.receive(connect)
                try end.engine.acceptConnection(sessionPresent: false, at: 1, into: &end.effects)
                if variant & 8 != 0 {
                    for token in 1...3 as ClosedRange<UInt64> {
                        _ = try end.engine.publish(topic: "a", payload: [1], qos: .exactlyOnce, token: token, at: 1)
                    }
                }
            }
        } catch {
            fatalError("the connection could not be prepared: \(error)")
        }
        end.collect()
        end.output = []
        end.log = []
        end.completions = []
        return end
    }

    /// Requests and messages that wait for their answers.
    private static func prepareClient(_ end: inout End) throws {
        try end.engine.want(MQTTSubscriptionRequest(filter: "a/#", qos: .exactlyOnce))
        try end.engine.unwant("b")
        end.engine.reconcile(at: 1, into: &end.effects)
        for (index, qos) in [QoS.atLeastOnce, .atLeastOnce, .exactlyOnce, .exactlyOnce].enumerated() {
            _ = try end.engine.publish(topic: "a", payload: [1], qos: qos, token: UInt64(3 + index), at: 1)
        }
    }

    /// The application acknowledges everything, time passes, and the connection ends.
    private static func finish(_ end: inout End) {
        end.engine.acknowledgeAll(through: .max, at: 3)
        end.engine.handleTimeout(at: 4, into: &end.effects)
        end.collect()
        end.engine.connectionClosed(at: 5, into: &end.effects)
        end.collect()
    }
}
