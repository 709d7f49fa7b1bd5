public import MessagingFrames

/// A client that keeps itself connected: the members that the clients of all protocols have in common.
public protocol MessagingClient: Actor, CustomStringConvertible, CustomReflectable {
    /// The client's errors.
    associatedtype Failure: Error & Sendable
    /// What the client reports; see ``events``.
    associatedtype Event: Sendable
    /// A packet or frame of the connection, for display; see ``inspect(showingSecrets:)``.
    associatedtype Record: Sendable

    /// Used by the extensions of this protocol.
    @_documentation(visibility: internal)
    nonisolated var shell: ClientShell<Failure, Event, Record> { get }

    /// Disconnects gracefully, at the latest after three seconds and the time that an MQTT session store needs. ``connect()``
    /// may be called again.
    nonisolated(nonsending) func disconnect() async
    /// Disconnects gracefully and opens no connection until ``resume()``.
    nonisolated(nonsending) func suspend() async
}

/// The parts of a client that do not depend on its protocol.
@_documentation(visibility: internal)
public struct ClientShell<Failure: Error & Sendable, Event: Sendable, Record: Sendable>: Sendable {
    fileprivate let core: any ClientCore<Failure, Event, Record>

    package init(_ core: any ClientCore<Failure, Event, Record>) { self.core = core }
}

extension MessagingClient {
    // MARK: Observing

    /// The states of the connection from the moment of this call, the present one first. The sequence ends when its task is
    /// cancelled or the client is released; not when the client disconnects.
    public nonisolated var states: Updates<ConnectionState<Failure>> { shell.core.news.states }

    /// The present state of the connection.
    public nonisolated var state: ConnectionState<Failure> { shell.core.news.state }

    /// The server that is connected, or else was tried last; nil before the first attempt.
    public nonisolated var server: BrokerURL? { shell.core.opener.server }

    /// What happens to the client from the moment of this call. A slow reader misses the oldest of 1024 events. The sequence
    /// ends as ``states`` does.
    public nonisolated var events: Updates<Event> { shell.core.news.events }

    /// The same events, each with its time.
    public nonisolated var timedEvents: Updates<TimedEvent<Event>> { shell.core.news.timedEvents }

    /// Each message that is sent, acknowledged or received from the moment of this call. A slow reader misses the oldest
    /// of 1024 events. As long as the sequence exists, every packet or frame is decoded once more; without it there is
    /// no cost.
    public nonisolated var messageEvents: Updates<MessageEvent> { shell.core.inspector.messageEvents }

    /// Counts of messages, connections, bytes and system calls since the client was made.
    public nonisolated var counters: ClientCounters { shell.core.countersNow }

    /// What waits in the client now: in the queue, in flight, for later subscriptions, in the outbox and in subscriptions.
    public nonisolated var backlog: ClientBacklog { shell.core.backlogNow }

    /// What a debugger shows. Everything else changes on other threads, or holds credentials.
    public nonisolated var customMirror: Mirror {
        Mirror(self, children: ["description": description, "state": state])
    }

    // MARK: Connecting

    /// Keeps the client connected from now on, and returns at once, whether there is a network or not.
    ///
    /// Calls then do what they do during a reconnect: subscribing, for example, waits for the connection and returns
    /// when the server has confirmed it, while calls that have no queue, such as publishing with QoS 0 in MQTT and
    /// sending in STOMP, throw `notConnected`. The first connection is tried like one that was lost, as often as
    /// ``ReconnectPolicy/maximumAttempts`` allows. While the client disconnects, this waits until that is done.
    /// Cancelling the task has no effect. If no descriptor or thread is left for the event loop, the client is not started,
    /// and ``state`` is `disconnected` with the error.
    public nonisolated(nonsending) func start() async { await shell.core.start() }

    /// Keeps the client connected as ``start()`` does, and returns when it has stopped; made for the `run()` of a service in
    /// a `ServiceGroup`.
    ///
    /// When the task is cancelled, the client disconnects gracefully and this returns. It also returns after
    /// ``disconnect()`` by another task.
    /// - Throws: the client's error when it stops connecting, because another attempt is pointless (`badCredentials`) or
    ///   ``ReconnectPolicy/maximumAttempts`` have failed.
    public nonisolated(nonsending) func run() async throws(Failure) {
        try await shell.core.run()
        if Task.isCancelled { await disconnect() }
    }

    /// Connects and returns when the server has accepted; already connected, it returns at once.
    ///
    /// ``ReconnectPolicy/firstConnectAttempts`` limits how often a first connection is tried; ``start()`` has no such limit.
    /// Cancelling the task ends the wait, and the attempts with it unless there was a connection before or the client was
    /// started.
    /// - Throws: the client's error when the attempts are used up, or another one is pointless (`badCredentials`).
    public nonisolated(nonsending) func connect() async throws(Failure) { try await shell.core.connect() }

