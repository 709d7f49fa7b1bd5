package import Transport

/// The engine of a client, and what changes together with it under the link's lock.
package protocol ClientMachine: LinkMachine, ~Copyable {
    associatedtype Core: AnyObject

    /// The client; weak, since the link outlives it.
    var core: Core? { get set }
    /// Messages that were written for a connection.
    var sentCount: Int { get }
    /// What waits under the link's lock.
    var backlog: ClientBacklog { get }
    /// Pauses reading because a receiver's bound is reached, or ends that pause.
    mutating func setReceiversFull(_ isFull: Bool, at now: Int64)
    /// A receiver has room again: acknowledges the messages that waited for it.
    mutating func acknowledgeWithheld(at now: Int64)
}

extension ClientMachine where Self: ~Copyable {
    package mutating func acknowledgeWithheld(at now: Int64) {}
}

/// The link of a client, as far as it does not depend on the protocol.
package protocol ClientLink: AnyObject, Sendable {
    associatedtype Core: AnyObject

    var tap: (any LinkTap)? { get }
    var traffic: LinkTraffic { get }
    var sentCount: Int { get }
    var backlog: ClientBacklog { get }
    var isEnding: Bool { get }
    func attachNow(_ stream: any ByteStream, layers: LayerStack?)
    func dropConnection()
    /// Makes the machine know its client.
    func setCore(_ core: Core)
    /// A receiver's bound is reached.
    func pauseReading()
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

    package func pauseReading() {
        let now = loop.now
        perform { $0.setReceiversFull(true, at: now) }
    }

    package func receiverHasRoom(resumes: Bool) {
        let now = loop.now
        perform { machine in
            machine.acknowledgeWithheld(at: now)
            if resumes { machine.setReceiversFull(false, at: now) }
        }
    }
}
