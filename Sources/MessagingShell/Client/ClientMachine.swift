package import MessagingWire
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
    /// The subscription whose messages reached a receiver's bound, so that nothing is read; nil while none does.
    var slowSubscription: Shared<String>? { get }
    mutating func setSlowSubscription(_ name: Shared<String>?, at now: Int64)
    /// Whether messages whose acknowledgements are withheld keep others from being acknowledged or sent.
    var withheldHoldOthersUp: Bool { get }
    /// A receiver has room again: acknowledges the messages that waited for it.
    mutating func acknowledgeWithheld(at now: Int64)
}

extension ClientMachine where Self: ~Copyable {
    package mutating func acknowledgeWithheld(at now: Int64) {}
    package var withheldHoldOthersUp: Bool { false }

    /// Why nothing is read while too much waits for the server.
    package static var serverIsSlow: String {
        "because more than twice maximumOutboxBytes wait for the server to take them, so that reading is paused. Check the network and the server, or raise maximumOutboxBytes."
    }

    /// Why nothing is read while a receiver's bound is reached.
    package static func isSlow(_ subscription: String) -> String {
        "because the buffer of the subscription to '\(subscription)' is full and reading is paused (event readingPaused). Read it faster, or await answers in another task than the one that reads, or with another client; or raise the bounds of its BufferPolicy and maximumUnreadBytes."
    }
}
