public import MQTTCore
import Messaging
import Transport

extension MQTTClient {
    /// Publishes a message and returns when the promise of its QoS is kept.
    ///
    /// QoS 0: when the bytes are on their way to the socket; suspends only while the outbox is full. After a reconnect
    /// messages of every QoS leave once the server has answered the subscriptions. QoS 1 and 2: when
    /// the server has acknowledged, over a reconnect if need be. Cancelling the task ends the wait, within a tenth of a
    /// second, and never the exchange.
    /// - Returns: the server's reason code; for QoS 0 always success.
    /// - Throws: ``MQTTError``, before anything is sent if the message cannot be. ``MQTTError/Code/notConnected`` at once,
    ///   with the reason, before ``connect()``, after ``disconnect()``, and when the client has stopped connecting; those
    ///   that wait by then fail with that reason, and their messages are dropped unless they have been sent already.
    @discardableResult
    public nonisolated(nonsending) func publish(
        _ payload: [UInt8], to topic: String, qos: QoS = .atMostOnce, retain: Bool = false,
        properties: MQTTProperties = MQTTProperties()
    ) async throws(MQTTError) -> MQTTReasonCode {
        if qos == .atMostOnce {
            if try core.publisher.publishAtMostOnce(payload, to: topic, retain: retain, properties: properties) {
                return .success
            }
            return try await publishWhenThereIsRoom(payload, to: topic, retain: retain, properties: properties)
        }
        // The usual case, in one function: each one that waits costs its caller a frame and a look at its executor.
        guard core.persistence == nil, !Task.isCancelled else {
            return try await publishAcknowledged(payload, topic, qos, retain, properties)
        }
        let first = await waiting { waiter in
            core.publisher.publish(payload, to: topic, qos: qos, retain: retain, properties: properties, waiter)
        }
        guard let call = first.call else { return MQTTReasonCode(rawValue: first.code) }
        do throws(MQTTError) {
            return try await call.answer(ifCancelled: .failure(.cancelledWait)).get().reasonCode
        } catch {
            guard core.publisher.waitsForRoom(error) else { throw error }
        }
        try await core.publisher.waitForRoom()
        return try await publishAcknowledged(payload, topic, qos, retain, properties)
    }

    /// Publishes a message as ``publish(_:to:qos:retain:properties:)-([UInt8],_,_,_,_)`` does, and returns all that the
    /// server answered: with 5.0 Reason String and user properties too.
    @discardableResult
    public nonisolated(nonsending) func publish(_ message: MQTTOutgoingMessage) async throws(MQTTError)
        -> MQTTPublishResult
    {
        guard message.qos == .atMostOnce else { return try await core.publisher.publishAcknowledged(message) }
        return MQTTPublishResult(
            try await publish(
                message.payload, to: message.topic, retain: message.retain, properties: message.properties))
    }

    /// Publishes text as UTF-8; see ``publish(_:to:qos:retain:properties:)-([UInt8],_,_,_,_)``.
    @discardableResult
    public nonisolated(nonsending) func publish(
        _ text: String, to topic: String, qos: QoS = .atMostOnce, retain: Bool = false,
        properties: MQTTProperties = MQTTProperties()
    ) async throws(MQTTError) -> MQTTReasonCode {
        try await publish(Array(text.utf8), to: topic, qos: qos, retain: retain, properties: properties)
    }

    /// Publishes many messages in their order with one wait: returns when the promises of all are kept.
    ///
    /// - Throws: ``MQTTError`` for the first message that failed; those before it are sent, those after it are not
    ///   unless they were already on their way.
    public nonisolated(nonsending) func publish(_ messages: [MQTTOutgoingMessage]) async throws(MQTTError) {
        if messages.allSatisfy({ $0.qos == .atMostOnce }) {
            try await core.publisher.publishAtMostOnce(messages[...])
        } else {
            try await core.publisher.publishAcknowledged(messages)
        }
    }

    /// Publishes a message and returns without waiting for its acknowledgement, which can be awaited later.
    ///
    /// This returns when the message has its place in the order of the client's messages: it suspends only while the outbox
    /// is full (QoS 0), or the queue with ``MQTTConfiguration/queueOverflow`` `.wait`.
    /// - Parameter qos: QoS 0 has no acknowledgement, and is confirmed at once. Default: 1.
    /// - Throws: ``MQTTError``, before anything is sent if the message cannot be.
    public nonisolated(nonsending) func publishForConfirmation(
        _ payload: [UInt8], to topic: String, qos: QoS = .atLeastOnce, retain: Bool = false,
        properties: MQTTProperties = MQTTProperties()
    ) async throws(MQTTError) -> MQTTConfirmation {
        if qos == .atMostOnce {
            _ = try await publish(payload, to: topic, qos: qos, retain: retain, properties: properties)
            return MQTTConfirmation(core: core, batch: nil)
        }
        let message = MQTTOutgoingMessage(
            topic: topic, payload: payload, qos: qos, retain: retain, properties: properties)
        return MQTTConfirmation(core: core, batch: try await core.publisher.publishForConfirmation(message))
    }

    /// Hands a message over and returns when it is safe: stored, if there is a ``MQTTConfiguration/sessionStore``, and
    /// otherwise in this client's queue. Works without a connection too, before the first ``connect()`` included.
    ///
    /// With a store nothing that was taken is lost, however the process ends; a server that kept its session gets a
    /// QoS 2 message exactly once. One that forgot its session may get it twice, which
    /// ``MQTTEvent/sessionLost(republished:possibleDuplicates:)`` tells. What is given up later (the server refuses it,
    /// it expires) is told by ``MQTTEvent/undelivered(_:)``.
    /// - Throws: ``MQTTError``; ``MQTTError/Code/queueFull`` as ``MQTTConfiguration/queueOverflow`` says.
    public nonisolated(nonsending) func enqueue(
        _ payload: [UInt8], to topic: String, qos: QoS = .atLeastOnce, retain: Bool = false,
        properties: MQTTProperties = MQTTProperties()
    ) async throws(MQTTError) {
        let message = MQTTOutgoingMessage(
            topic: topic, payload: payload, qos: qos, retain: retain, properties: properties)
        try await core.publisher.enqueue(message)
    }

    /// Publishes a QoS 0 message at once or not at all, without suspending.
    ///
    /// - Returns: false if the outbox is full, or the queue while messages wait for subscriptions after a reconnect.
    public nonisolated func tryPublish(
        _ payload: [UInt8], to topic: String, retain: Bool = false, properties: MQTTProperties = MQTTProperties()
    ) throws(MQTTError) -> Bool {
        try core.publisher.publishAtMostOnce(payload, to: topic, retain: retain, properties: properties)
    }

    private nonisolated(nonsending) func publishAcknowledged(
        _ payload: [UInt8], _ topic: String, _ qos: QoS, _ retain: Bool, _ properties: MQTTProperties
    ) async throws(MQTTError) -> MQTTReasonCode {
        let message = MQTTOutgoingMessage(
            topic: topic, payload: payload, qos: qos, retain: retain, properties: properties)
        return try await core.publisher.publishAcknowledged(message).reasonCode
    }

    private nonisolated(nonsending) func publishWhenThereIsRoom(
        _ payload: [UInt8], to topic: String, retain: Bool, properties: MQTTProperties
    ) async throws(MQTTError) -> MQTTReasonCode {
        repeat {
            try await core.publisher.roomForAtMostOnce()
        } while try !core.publisher.publishAtMostOnce(payload, to: topic, retain: retain, properties: properties)
        return .success
    }
}
