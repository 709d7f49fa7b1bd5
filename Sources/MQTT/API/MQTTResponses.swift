import MQTTCore
import Messaging
import Synchronization
import Transport

/// The requests of a client that wait for their responses, and the subscription that brings them.
final class MQTTResponses: Sendable {
    private typealias Request = PendingCall<Result<MQTTMessage, MQTTError>>

    private struct State {
        /// Where responses come, and who hands them out; nil before the first request and after the client gave up.
        var receiver: Task<String, any Error>?
        var reader: Task<Void, Never>?
        /// By correlation data.
        var requests: [[UInt8]: Request] = [:]
        var count: UInt64 = 0
    }

    private let state = Lock(State())

    deinit {
        state.withLock { $0.reader }?.cancel()
    }

    nonisolated(nonsending) func request(
        _ payload: [UInt8], to topic: String, qos: QoS, timeout: Duration, properties: MQTTProperties,
        core: MQTTClientCore
    ) async throws(MQTTError) -> MQTTMessage {
        let client = MQTTClient(core: core, responses: self)
        let responseTopic: String
        do {
            responseTopic = try await prepare(core).value
        } catch {
            throw error as? MQTTError ?? .cancelledWait
        }
        let request = Request()
        let correlation = state.withLock { state in
            state.count += 1
            let correlation = withUnsafeBytes(of: (state.count.bigEndian, UInt64.random(in: .min ... .max))) {
                Array($0)
            }
            state.requests[correlation] = request
            return correlation
        }
        var properties = properties
        properties.responseTopic = responseTopic
        properties.correlationData = correlation
        let timer = Task {
            try await Task.sleep(for: timeout)
            request.end(
                .failure(MQTTError(.timedOut, "no response to the request to '\(topic)' within \(timeout)")))
        }
        defer {
            timer.cancel()
            state.withLock { _ = $0.requests.removeValue(forKey: correlation) }
        }
        try await client.publish(payload, to: topic, qos: qos, properties: properties)
        // The response, or the end of patience, may have come before.
        let result = await request.answer {
        } onCancel: {
            request.end(.failure(.cancelledWait))
        }
        return try result.get()
    }

    /// The topic of responses, once it is subscribed; one subscription for all callers.
    private func prepare(_ core: MQTTClientCore) -> Task<String, any Error> {
        state.withLock { state in
            if let receiver = state.receiver { return receiver }
            let receiver = Task { [weak self] in
                do throws(MQTTError) {
                    return try await Self.subscribe(core, self)
                } catch {
                    self?.state.withLock { $0.receiver = nil }
                    throw error
                }
            }
            state.receiver = receiver
            return receiver
        }
    }

    private static func subscribe(
        _ core: MQTTClientCore, _ responses: MQTTResponses?
    ) async throws(MQTTError) -> String {
        guard let responses else { throw .disconnectedByUser }
        let id = core.link.perform { $0.engine.configuration.clientID }
        // Wildcards may be in an identifier, but not in a topic.
        let name = String(id.map { "+#/$".contains($0) ? "-" : $0 })
        let topic = "responses/\(name)/\(UInt64.random(in: .min ... .max))"
        let messages = try await MQTTClient(core: core, responses: responses).subscribe(to: topic, qos: .atLeastOnce)
        let reader = Task { [weak responses] in
            do throws(MQTTError) {
                for try await message in messages { responses?.received(message) }
                responses?.ended(.disconnectedByUser)
            } catch {
                responses?.ended(error)
            }
        }
        responses.state.withLock { $0.reader = reader }
        return topic
    }

    private func received(_ message: MQTTMessage) {
        // A response that nobody waits for any more is dropped.
        guard let correlation = message.properties.correlationData else { return }
        state.withLock { $0.requests[correlation] }?.end(.success(message))
    }

    /// The subscription is over: the next request makes another one.
    private func ended(_ error: MQTTError) {
        let requests = state.withLock { state in
            state.receiver = nil
            state.reader = nil
            return Array(state.requests.values)
        }
        for request in requests { request.end(.failure(error)) }
    }
}
