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
    /// A receiver's bound is reached. Returns false if reading was paused already.
    func pauseReading() -> Bool
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

    package func pauseReading() -> Bool {
        let now = loop.now
        return perform { $0.setReceiversFull(true, at: now) }
    }

    package func receiverHasRoom(resumes: Bool) {
        let now = loop.now
        perform { machine in
            machine.acknowledgeWithheld(at: now)
            if resumes { _ = machine.setReceiversFull(false, at: now) }
        }
    }
}