    /// Ends the connection gracefully, opens another one, and returns when the server has accepted it: to the next server or
    /// address if there are several, and to the present one if no other accepts the client.
    ///
    /// For a server that is about to be stopped, or has too many clients. The same state survives as after a loss, and
    /// the server publishes no will. ``ReconnectPolicy/maximumConnectionAge`` does it regularly. Without a connection
    /// this ends a wait before the next attempt, and otherwise does what ``connect()`` does. Cancelling the task ends
    /// the wait for the new connection; the attempts end with it only where they do in ``connect()``: before the first
    /// connection of a client that was not started.
    /// - Throws: the client's error when the attempts are used up, or another one is pointless (`badCredentials`).
    public nonisolated(nonsending) func reconnect() async throws(Failure) { try await shell.core.reconnect() }

    /// Connects again after ``suspend()`` and returns at once; ``connect()`` does the same and waits.
    public nonisolated func resume() { shell.core.resume() }

    /// Ends a wait before the next attempt, because the network is back or has changed, and has a connection checked. The client
    /// does the same by itself when the system wakes from half a minute of sleep or more, but for the connection beside it.
    ///
    /// While a connection has been opening for a second or more, another one is opened beside it, because the first may use the
    /// former network. The first that opens wins, and the server gets one CONNECT. There are two at most: further calls replace
    /// the younger, and the older has its whole `connectTimeout`, so that calls that come often do not keep a client from
    /// connecting. Each asks `credentialsProvider`. Connected, an MQTT client sends PINGREQ at once, so that a dead connection is noticed after `pingTimeout`, unless one is
    /// unanswered or `keepAlive` is zero; in STOMP, whose server sends heart-beats, nothing is sent. A living
    /// connection stays where it is: ``reconnect()`` moves it.
    public nonisolated func networkChanged() { shell.core.networkChanged() }

    /// Connects, runs `body`, and disconnects whatever happens.
    ///
    /// - Throws: the client's error from connecting, or what `body` throws.
    @discardableResult
    public nonisolated(nonsending) func withConnection<Result>(
        _ body: (Self) async throws -> Result
    ) async throws -> Result {
        try await connect()
        do {
            let result = try await body(self)
            await disconnect()
            return result
        } catch {
            await disconnect()
            throw error
        }
    }

    // MARK: Running on the client's thread

    /// Runs `body` on the thread that serves this client's sockets, for tasks that wait for many answers:
    ///
    ///     try await client.withExecutor {
    ///         for reading in readings { try await client.publish(reading, to: "meters/7", qos: .atLeastOnce) }
    ///     }
    ///
    /// An answer then resumes its task without a switch of threads, which is most of what a round trip on a fast network
    /// costs. Child tasks of `body` run there too; the main actor and actors with an executor of their own do not.
    /// - Warning: This thread serves other connections of the process too. While `body` or one of its child tasks computes or
    ///   blocks, no client sends, receives or keeps its connection alive. A piece of them that takes more than 100 ms is
    ///   reported as the event `executorHeld`.
    /// - Throws: what `body` throws.
    public nonisolated func withExecutor<Result: Sendable, BodyFailure: Error>(
        _ body: @concurrent @Sendable () async throws(BodyFailure) -> Result
    ) async throws(BodyFailure) -> Result { try await shell.core.onLoop(body) }

    /// The same thread as a preference for tasks that outlive a call, such as `Task(executorPreference: client.executor)`.
    ///
    /// The warning of `withExecutor` holds for them too; what they hold up is reported only while `withExecutor` is under way.
    public nonisolated var executor: any TaskExecutor { shell.core.loop }

    /// The loop that serves the client.
    package nonisolated var loop: EventLoop { shell.core.loop }

    // MARK: Inspecting

    /// Every packet or frame of the connection from the moment of this call, sent and received, over reconnects.
    ///
    /// For display, not for logic: a slow reader misses the oldest of 1024 packets or frames, or of 4 MiB of them. The
    /// connection keeps their bytes, and the reader decodes them.
    /// - Parameter showingSecrets: whether user names, passwords and other secrets are readable. Default: false.
    public nonisolated func inspect(showingSecrets: Bool = false) -> Updates<Record> {
        shell.core.inspector.records(showingSecrets: showingSecrets)
    }

