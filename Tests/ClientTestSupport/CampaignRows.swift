package import MessagingShell
import Synchronization
package import TestSupport
import Transport

/// A client in a cancellation campaign, with the subscriptions that its calls leave for other calls.
package protocol CampaignSubject: Sendable {
    associatedtype Client: MessagingClient
    associatedtype Subscription: MessageSubscription

    var client: Client { get }
    var subscriptions: KeptSubscriptions<Subscription> { get }
}

/// The last subscriptions that the calls of a campaign have made.
package final class KeptSubscriptions<Subscription: Sendable>: Sendable {
    private let known = Lock<[Subscription]>([])

    package init() {}
}

extension CampaignSubject {
    package func keep(_ subscription: Subscription) { subscriptions.keep(subscription) }

    package func subscription(_ random: inout SeededGenerator) throws -> Subscription {
        guard let one = subscriptions.any(&random) else { throw CancellationError() }
        return one
    }
}

extension KeptSubscriptions {
    fileprivate func keep(_ subscription: Subscription) {
        known.withLock { known in
            known.append(subscription)
            if known.count > 4 { known.removeFirst() }
        }
    }

    fileprivate func any(_ random: inout SeededGenerator) -> Subscription? {
        known.withLock { $0.randomElement(using: &random) }
    }
}

extension CancellationCampaign.Row where Subject: CampaignSubject {
    /// The calls that the clients of all protocols have in common, without those of ``commonSeldom``.
    package static var commonOften: [Self] {
        [
            Self("connect", "connect() []", body: { subject, _ in try await subject.client.connect() }),
            Self("start", "start() []", body: { subject, _ in await subject.client.start() }),
            Self(
                "unsubscribe", "unsubscribe() []",
                body: { subject, random in try await subject.subscription(&random).unsubscribe() }),
            Self(
                "next batch",
                body: { subject, random in
                    var batches = try subject.subscription(&random).batches.makeAsyncIterator()
                    for _ in 0..<3 { _ = try await batches.next() }
                }
            ),
            Self(
                "withExecutor", "withExecutor(_:) [@concurrent @Sendable () async throws(BodyFailure) -> Result]",
                body: { subject, _ in
                    let client = subject.client
                    try await client.withExecutor { try await client.connect() }
                }
            ),
            Self("events", body: { subject, _ in for await _ in subject.client.events.prefix(3) {} }),
            Self("states", body: { subject, _ in for await _ in subject.client.states.prefix(3) {} }),
            Self("inspect", body: { subject, _ in for await _ in subject.client.inspect().prefix(3) {} }),
        ]
    }

    /// Those of them that end a connection.
    package static var commonSeldom: [Self] {
        [
            Self("reconnect", "reconnect() []", body: { subject, _ in try await subject.client.reconnect() }),
            Self("disconnect", "disconnect() []", body: { subject, _ in await subject.client.disconnect() }),
            Self("run", "run() []", body: { subject, _ in try await subject.client.run() }),
            Self(
                "suspend", "suspend() []",
                body: { subject, _ in
                    await subject.client.suspend()
                    subject.client.resume()
                }
            ),
        ]
    }
}
