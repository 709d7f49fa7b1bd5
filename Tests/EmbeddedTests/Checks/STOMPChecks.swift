import STOMPCore

/// The vectors and a pair of engines; returns the number of checks and reports those that fail.
public enum STOMPChecks {
    public static func run(changed rounds: Int) -> (count: Int, failures: Int) {
        var checks = Results()
        for vector in Vector.all {
            for pieces in [[vector.bytes], vector.bytes.map { [$0] }] {
                let (frames, violation) = read(vector, pieces)
                checks.expect(frames == vector.frames && violation == vector.violation, vector.description)
            }
        }
        var mutations = Mutations(seed: 12)
        for round in 0..<rounds {
            for vector in Vector.all {
                let bytes = mutations.change(vector.bytes)
                checks.expect(survives(bytes, round & 1 == 0 ? .client : .server), "a change of \(vector.description)")
            }
        }
        do throws(STOMPUsageError) {
            for version in [STOMPVersion.v10, .v11, .v12] { try talk(version, &checks) }
        } catch {
            checks.expect(false, error.description)
        }
        return (checks.count, checks.failures)
    }

    private struct Results {
        var count = 0
        var failures = 0

        mutating func expect(_ holds: Bool, _ name: @autoclosure () -> String) {
            count += 1
            guard !holds else { return }
            failures += 1
            print("FAILED: \(name())")
        }
    }

    private static func read(_ vector: Vector, _ pieces: [[UInt8]]) -> ([STOMPFrame], STOMPProtocolError.Code?) {
        var decoder = STOMPDecoder(version: vector.version, limits: vector.limits)
        var frames: [STOMPFrame] = []
        do throws(STOMPProtocolError) {
            for piece in pieces {
                decoder.push(piece)
                while let frame = try decoder.next() { frames.append(frame) }
            }
        } catch {
            return (frames, error.code)
        }
        return (frames, nil)
    }

    private static func survives(_ bytes: [UInt8], _ role: STOMPRole) -> Bool {
        var engine = STOMPEngine(configuration: STOMPEngineConfiguration(role: role))
        var effects = STOMPEffects()
        do throws(STOMPUsageError) { try engine.connectionOpened(at: 1) } catch { return false }
        let consumed = engine.receive(bytes.span.bytes, at: 2, into: &effects)
        engine.handleTimeout(at: 3, into: &effects)
        engine.connectionClosed(at: 4, into: &effects)
        return (0...bytes.count).contains(consumed)
    }

    /// A client and a server back to back: a subscription, messages with receipts, and DISCONNECT.
    private static func talk(_ version: STOMPVersion, _ checks: inout Results) throws(STOMPUsageError) {
        var options = STOMPConnectOptions()
        options.versions = [version]
        let client = End(STOMPEngine(configuration: STOMPEngineConfiguration(connect: options)))
        let server = End(STOMPEngine(configuration: STOMPEngineConfiguration(role: .server)))
        for end in [server, client] { try end.engine.connectionOpened(at: 1) }
        try End.settle(client, server)
        checks.expect(client.engine.phase == .connected, "STOMP \(version.description): connected")
        try client.engine.subscribe(id: "1", destination: "/queue/a", token: 9, at: 2)
        for number in 0..<50 {
            try client.engine.send(
                destination: "/queue/a", body: [UInt8](repeating: UInt8(number), count: 200),
                receiptToken: UInt64(number), at: 3)
        }
        try End.settle(client, server)
        checks.expect(server.bodies.count == 50, "STOMP \(version.description): SEND")
        checks.expect(client.received == 50, "STOMP \(version.description): RECEIPT")
        checks.expect(client.bodies == server.bodies, "STOMP \(version.description): MESSAGE")
        try client.engine.disconnect(at: 4)
        try End.settle(client, server)
        checks.expect(client.isDisconnected, "STOMP \(version.description): DISCONNECT")
    }

    private final class End {
        var engine: STOMPEngine
        var effects = STOMPEffects()
        var inbox: [UInt8] = []
        var bodies: [[UInt8]] = []
        var received = 0
        var isDisconnected = false
        /// At the server.
        private var subscription: String?

        init(_ engine: consuming STOMPEngine) { self.engine = engine }

        static func settle(_ client: End, _ server: End) throws(STOMPUsageError) {
            while !client.engine.output.isEmpty || !server.engine.output.isEmpty {
                server.inbox += client.engine.output
                client.engine.output = []
                try server.read()
                client.inbox += server.engine.output
                server.engine.output = []
                try client.read()
            }
        }

        private func read() throws(STOMPUsageError) {
            let bytes = inbox
            inbox.removeFirst(engine.receive(bytes.span.bytes, at: 4, into: &effects))
            let done = effects
            effects.removeAll()
            for completion in done.completions where completion.outcome == .received { received += 1 }
            for event in done.events {
                switch event.kind {
                case .connectReceived: try engine.accept(at: 4)
                case .subscribeReceived(let request): subscription = request.id
                case .disconnectReceived(let receipt): if let receipt { try engine.sendReceipt(receipt, at: 4) }
                case .disconnected: isDisconnected = true
                default: break
                }
            }
            for message in done.messages {
                bodies.append(Array(bytes[message.body]))
                guard let subscription else { continue }
                let reader = STOMPHeaderReader(version: engine.version)
                let headers = reader.headers(in: Array(bytes[message.headers]).span.bytes)
                try engine.deliver(
                    subscription: subscription, destination: "/queue/a", messageID: "\(bodies.count)",
                    body: bodies[bodies.count - 1], at: 4)
                if let receipt = headers["receipt"] { try engine.sendReceipt(receipt, at: 4) }
            }
        }
    }
}