    /// Puts every packet or frame of the connection into `log` from now on, over reconnects; secrets are masked.
    ///
    /// Call this before ``connect()``: without the first packet or frame, those after it may not be decodable.
    /// - Parameters:
    ///   - log: what keeps the frames.
    ///   - name: the client's name in the log. Default: its client identifier at the time of this call, with random digits for
    ///     each `%`; in STOMP its `client-id`.
    public nonisolated func inspect(into log: FrameLog, as name: String? = nil) {
        shell.core.inspector.feed(log, as: name ?? shell.core.name)
    }

    /// Puts nothing more into `log`.
    public nonisolated func stopInspecting(into log: FrameLog) { shell.core.inspector.stopFeeding(log) }
}

/// A received message: the members that the messages of all protocols have in common.
public protocol ReceivedMessage: Sendable, CustomStringConvertible {
    /// The payload or body, without a copy.
    var content: ArraySlice<UInt8> { get }
    /// The type and subtype that the message declares, in lower case; nil if it declares none.
    var mediaType: String? { get }
}

extension ReceivedMessage {
    /// Decodes the payload or body.
    ///
    /// - Throws: ``DecodeFailure`` if it is not such a value, or the message declares another content type. A message that
    ///   declares none is decoded.
    public func value<Value: Decodable>(
        _ type: Value.Type = Value.self, as coding: some PayloadCoding
    ) throws(DecodeFailure) -> Value {
        try coding.value(of: type, from: content, mediaType: mediaType).get()
    }
}

/// The results of messages that were sent together, in their order: the server's answer to each, or why it failed.
public struct MessageResults<Answer: Sendable, Failure: Error>: RandomAccessCollection, Sendable {
    public typealias Element = Result<Answer, Failure>

    /// The results that are not `success`, by their places.
    private let exceptions: [Int: Element]
    private let success: Answer
    public let endIndex: Int
    public var startIndex: Int { 0 }

    package init(count: Int, success: Answer, _ exceptions: [Int: Element]) {
        endIndex = count
        self.success = success
        self.exceptions = exceptions
    }

    public subscript(position: Int) -> Element {
        precondition((0..<endIndex).contains(position), "There is no message at this place.")
        return exceptions[position] ?? .success(success)
    }

    /// Returns if every message was accepted.
    ///
    /// - Throws: the client's error for the first message that failed.
    public func check() throws(Failure) {
        for place in exceptions.keys.sorted() { _ = try exceptions[place]?.get() }
    }
}

/// A subscription, which is the sequence of its messages: the members that the subscriptions of all clients have in
/// common.
public protocol MessageSubscription: AsyncSequence, Sendable, CustomStringConvertible where Element: ReceivedMessage {
    /// The storage of messages that arrived together.
    associatedtype Storage: MessageStorage

    /// The number of messages that were dropped because the reader was slow.
    var droppedCount: Int { get }
    /// The messages in batches of those that arrived together, for receivers of very many messages.
    var batches: MessageBatches<Storage, Failure> { get }

    /// Unsubscribes and waits for the server's answer. This sequence ends, even if the call throws.
    nonisolated(nonsending) func unsubscribe() async throws(Failure)
}

extension MessageSubscription {
    /// Messages that arrived together, in their order.
    public typealias Batch = MessageBatch<Storage>

    /// The messages with their values.
    ///
    /// A payload that cannot be decoded is an element too, and the messages after it follow; with automatic
    /// acknowledgement it is acknowledged all the same.
    public func values<Value: Decodable & Sendable>(
        _ type: Value.Type = Value.self, as coding: some PayloadCoding
    ) -> DecodedMessages<Self, Value> {
        DecodedMessages(self) { coding.value(of: type, from: $0.content, mediaType: $0.mediaType) }
    }

    /// The messages with their values in a format of the application's own, such as that of generated types:
    ///
    ///     for try await reading in readings.values({ try Reading(serializedBytes: $0.bytes) }) { … }
    public func values<Value: Sendable>(
        _ decode: @escaping @Sendable (Element) throws -> Value
    ) -> DecodedMessages<Self, Value> {
        DecodedMessages(self) { DecodeFailure.result(of: decode, $0, $0.content) }
    }
}

/// What the supervision of a client reports to its users.
package protocol ClientEvent: Sendable {
    associatedtype Failure: ClientError

    static func stateChanged(_ state: ConnectionState<Failure>) -> Self
    static func executorHeld(for time: Duration) -> Self
    static func readingPaused(for subscription: String) -> Self
    static var sendingStalled: Self { get }
    static func sendingResumed(after time: Duration) -> Self
    static func connecting(to server: BrokerURL) -> Self
    static func moving(from server: BrokerURL, after age: Duration) -> Self
    static func credentialsRequested(for server: BrokerURL) -> Self
    static func attemptFailed(_ server: BrokerURL, _ failure: Failure) -> Self
}
