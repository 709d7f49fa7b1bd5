import MessagingWire
import STOMPCore
import TestSupport

/// A client and a small broker back to back in virtual time, over a link that splits, delays and breaks.
///
/// The broker routes by destination, answers receipts, keeps what is subscribed per connection, and remembers which
/// bodies it processed.
final class EnginePair {
    let client: PairedEngine
    let server: PairedEngine
    /// Bodies of SENDs that the broker processed, in order.
    private(set) var processed: [String] = []
    private var subscriptions: [(id: String, destination: String)] = []
    private var staged: [String: [(String, [UInt8])]] = [:]
    private var messageNumber = 0

    init(_ version: STOMPVersion) throws {
        var options = STOMPConnectOptions()
        options.versions = [version]
        options.heartBeat = .init(outgoing: 1_000, incoming: 1_000)
        client = PairedEngine(STOMPEngine(configuration: STOMPEngineConfiguration(connect: options)))
        server = PairedEngine(STOMPEngine(configuration: STOMPEngineConfiguration(role: .server)))
    }

    func open(at now: Int64) {
        subscriptions = []
        staged = [:]
        for side in [client, server] { side.open(at: now) }
    }

    func close(at now: Int64) {
        for side in [client, server] { side.close(at: now) }
        server.takeEffects()
    }

    /// Moves at most `count` bytes each way and lets the broker answer.
    func move(_ count: Int, at now: Int64) throws {
        let up = client.takeOutput(count)
        let down = server.takeOutput(count)
        try server.receive(up, at: now) { [self] effects, bytes in try serve(effects, bytes, at: now) }
        try client.receive(down, at: now) { _, _ in }
    }

    private func serve(_ effects: STOMPEffects, _ bytes: [UInt8], at now: Int64) throws {
        var next = 0
        for index in 0...effects.messages.count {
            while next < effects.events.count, effects.events[next].messagesBefore <= index {
                try serve(effects.events[next].kind, at: now)
                next += 1
            }
            if index < effects.messages.count { try serve(effects.messages[index], bytes, at: now) }
        }
    }

    private func serve(_ event: STOMPEngineEvent.Kind, at now: Int64) throws {
        switch event {
        case .connectReceived: try server.engine.accept(heartBeat: .init(outgoing: 1_000, incoming: 1_000), at: now)
        case .subscribeReceived(let request):
            subscriptions.append((request.id!, request.destination))
            if let receipt = request.receipt { try server.engine.sendReceipt(receipt, at: now) }
        case .unsubscribeReceived(let request):
            subscriptions.removeAll { $0.id == request.id }
            if let receipt = request.receipt { try server.engine.sendReceipt(receipt, at: now) }
        case .beginReceived(let request): staged[request.transaction] = []
        case .commitReceived(let request):
            for (destination, body) in staged.removeValue(forKey: request.transaction)! {
                try route(destination, body, at: now)
            }
            if let receipt = request.receipt { try server.engine.sendReceipt(receipt, at: now) }
        case .abortReceived(let request): staged[request.transaction] = nil
        case .disconnectReceived(let receipt): if let receipt { try server.engine.sendReceipt(receipt, at: now) }
        default: break
        }
    }

    private func serve(_ record: STOMPMessageRecord, _ bytes: [UInt8], at now: Int64) throws {
        let reader = STOMPHeaderReader(version: server.engine.version)
        let headers = reader.headers(in: bytes[record.headers].span.bytes)
        let body = Array(bytes[record.body])
        let destination = headers["destination"]!
        if let transaction = headers["transaction"] {
            staged[transaction]!.append((destination, body))
        } else {
            try route(destination, body, at: now)
        }
        if let receipt = headers["receipt"] { try server.engine.sendReceipt(receipt, at: now) }
    }

    private func route(_ destination: String, _ body: [UInt8], at now: Int64) throws {
        processed.append(String(decoding: body, as: UTF8.self))
        for subscription in subscriptions where subscription.destination == destination {
            messageNumber += 1
            try server.engine.deliver(
                subscription: subscription.id, destination: destination, messageID: "\(messageNumber)", body: body,
                at: now)
        }
    }
}

/// One side of a pair.
final class PairedEngine {
    var engine: STOMPEngine
    private var effects = STOMPEffects()
    private var unread: [UInt8] = []
    private var wire: [UInt8] = []
    /// Bodies of messages with the token of their subscription, events and completions since the last look.
    var messages: [(token: UInt64, body: String)] = []
    var events: [STOMPEngineEvent.Kind] = []
    var completions: [STOMPReceiptCompletion] = []

    init(_ engine: consuming STOMPEngine) { self.engine = engine }

    func open(at now: Int64) {
        unread = []
        wire = []
        try! engine.connectionOpened(at: now)
    }

    func close(at now: Int64) {
        engine.connectionClosed(at: now, into: &effects)
        take([])
    }

    func timeout(at now: Int64) {
        guard engine.nextDeadline <= now else { return }
        engine.handleTimeout(at: now, into: &effects)
        take([])
    }

    func takeOutput(_ count: Int) -> [UInt8] {
        wire += engine.output
        engine.output.removeAll(keepingCapacity: true)
        let taken = Array(wire.prefix(count))
        wire.removeFirst(taken.count)
        return taken
    }

    func receive(_ received: [UInt8], at now: Int64, _ serve: (STOMPEffects, [UInt8]) throws -> Void) throws {
        guard !received.isEmpty else { return }
        unread += received
        let bytes = unread
        let consumed = engine.receive(bytes.span.bytes, at: now, into: &effects)
        unread.removeFirst(consumed)
        try serve(effects, bytes)
        take(bytes)
    }

    func takeEffects() {
        messages = []
        events = []
        completions = []
    }

    private func take(_ bytes: [UInt8]) {
        for record in effects.messages {
            messages.append((record.subscription, String(decoding: bytes[record.body], as: UTF8.self)))
        }
        events += effects.events.map(\.kind)
        completions += effects.completions
        effects.removeAll()
    }
}
