import Synchronization

/// What a broker has done since it started.
public struct LoopbackStatistics: Sendable, Hashable {
    /// Connections that were accepted.
    public var connections = 0
    /// Messages that clients published or sent.
    public var messagesIn = 0
    /// Messages that were written to clients, each copy counted.
    public var messagesOut = 0
    /// Messages that were dropped because a limit was reached, because they exceeded the client's maximum packet size, or
    /// because they had expired.
    public var messagesDropped = 0
}

/// The same, counted from any thread.
final class Counters: Sendable {
    enum Counter {
        case connections, messagesIn, messagesOut, messagesDropped
    }

    private let connections = Atomic(0)
    private let messagesIn = Atomic(0)
    private let messagesOut = Atomic(0)
    private let messagesDropped = Atomic(0)

    func add(_ counter: Counter, _ count: Int = 1) {
        switch counter {
        case .connections: connections.wrappingAdd(count, ordering: .relaxed)
        case .messagesIn: messagesIn.wrappingAdd(count, ordering: .relaxed)
        case .messagesOut: messagesOut.wrappingAdd(count, ordering: .relaxed)
        case .messagesDropped: messagesDropped.wrappingAdd(count, ordering: .relaxed)
        }
    }

    var statistics: LoopbackStatistics {
        LoopbackStatistics(
            connections: connections.load(ordering: .relaxed), messagesIn: messagesIn.load(ordering: .relaxed),
            messagesOut: messagesOut.load(ordering: .relaxed), messagesDropped: messagesDropped.load(ordering: .relaxed)
        )
    }
}
