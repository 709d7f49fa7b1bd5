import LoopbackBroker
import MessagingWire
import Synchronization
import TestSupport

@testable import MQTT
@testable import MQTTCore
@testable import MessagingShell
@testable import STOMP
@testable import STOMPCore
@testable import Transport

extension Census {
    private static let modules = [
        "MQTT", "MQTTCore", "MQTTRecords", "MQTTStores", "MessagingFrames", "MessagingShell", "MessagingWire", "STOMP",
        "STOMPCore", "STOMPRecords", "Transport",
    ]

    /// The types of properties that cannot be copied.
    private static let table = counted.merging(uncounted.map { ($0, .skipped) }) { first, _ in first }

    private static let counted: [String: Kind] = [
        "ClientParts.unread": .type(Lock<UnreadBytes?>.self),
        "EventLoop.holdReports": .type(Lock<[EventLoop.HoldReport]>.self),
        // Those of other clients as well. A link keeps a deadline that was later than those it has had since.
        "Inside.handlers": .borrowed,
        "TimerHeap.entries": .borrowed,
        "Link.machine": .boxOfArgument,
        "Link.state": .type(Lock<LinkState>.self),
        "LinkState.outboxWaiters": .type(Waiters<Void>.self),
        "MQTTClient.knownReplies": .type(Lock<MQTTClientCore.Replies?>.self),
        "MQTTClientCore.parts": .type(ClientParts<MQTTClientCore>.self),
        "MQTTMachine.engine": .type(MQTTEngine.self),
        "MQTTMachine.publishers": .type(MQTTWaitingPublishers.self),
        "MQTTNegotiation.redirection": .type(Lock<MQTTRedirection?>.self),
        "MQTTPersistence.unstoredEnds": .type(Lock<[MQTTStoreRecord]>.self),
        "MQTTRouter.topics": .type(TopicTable.self),
        "MQTTServerMachine.engine": .type(MQTTEngine.self),
        "MQTTWaitingPublishers.queueWaiters": .type(Waiters<MQTTError?>.self),
        "MQTTWaitingPublishers.storeWaiters": .type(Box<Waiters<Result<Void, MQTTError>>>?.self),
        "MQTTWaitingPublishers.waiters": .type(Waiters<MQTTWaitingPublishers.Answer>.self),
        "ManualTime.services": .type(Lock<[Endpoint: @Sendable (any ByteStream) -> Void]>.self),
        "STOMPClient.knownReplies": .type(Lock<STOMPClientCore.Replies?>.self),
        "STOMPClientCore.parts": .type(ClientParts<STOMPClientCore>.self),
        "STOMPServerMachine.engine": .type(STOMPEngine.self),
        "STOMPMachine.engine": .type(STOMPEngine.self),
        "STOMPMachine.receipts": .type(Waiters<STOMPMachine.ReceiptAnswer>.self),
    ]

    /// Those that hold at most one thing, that are the same for all clients of a loop, or whose type is not known here.
    private static let uncounted = [
        "BatchPool.state", "Broadcaster.state", "ClientNews.lock", "ClientParts.counters", "DeliveryQueue.fullness",
        "DeliveryQueue.lock", "DeliveryQueue.lost", "DeliveryQueue.reader",
        "EventLoop.inbox", "EventLoop.isStarted", "EventLoop.starting", "EventLoop.thread", "Link.connections",
        "LookUps.state", "MemorySessionStore.state", "MQTTAfterLock.work", "MQTTBatch.leased", "MQTTRoute.granted",
        "MQTTJournal.state", "MQTTPersistence.phase", "ManualTime.nanoseconds", "PendingCall.lock",
        "ManualTime.workCount", "NetworkMonitor.state", "STOMPAfterLock.batchEnds", "STOMPAfterLock.readers",
        "STOMPAfterLock.resumptions", "STOMPBatch.leased",
        "STOMPClientCore.expiresRelatively", "STOMPClientCore.ids", "StreamOpener.state",
        "Supervisor.isMoving",
        "UnreadBytes.count", "UnreadBytes.reached",
    ]

    /// The aliases of a connection with their topics, and words of bits.
    static let varying = ["Entry.topic", "InboundAliases.entries", "OutboundAliases.entries", "PacketIDBits.words"]

    /// What a client without a connection may keep: empty slots, the first node or number, which every table has, what the
    /// next CONNECT forgets, filters that a server may still have, messages that wait for a subscription, why servers of a
    /// round failed, the last credentials, and the names that a server refuses, of which Quarantine remembers a hundred at most.
    fileprivate static let kept =
        varying + [
            "FilterTrie.nodes", "MQTTEngineConfiguration.password", "MQTTProperties.encoded",
            "MQTTRouter.destinations", "FilterTable.records", "MQTTUnmatchedList.messages",
            "MQTTWill.payload",
            "Message.payload", "Message.properties", "Charge.answeredOthers", "Quarantine.known",
            "ReceiptTable.ring", "STOMPHeaders.fields", "ServerRounds.failures", "SendWindow.free",
            "SendWindow.slotOfID", "SendWindow.slots",
        ]

    /// Everything that clients hold, and the loop that serves them.
    static func of(_ clients: [any MessagingClient]) -> Census {
        Census(of: clients.map { $0 as AnyObject }, in: modules, noncopyable: table)
    }
}

extension Simulation {
    /// A client that has disconnected holds nothing that a new one does not.
    ///
    /// - Parameters:
    ///   - other: with the same configuration, and never used.
    ///   - mayAbandon: whether it may have abandoned messages of QoS 2, whose identifiers stay in use as long as the session
    ///     lives.
    func requireNothingLeft(
        in client: any MessagingClient, unlike other: any MessagingClient, mayAbandon: Bool = false
    ) throws {
        let (new, used) = (Census.of([other]), Census.of([client]))
        try require(used.unknown.isEmpty, "WorldCensus.swift has to know \(used.unknown.sorted())")
        let left = used.grown(since: new, except: Census.kept + (mayAbandon ? ["SendWindow.ids"] : []))
        try require(left.isEmpty, "a client that has disconnected keeps what a new one does not: \(left)")
        let (slots, free) = (used.counts["SendWindow.slots"] ?? 0, used.counts["SendWindow.free"] ?? 0)
        try require(slots == free, "\(slots - free) of \(slots) slots of a client that has disconnected are in use")
    }
}
