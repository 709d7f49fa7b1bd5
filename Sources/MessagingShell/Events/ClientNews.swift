import MessagingWire
import Synchronization
import Transport

/// The state of a client's connection.
public enum ConnectionState<Failure: Error & Sendable>: Sendable {
    /// Not connected, and not connecting; with the reason unless the user disconnected.
    indirect case disconnected(Failure?)
    /// Opening a connection, or about to try the next server of a round. Attempts count from 1 since the last connection that
    /// held for ``ReconnectPolicy/stableAfter``; a round through all servers is one.
    case connecting(attempt: Int)
    /// The server has accepted the connection.
    case connected
    /// Waiting before the next attempt; `attempt` is the number of the one that failed or whose connection did not
    /// hold, or 1 after the loss of a connection that held.
    indirect case waiting(Duration, attempt: Int, after: Failure)
    /// The device has no network, so that no attempt is made until it has one. A `waiting` with the failure came before.
    /// Apple's systems only.
    case waitingForNetwork
    /// Disconnecting, or closing a connection that cannot be used any more.
    case disconnecting
    /// Suspended by the user. Pending operations stay pending until `resume()`.
    case suspended

    /// Whether messages can be sent and received.
    public var isConnected: Bool {
        if case .connected = self { true } else { false }
    }
}

extension ConnectionState: Equatable where Failure: Equatable {}

/// An event, and when it was reported.
public struct TimedEvent<Event: Sendable>: Sendable {
    /// Milliseconds since 1970, UTC.
    public let time: Int64
    /// What happened.
    public let event: Event
}

extension TimedEvent: CustomStringConvertible {
    public var description: String { "\(time) \(event)" }
}

/// The present state of a client, and the sequences of its states and events. States change on the loop's thread, so that
/// listeners get them in their order; everything else may be called on any thread.
///
/// Most clients have no listener: what sends is made for the first one, and until then only the present state is stored.
///
/// The values are beside the lock instead of in it: otherwise each call would look up at run time what depends on the type
/// of the client.
package final class ClientNews<State: Sendable, Event: Sendable>: @unchecked Sendable {
    // Sendable because the `var`s are touched with `lock` held only.
    private final class Listeners {
        var states: Broadcaster<State>?
        var events: Broadcaster<Event>?
        var timedEvents: Broadcaster<TimedEvent<Event>>?
    }

    /// The values that wait for a slow listener; the oldest are dropped first.
    private static var capacity: Int { 1024 }
    /// Nil before the first listener.
    @safe @exclusivity(unchecked) private var listeners: Listeners?
    @safe @exclusivity(unchecked) private var present: State
    // Last, where it needs no room of its own.
    private let lock = Lock(())

    package init(_ state: State) {
        present = state
    }

    /// The present state.
    package var state: State { lock.withLock { _ in present } }

    /// Called with the lock held.
    private func madeListeners() -> Listeners {
        let listeners = listeners ?? Listeners()
        self.listeners = listeners
        return listeners
    }

    /// The states from now on, the present one first.
    package var states: Updates<State> {
        lock.withLock { _ in
            let listeners = madeListeners()
            if let states = listeners.states { return states.updates }
            let states = Broadcaster(capacity: Self.capacity, initial: present, replaysLatest: true)
            listeners.states = states
            return states.updates
        }
    }

    /// The events from now on.
    package var events: Updates<Event> {
        lock.withLock { _ in
            let listeners = madeListeners()
            if let events = listeners.events { return events.updates }
            let events = Broadcaster<Event>(capacity: Self.capacity)
            listeners.events = events
            return events.updates
        }
    }

    /// The same with their times.
    package var timedEvents: Updates<TimedEvent<Event>> {
        lock.withLock { _ in
            let listeners = madeListeners()
            if let events = listeners.timedEvents { return events.updates }
            let events = Broadcaster<TimedEvent<Event>>(capacity: Self.capacity)
            listeners.timedEvents = events
            return events.updates
        }
    }

    /// Stores and sends a state; on the loop's thread.
    package func stateChanged(to state: State) {
        // At once: a listener that came in between would be given the state twice.
        let states = lock.withLock { _ in
            present = state
            return listeners?.states
        }
        states?.send(state)
    }

    /// Reports an event.
    package func tell(_ event: Event) {
        if lock.withLock({ _ in listeners != nil }) { send(event) }
    }

    private func send(_ event: Event) {
        let (events, timedEvents) = lock.withLock { _ in (listeners?.events, listeners?.timedEvents) }
        events?.send(event)
        timedEvents?.send(TimedEvent(time: WallClock.milliseconds, event: event))
    }

    /// The client is gone: sequences end.
    package func finish() {
        // Called when the client is released: no other call is under way.
        listeners?.states?.finish()
        listeners?.events?.finish()
        listeners?.timedEvents?.finish()
    }
}

extension ConnectionState: CustomStringConvertible {
    /// The state, with what belongs to it: `waiting 0.5 seconds after attempt 1: …`.
    public var description: String {
        switch self {
        case .disconnected(nil): "disconnected"
        case .disconnected(let failure?): "disconnected: \(OneLine.text("\(failure)"))"
        case .connecting(let attempt): "connecting, attempt \(attempt)"
        case .connected: "connected"
        case .waiting(let delay, let attempt, let failure):
            "waiting \(OneLine.duration(delay)) after attempt \(attempt): \(OneLine.text("\(failure)"))"
        case .waitingForNetwork: "waiting for a network"
        case .disconnecting: "disconnecting"
        case .suspended: "suspended"
        }
    }
}
