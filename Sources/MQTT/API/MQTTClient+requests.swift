public import MQTTCore
public import MessagingShell
import MessagingWire
import Transport

extension MQTTClient {
    /// Publishes a request and returns the first response to it [MQTT 5.0 4.10]; 5.0 only.
    ///
    /// One subscription, made with the first request, receives the responses to all requests of a client; correlation
    /// data tells them apart. A response without those of its request is dropped, even if only one request waits,
    /// because a responder has to copy the correlation data [MQTT 5.0 4.10.2]. With a responder that does not, agree on
    /// a topic for ``request(_:to:responseTopic:qos:timeout:)-(String,_,_,_,_)``.
    ///
    /// If the server answers a request of QoS 1 or 2 with `noMatchingSubscribers`, no client received it, and the request fails
    /// at once.
    /// - Parameters:
    ///   - payload: the payload of the request: any sequence of bytes, such as an array or `Data`.
    ///   - topic: the topic that the request is published to.
    ///   - qos: the QoS of the request. Default: 1.
    ///   - timeout: from the call to the response. Default: nil, the configuration's
    ///     ``MQTTConfiguration/requestTimeout``. A request that has not been sent until then is never sent.
    ///   - properties: response topic and correlation data are set here, and a Message Expiry Interval unless there is one: what
    ///     is left of the timeout, rounded up to seconds. With a session store a request that has not been sent when the
    ///     process ends is sent by the next process until it expires.
    /// - Throws: ``MQTTError``; ``MQTTError/Code/timedOut`` without a response in time, ``MQTTError/Code/refused`` with the
    ///   server's `reasonCode` if it refuses the request or reports that no client has subscribed to the topic.
    public nonisolated(nonsending) func request(
        _ payload: some Sequence<UInt8>, to topic: String, qos: QoS = .atLeastOnce, timeout: Duration? = nil,
        properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTMessage {
        guard speaksProperties else {
            throw .invalidRequest(
                "Before MQTT 5.0 a request cannot name its response topic. Set version to .v5_0, or pass a responseTopic."
            )
        }
        let (core, payload, timeout) = (core, Array(payload), timeout ?? core.settings.requestTimeout)
        var random = core.loop.random
        let correlation = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &random) }
        let deadline = core.loop.now.advanced(byNanoseconds: timeout.inNanoseconds)
        let answer = try await replies.reply(
            correlation: correlation, within: timeout,
            late: core.lateReply(
                "No response to the request to '\(topic)' arrived within \(timeout).",
                advice: "Check that a client answers there and copies the Correlation Data, or raise the timeout.")
        ) {
            (address) async throws(MQTTError) in
            var properties = properties
            properties.responseTopic = address
            properties.correlationData = correlation
            let sent = try await self.publish(
                request: MQTTOutgoingMessage(payload, to: topic, qos: qos, properties: properties), until: deadline)
            guard sent.reasonCode == .noMatchingSubscribers else { return }
            throw MQTTError(
                .refused,
                "The server delivered the request to no client, because none has subscribed to '\(topic)'. Start the client that responds, or check the topic.",
                reasonCode: sent.reasonCode, properties: sent.properties)
        }
        return core.received(answer)
    }

    /// Publishes a request that is text and returns the first response to it; the parameters are those of
    /// bytes.
    public nonisolated(nonsending) func request(
        _ text: String, to topic: String, qos: QoS = .atLeastOnce, timeout: Duration? = nil,
        properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTMessage {
        try await request(Array(text.utf8), to: topic, qos: qos, timeout: timeout, properties: properties)
    }

    /// Publishes a request of which the topics tell the responses apart, with any version of MQTT, and returns the first
    /// response to it.
    ///
    ///     try await client.request("{}", to: "rpc/request/{id}", responseTopic: "rpc/response/{id}")
    ///
    /// The response topic is subscribed for this request only. Messages that the server had retained there do not count
    /// as responses. A server that reports no subscriber does not end the request, because the server itself may
    /// respond, as AWS IoT Core does for its shadows.
    /// - Parameters:
    ///   - payload: the payload of the request: any sequence of bytes, such as an array or `Data`.
    ///   - topic: the topic that the request is published to. Each `{id}` in it is replaced by a number that is random.
    ///   - responseTopic: the topic that the response comes to, with the same number in place of each `{id}`. Without one the
    ///     first message that is published there is the response.
    ///   - qos: the QoS of the request, and the highest one of the response. Default: 1.
    ///   - timeout: from the call to the response. Default: nil, the configuration's ``MQTTConfiguration/requestTimeout``. The
    ///     request expires with it: see ``MQTTOutgoingMessage/timeToLive``.
    /// - Throws: ``MQTTError``; ``MQTTError/Code/timedOut`` without a response in time.
    public nonisolated(nonsending) func request(
        _ payload: some Sequence<UInt8>, to topic: String, responseTopic: String, qos: QoS = .atLeastOnce,
        timeout: Duration? = nil
    ) async throws(MQTTError) -> MQTTMessage {
        var random = core.loop.random
        let id = "\(UInt32.random(in: 1 ... .max, using: &random))"
        let (topic, responseTopic) = (topic.replacing("{id}", with: id), responseTopic.replacing("{id}", with: id))
        let (core, payload, timeout) = (core, Array(payload), timeout ?? core.settings.requestTimeout)
        let deadline = core.loop.now.advanced(byNanoseconds: timeout.inNanoseconds)
        do {
            return try await TimedCall.run(
                until: deadline, on: core.loop,
                late: MQTTError(
                    .timedOut,
                    core.lateReply(
                        "No response to the request to '\(topic)' arrived at '\(responseTopic)' within \(timeout).",
                        advice: "Check that a client answers there, or raise the timeout."))
            ) {
                let responses = try await self.subscribe(to: responseTopic, qos: qos)
                try await self.publish(request: MQTTOutgoingMessage(payload, to: topic, qos: qos), until: deadline)
                for try await response in responses where !response.isRetained { return response }
                throw MQTTError.disconnectedByUser
            }
        } catch let error as MQTTError {
            throw error
        } catch {
            throw .cancelledWait
        }
    }

    /// Publishes a request that is text, of which the topics tell the responses apart; the parameters are those of bytes.
    public nonisolated(nonsending) func request(
        _ text: String, to topic: String, responseTopic: String, qos: QoS = .atLeastOnce,
        timeout: Duration? = nil
    ) async throws(MQTTError) -> MQTTMessage {
        try await request(Array(text.utf8), to: topic, responseTopic: responseTopic, qos: qos, timeout: timeout)
    }

    /// Publishes a request. Withdraws it if its timeout passes or the task is cancelled before it was sent.
    ///
    /// It expires with its deadline, unless it has an expiry of its own: this process may end before it can take the request
    /// back from the session store, and the server may keep it for a client that is away.
    @discardableResult
    private nonisolated(nonsending) func publish(
        request: MQTTOutgoingMessage, until deadline: Int64
    ) async throws(MQTTError) -> MQTTPublishResult {
        var request = request
        if request.properties.messageExpiryInterval == nil {
            // The second that has begun counts, so that the caller gets the error of the timeout.
            let seconds = max(0, deadline - core.loop.now) / 1_000_000_000 + 1
            request.properties.messageExpiryInterval = UInt32(clamping: seconds)
        }
        let sent = try await publishForConfirmation(request)
        do throws(MQTTError) {
            return try await sent.confirmed()
        } catch {
            if Task.isCancelled { sent.withdraw() }
            throw error
        }
    }

    /// Publishes any sequence of bytes as the response to a request.
    ///
    /// A request that was received with its value is `request.message`.
    /// - Throws: ``MQTTError``; ``MQTTError/Code/invalidRequest`` if the message names no response topic.
    @discardableResult
    public nonisolated(nonsending) func reply(
        to request: MQTTMessage, with payload: some Sequence<UInt8>, qos: QoS = .atLeastOnce,
        properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTReasonCode {
        let asked = request.properties
        guard let topic = asked.responseTopic else {
            throw .invalidRequest(
                "The message to '\(request.topic)' has no response topic to reply to. Have its sender use request().")
        }
        var properties = properties
        properties.correlationData = asked.correlationData
        return try await publish(payload, to: topic, qos: qos, properties: properties)
    }

    /// Publishes text as the response to a request; otherwise as for bytes.
    @discardableResult
    public nonisolated(nonsending) func reply(
        to request: MQTTMessage, with text: String, qos: QoS = .atLeastOnce, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTReasonCode {
        try await reply(to: request, with: Array(text.utf8), qos: qos, properties: properties)
    }

    /// Publishes a value as the response to a request; its MIME type is the content type, unless `properties` have
    /// another.
    ///
    /// - Parameters:
    ///   - request: the request; one that was received with its value is `request.message`.
    ///   - value: the response.
    ///   - coding: the format of the response. Default: JSON.
    ///   - qos: the QoS of the response. Default: 1.
    ///   - properties: of PUBLISH; the correlation data are set here.
    /// - Throws: ``MQTTError``; ``MQTTError/Code/invalidRequest`` if the message names no response topic, or if the value
    ///   cannot be encoded.
    @discardableResult
    @_disfavoredOverload
    public nonisolated(nonsending) func reply(
        to request: MQTTMessage, with value: some Encodable & Sendable, as coding: some PayloadCoding = .json,
        qos: QoS = .atLeastOnce, properties: MQTTProperties = []
    ) async throws(MQTTError) -> MQTTReasonCode {
        let payload = try coding.payload(of: value, throwing: MQTTError.self)
        return try await reply(
            to: request, with: payload, qos: qos, properties: properties.declaring(coding.contentType))
    }

    nonisolated var speaksProperties: Bool { core.link.perform { $0.engine.version.hasProperties } }

    private nonisolated var replies: MQTTClientCore.Replies {
        get throws(MQTTError) { try core.replies(knownReplies) }
    }
}
