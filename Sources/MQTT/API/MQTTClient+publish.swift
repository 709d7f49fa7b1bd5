public import MQTTCore
import MessagingShell

extension MQTTClient {
    /// Publishes a message and returns when the guarantee of its QoS is fulfilled.
    ///
    /// QoS 0: when its bytes are in the outbox; this suspends only while the outbox is full. QoS 1 and 2: when the server has
    /// acknowledged, over a reconnect if need be. After a reconnect messages of every QoS are sent once the server has
    /// answered the subscriptions. Cancelling the task ends the wait, and never the exchange.
    /// - Returns: the whole answer of the server, with 5.0 including Reason String and user properties; for QoS 0 always
    ///   success.
    /// - Throws: ``MQTTError``. A message that cannot be sent as it is, is refused before anything leaves.
    ///   ``MQTTError/Code/notConnected`` at once before ``connect()`` and after ``disconnect()``. When the client has stopped
    ///   connecting, the reason with its code: at once, or when it stops for calls that wait at that moment; their messages are
    ///   dropped unless they have been sent already. ``MQTTError/Code/timedOut`` when the client reads nothing, because the
    ///   reader of a full buffer takes no message (``MQTTEvent/readingPaused(for:)``), or when the session store does not answer
    ///   (``MQTTEvent/storeUnanswered``); the message may still arrive.
    @discardableResult
    public nonisolated(nonsending) func publish(_ message: MQTTOutgoingMessage) async throws(MQTTError)
        -> MQTTPublishResult
    {
        try await throughHook(message) { (message) async throws(MQTTError) in
            guard message.qos == .atMostOnce else { return try await sender.publishAcknowledged(message) }
            try await publishAtMostOnce(
                message.payload, to: message.topic, retain: message.retain, properties: message.properties)
            return MQTTPublishResult(.success)
        }
    }

