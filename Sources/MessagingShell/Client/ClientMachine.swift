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
    /// Why nothing is read, and what to do about it: the end of a sentence. Nil while the client reads.
    var pauseReason: String? { get }
    /// Pauses reading because a receiver's bound is reached, or ends that pause.
    /// Returns whether that is a change.
    mutating func setReceiversFull(_ isFull: Bool, at now: Int64) -> Bool
    /// A receiver has room again: acknowledges the messages that waited for it.
    mutating func acknowledgeWithheld(at now: Int64)
}

extension ClientMachine where Self: ~Copyable {
    package mutating func acknowledgeWithheld(at now: Int64) {}

    /// Why nothing is read while too much waits for the server.
    package static var serverIsSlow: String {
        "because more than twice maximumOutboxBytes wait for the server to take them, so that reading is paused. Check the network and the server, or raise maximumOutboxBytes."
    }

    /// Why nothing is read while a receiver's bound is reached.
    package static var receiversAreSlow: String {
        "because the buffer of a subscription is full and reading is paused; the event readingPaused names it. Read that subscription faster, and do not await answers in the task that reads it."
    }
}
