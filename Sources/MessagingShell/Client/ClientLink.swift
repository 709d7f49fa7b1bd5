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
    /// The bound of a subscription's buffer, or with its messages that of the connection, is reached. Returns false if reading
    /// was paused for a receiver already.
    func pauseReading(for subscription: String) -> Bool
    /// Whether messages whose acknowledgements are withheld keep others from being acknowledged or sent.
    var withheldHoldOthersUp: Bool { get }
    /// A receiver has room again.
    ///
    /// - Parameter resumes: whether no other receiver's bound is reached.
    func receiverHasRoom(resumes: Bool)
}

extension Link: ClientLink where Machine: ClientMachine, Machine: ~Copyable {
    package func setCore(_ core: Machine.Core) {
        perform { $0.core = core }
    }

    package var sentCount: Int { perform { $0.sentCount } }
    package var backlog: ClientBacklog { perform { $0.backlog } }
    package var pauseReason: String? { perform { $0.pauseReason } }

    package var withheldHoldOthersUp: Bool { perform { $0.withheldHoldOthersUp } }

    package func pauseReading(for subscription: String) -> Bool {
        let now = loop.now
        return perform { machine in
            if machine.slowSubscription != nil { return false }
            machine.setSlowSubscription(Shared(subscription), at: now)
            return true
        }
    }

    package func receiverHasRoom(resumes: Bool) {
        let now = loop.now
        perform { machine in
            machine.acknowledgeWithheld(at: now)
            if resumes { machine.setSlowSubscription(nil, at: now) }
        }
    }
}
