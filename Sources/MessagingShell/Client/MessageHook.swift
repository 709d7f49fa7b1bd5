/// Sees each message of a client: it may change what is sent, learns how that ended, and may change what is received.
///
/// For trace context, CloudEvents, compression and metrics. The closures run in the task that calls the client, and hold it up
/// for as long as they run.
public struct MessageHook<Outgoing: Sendable, Incoming: Sendable, Failure: Error>: Sendable {
    /// Called with the outcome of a call that sends a message.
    public typealias Completion = @Sendable (Result<Void, Failure>) -> Void

    /// Called before a message is handed over, in the order of the calls of a task. It may change the message, and returns what
    /// is called when the call that sends it returns or throws; nil for nothing.
    public var sending: @Sendable (inout Outgoing) -> Completion?
    /// Called when a receiver takes a message, or a request has its answer. It may replace the message; in `batches` it only
    /// sees it.
    public var receiving: @Sendable (inout Incoming) -> Void

    /// Makes a hook of one closure or both.
    public init(
        sending: @escaping @Sendable (inout Outgoing) -> Completion? = { _ in nil },
        receiving: @escaping @Sendable (inout Incoming) -> Void = { _ in }
    ) {
        self.sending = sending
        self.receiving = receiving
    }

    /// A hook that calls this one and then another, and for what is received the other one first: each undoes what it has done.
    public func followed(by other: MessageHook) -> MessageHook {
        MessageHook { message in
            let first = sending(&message)
            let second = other.sending(&message)
            return { outcome in
                second?(outcome)
                first?(outcome)
            }
        } receiving: { message in
            other.receiving(&message)
            receiving(&message)
        }
    }

    /// Sends a message as the hook changes it; on the caller's task.
    package nonisolated(nonsending) func send<Answer>(
        _ message: Outgoing, _ body: (Outgoing) async throws(Failure) -> Answer
    ) async throws(Failure) -> Answer {
        var message = message
        let completion = sending(&message)
        do throws(Failure) {
            let answer = try await body(message)
            completion?(.success(()))
            return answer
        } catch {
            completion?(.failure(error))
            throw error
        }
    }

    /// The same for many messages, each of which has a result of its own.
    package nonisolated(nonsending) func send<Answer>(
        _ messages: [Outgoing], _ body: ([Outgoing]) async -> MessageResults<Answer, Failure>
    ) async -> MessageResults<Answer, Failure> {
        let (messages, completions) = changed(messages)
        let results = await body(messages)
        for (completion, result) in zip(completions, results) { completion?(result.map { _ in }) }
        return results
    }

    /// The same for many messages that are sent together, or fail together.
    package nonisolated(nonsending) func sendTogether(
        _ messages: [Outgoing], _ body: ([Outgoing]) async throws(Failure) -> Void
    ) async throws(Failure) {
        let (messages, completions) = changed(messages)
        do throws(Failure) {
            try await body(messages)
        } catch {
            for completion in completions { completion?(.failure(error)) }
            throw error
        }
        for completion in completions { completion?(.success(())) }
    }

    private func changed(_ messages: [Outgoing]) -> ([Outgoing], [Completion?]) {
        var messages = messages
        var completions: [Completion?] = []
        for index in messages.indices { completions.append(sending(&messages[index])) }
        return (messages, completions)
    }
}