    /// Publishes any sequence of bytes, such as an array or `Data`; otherwise as ``publish(_:)-(MQTTOutgoingMessage)``.
    ///
    /// - Parameters:
    ///   - payload: the payload.
    ///   - topic: the topic that is published to.
    ///   - qos: the quality of service. Default: 0.
    ///   - retain: whether the server keeps the message for later subscribers; an empty payload makes it forget the one it
    ///     has. Default: false.
    ///   - properties: of PUBLISH; 5.0 only.
    /// - Returns: the server's reason code; for QoS 0 always success.
    @discardableResult
    @inlinable
    public nonisolated(nonsending) func publish(
        _ payload: some Sequence<UInt8>, to topic: String, qos: QoS = .atMostOnce, retain: Bool = false,
        properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTReasonCode {
        try await publish(bytes: Array(payload), to: topic, qos: qos, retain: retain, properties: properties)
    }

    /// Publishes text as UTF-8; the parameters are those of bytes.
    @discardableResult
    public nonisolated(nonsending) func publish(
        _ text: String, to topic: String, qos: QoS = .atMostOnce, retain: Bool = false, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTReasonCode {
        try await publish(bytes: Array(text.utf8), to: topic, qos: qos, retain: retain, properties: properties)
    }

    @usableFromInline
    nonisolated(nonsending) func publish(
        bytes payload: [UInt8], to topic: String, qos: QoS, retain: Bool, properties: MQTTProperties
    ) async throws(MQTTError) -> MQTTReasonCode {
        guard qos == .atMostOnce, core.settings.messageHook == nil else {
            let message = MQTTOutgoingMessage(payload, to: topic, qos: qos, retain: retain, properties: properties)
            return try await publish(message).reasonCode
        }
        try await publishAtMostOnce(payload, to: topic, retain: retain, properties: properties)
        return .success
    }

    private nonisolated(nonsending) func publishAtMostOnce(
        _ payload: [UInt8], to topic: String, retain: Bool, properties: MQTTProperties
    ) async throws(MQTTError) {
        while try !sender.publishAtMostOnce(payload, to: topic, retain: retain, properties: properties) {
            try await sender.roomForAtMostOnce()
        }
    }

    /// Publishes many messages in their order and returns when the guarantees of all are fulfilled, with a single wait.
    ///
    ///     try await client.publish(messages).check()
    ///
    /// A message that the client or the server refuses does not hold up those after it. Messages of QoS 1 and 2 continue
    /// over a reconnect; while the queue is full those that are left wait here, whatever
    /// ``MQTTConfiguration/queueOverflow`` says. Messages of QoS 0 are sent over the connection at the time of the
    /// call: without a connection, or when it ends before they are in the outbox, they fail with
    /// ``MQTTError/Code/notConnected``, however soon the client is connected again; with
    /// ``MQTTConfiguration/queuesQoS0WhileOffline`` they wait.
    /// - Returns: the result of each message, in their order. Messages that have no answer yet when the task is cancelled, or
    ///   when the client stops connecting, fail with that reason; those that were sent may arrive all the same.
    public nonisolated(nonsending) func publish(_ messages: [MQTTOutgoingMessage]) async -> PublishResults {
        guard let hook = core.settings.messageHook else { return await sender.publish(inThisVersion(messages)) }
        return await hook.send(messages) { changed in
            await sender.publish(zip(changed, messages).map { inThisVersion($0, of: $1) })
        }
    }

    /// Publishes a message and returns without waiting for its acknowledgement, which can be awaited later.
    ///
    /// This returns when the message has its place in the order of the client's messages: it suspends only while the outbox
    /// is full (QoS 0), or the queue with ``MQTTConfiguration/queueOverflow`` `.wait`. QoS 0 has no acknowledgement, and is
    /// confirmed at once.
    /// - Throws: ``MQTTError``. A message that cannot be sent as it is, is refused before anything leaves.
    public nonisolated(nonsending) func publishForConfirmation(
        _ message: MQTTOutgoingMessage
    ) async throws(MQTTError) -> Confirmation {
        guard message.qos != .atMostOnce else {
            _ = try await publish(message)
            return Confirmation(core: core, link: core.link, batch: nil)
        }
        return try await throughHook(message) { (message) async throws(MQTTError) in
            Confirmation(
                core: core, link: core.link, batch: try await sender.publishForConfirmation(message))
        }
    }

    /// Adds a message to the queue and returns when it is stored in the ``MQTTConfiguration/sessionStore``; without one,
    /// when it is in this client's memory. Works without a connection too, also before the first ``connect()``.
    ///
    ///     try await client.enqueue(MQTTOutgoingMessage("21.5", to: "house/kitchen"))
    ///
    /// With a store no message is lost, however the process ends; a server that kept the session gets a QoS 2 message
    /// exactly once. A server that lost the session may get it twice, which
    /// ``MQTTEvent/sessionLost(republished:possibleDuplicates:)`` reports. A message that cannot be delivered, because the
    /// server refuses it or it expires, is reported as ``MQTTEvent/undelivered(_:)``.
    /// - Returns: the message in the queue, which can be taken back.
    /// - Throws: ``MQTTError``; ``MQTTError/Code/invalidRequest`` for QoS 0, ``MQTTError/Code/queueFull`` depending on
    ///   ``MQTTConfiguration/queueOverflow``, ``MQTTError/Code/timedOut`` if there is no room because the client reads nothing
    ///   (``MQTTEvent/readingPaused(for:)``), or if the store does not answer (``MQTTEvent/storeUnanswered``), ``MQTTError/Code/storeFailed`` if the store did not accept the message. It is not
    ///   in the queue then.
    @discardableResult
    public nonisolated(nonsending) func enqueue(
        _ message: MQTTOutgoingMessage
    ) async throws(MQTTError) -> EnqueuedMessage {
        try await throughHook(message) { (message) async throws(MQTTError) in
            EnqueuedMessage(core: core, token: try await sender.enqueue(message))
        }
    }

    /// Publishes a message with QoS 0, whatever its own QoS, at once or not at all, without suspending.
    ///
    /// - Returns: false if the outbox is full, or the queue while messages wait for subscriptions after a reconnect.
    public nonisolated func tryPublish(_ message: MQTTOutgoingMessage) throws(MQTTError) -> Bool {
        guard let hook = core.settings.messageHook else { return try tryPublishNow(inThisVersion(message)) }
        var changed = message
        let completion = hook.sending(&changed)
        do throws(MQTTError) {
            let isPublished = try tryPublishNow(inThisVersion(changed, of: message))
            completion?(
                isPublished ? .success(()) : .failure(MQTTError(.queueFull, "The outbox is full. Try again later.")))
            return isPublished
        } catch {
            completion?(.failure(error))
            throw error
        }
    }

    private nonisolated func tryPublishNow(_ message: MQTTOutgoingMessage) throws(MQTTError) -> Bool {
        try sender.publishAtMostOnce(
            message.payload, to: message.topic, retain: message.retain, properties: message.properties)
    }

    /// Sends a message as the hook has changed it, if there is one, and as the version of the connection can carry it.
    private nonisolated(nonsending) func throughHook<Answer>(
        _ message: MQTTOutgoingMessage, _ send: (MQTTOutgoingMessage) async throws(MQTTError) -> Answer
    ) async throws(MQTTError) -> Answer {
        // Most clients have no hook.
        guard let hook = core.settings.messageHook else { return try await send(inThisVersion(message)) }
        return try await hook.send(message) { (changed) async throws(MQTTError) in
            try await send(inThisVersion(changed, of: message))
        }
    }

    /// A message that the hook has changed, as the version of the connection can carry it.
    private nonisolated func inThisVersion(
        _ changed: MQTTOutgoingMessage, of message: MQTTOutgoingMessage
    ) -> MQTTOutgoingMessage {
        guard !speaksProperties else { return changed }
        var changed = changed
        changed.properties = message.properties
        return inThisVersion(changed)
    }

    /// The message as the version of the connection can carry it: before 5.0 without the properties that were added only to
    /// declare its payload's format.
    private nonisolated func inThisVersion(_ message: MQTTOutgoingMessage) -> MQTTOutgoingMessage {
        message.declaresFormat && !speaksProperties ? message.withoutFormat : message
    }

    private nonisolated func inThisVersion(_ messages: [MQTTOutgoingMessage]) -> [MQTTOutgoingMessage] {
        guard messages.contains(where: \.declaresFormat), !speaksProperties else { return messages }
        return messages.map { $0.declaresFormat ? $0.withoutFormat : $0 }
    }
}

extension MQTTClient {
    /// The acknowledgement of one message, to be awaited by any number of tasks, now or later; made by
    /// ``MQTTClient/publishForConfirmation(_:)``.
    public struct Confirmation: Sendable {
        /// Weak, so that keeping this value does not keep the client.
        weak let core: MQTTClientCore?
        /// Has the answer also after the client was released.
        let link: Link<MQTTMachine>
        /// Nil for QoS 0, which has no acknowledgement.
        let batch: MQTTSendBatch?

        /// Returns the server's answer when it has acknowledged the message, over a reconnect if need be.
        ///
        /// Cancelling the task ends the wait, and never the exchange.
        /// - Returns: with 5.0 also Reason String and user properties, of a QoS 2 message those of PUBREC, then those of
        ///   PUBCOMP; for QoS 0 success at once.
        /// - Throws: ``MQTTError`` as ``MQTTClient/publish(_:)-(MQTTOutgoingMessage)`` does;
        ///   ``MQTTError/Code/disconnected`` if the client was released before the server had answered.
        @discardableResult
        public nonisolated(nonsending) func confirmed() async throws(MQTTError) -> MQTTPublishResult {
            guard let batch else { return MQTTPublishResult(.success) }
            return try await batch.confirmed(under: link, success: MQTTPublishResult(.success), by: core)
        }

        /// Takes the message back if it has not been sent yet, because it waits for a connection or for room among those in flight, or
        /// if others pass it (``MQTTEvent/requestPassedOver(_:)``).
        ///
        /// It leaves the session store as well, and ``confirmed()`` throws ``MQTTError/Code/cancelled``. Takes time in
        /// proportion to the queue.
        /// - Returns: true if the message will never be sent, or be sent again; false if it was sent, has ended otherwise, or has
        ///   QoS 0.
        @discardableResult
        public func withdraw() -> Bool {
            guard let batch, let core else { return false }
            return core.sender.withdraw(batch)
        }
    }
}

extension MQTTClient {
    /// A message in the queue; made by ``MQTTClient/enqueue(_:)``.
    public struct EnqueuedMessage: Sendable {
        /// Weak, so that keeping this value does not keep the client.
        weak let core: MQTTClientCore?
        let token: UInt64

        /// Takes the message back if it has not been sent yet, because it waits for a connection or for room among those in flight, or
        /// if others pass it (``MQTTEvent/requestPassedOver(_:)``).
        ///
        /// It leaves the session store as well, and no event reports it. Takes time in proportion to the queue.
        /// - Returns: true if the message will never be sent, or be sent again; false if it was sent, has ended otherwise, or the
        ///   store was closed by ``MQTTClient/disconnect()`` or has failed since, or the client was released.
        @discardableResult
        public func withdraw() -> Bool { core?.sender.withdraw(token) ?? false }
    }
}

extension MQTTClient {
    /// The results of messages that were published together, in their order: the server's answer to each, or why it failed.
    public typealias PublishResults = MessageResults<MQTTPublishResult, MQTTError>
}

/// The server's answer to a message: its reason code, and with 5.0 the properties.
public struct MQTTPublishResult: Sendable, Hashable {
    /// The reason code; `success` where the version of MQTT has none, and `noMatchingSubscribers` if the server reported with
    /// PUBACK or PUBREC that no client has subscribed to the topic.
    public var reasonCode: MQTTReasonCode
    /// Reason String and user properties; of a QoS 2 message those of PUBREC, then those of PUBCOMP; 5.0 only.
    public var properties: MQTTProperties

    /// Makes a result, for tests.
    public init(_ reasonCode: MQTTReasonCode, properties: MQTTProperties = []) {
        self.reasonCode = reasonCode
        self.properties = properties
    }
}
