import Synchronization
import Transport

/// What a client tells whoever listens: where it stands, and what happens to it.
///
/// Mostly nobody listens. What sends is made for the first who does, and until then only the present state is kept.
package struct ClientNews<State: Sendable, Event: Sendable>: ~Copyable, Sendable {
    // Not private: the compiler refers to it from the modules of the clients, where such a value lies in an object.
    package struct Content {
        fileprivate var state: State
        fileprivate var states: Broadcaster<State>?
        fileprivate var events: Broadcaster<Event>?
    }

    private let content: Lock<Content>

    package init(_ state: State) {
        content = Lock(Content(state: state))
    }

    /// Where the client stands now.
    package var state: State { content.withLock { $0.state } }

    /// Where it stands, from now on; starts with the present state.
    package var states: Updates<State> {
        content.withLock { content in
            if let states = content.states { return states.updates }
            let states = Broadcaster(capacity: 16, initial: content.state, replaysLatest: true)
            content.states = states
            return states.updates
        }
    }

    /// What happens, from now on.
    package var events: Updates<Event> {
        content.withLock { content in
            if let events = content.events { return events.updates }
            let events = Broadcaster<Event>(capacity: 1024)
            content.events = events
            return events.updates
        }
    }

    /// One at a time: on the loop's thread.
    package func stateChanged(to state: State) {
        let states = content.withLock { content in
            content.state = state
            return content.states
        }
        states?.send(state)
    }

    package func tell(_ event: Event) {
        content.withLock { $0.events }?.send(event)
    }

    /// The client is gone: sequences end.
    package func finish() {
        let (states, events) = content.withLock { ($0.states, $0.events) }
        states?.finish()
        events?.finish()
    }
}
