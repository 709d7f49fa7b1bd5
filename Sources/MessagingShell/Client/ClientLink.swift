import MessagingWire
package import Transport

/// The link of a client, as far as it does not depend on the protocol. ``ClientCore`` cannot name `Link` itself, because an
/// associated type, as its machine would be, has to be copyable.
package protocol ClientLink: AnyObject, Sendable {
    associatedtype Core: AnyObject

    var tap: (any LinkTap)? { get }
    var traffic: LinkTraffic { get }
    var sentCount: Int { get }
    var backlog: ClientBacklog { get }
    var pauseReason: String? { get }
    var isEnding: Bool { get }
    func attachNow(_ stream: any ByteStream, layers: LayerStack?)
    func dropConnection()
    /// Makes the machine know its client.
    func setCore(_ core: Core)
    /// Nothing is read because of the reader of this subscription.
    func pauseReading(for subscription: String)
    /// Whether messages whose acknowledgements are withheld keep others from being acknowledged or sent.
    var withheldHoldOthersUp: Bool { get }
    /// Ends the waits for room in the outbox, if the server takes nothing.
    func endOutboxWaits(because subscription: String)
    /// A receiver has room again.
    ///
    /// - Parameter slowSubscription: the subscription because of which nothing is read still; nil if there is none.
    func receiverHasRoom(slowSubscription: String?)
}

extension Link: ClientLink where Machine: ClientMachine, Machine: ~Copyable {
    package func setCore(_ core: Machine.Core) {
        perform { $0.core = core }
    }

    package var sentCount: Int { perform { $0.sentCount } }
    package var backlog: ClientBacklog { perform { $0.backlog } }
    package var pauseReason: String? { perform { $0.pauseReason } }

    package var withheldHoldOthersUp: Bool { perform { $0.withheldHoldOthersUp } }

    package func pauseReading(for subscription: String) {
        let now = loop.now
        perform { $0.setSlowSubscription(Shared(subscription), at: now) }
    }

    package func receiverHasRoom(slowSubscription: String?) {
        let now = loop.now
        perform { machine in
            machine.acknowledgeWithheld(at: now)
            machine.setSlowSubscription(slowSubscription.map { Shared($0) }, at: now)
        }
    }
}
