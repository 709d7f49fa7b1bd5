import Synchronization
import Transport

/// Values that were sent and are not confirmed by the broker yet, in their order.
package final class Unconfirmed<Value: Sendable>: Sendable {
    private struct Entry {
        let number: Int
        let value: Value
        var connection: Int
        var timeouts = 0
    }

    private struct Caller {
        let most: Int
        let call: PendingCall<Void>
    }

    private struct State {
        var entries: [Entry] = []
        var callers: [Caller] = []
        var connection = 1
        var nextNumber = 0

        func index(of number: Int) -> Int? { entries.firstIndex { $0.number == number } }

        mutating func takeReady() -> [Caller] {
            let ready = callers.filter { $0.most >= entries.count }
            if !ready.isEmpty { callers.removeAll { $0.most >= entries.count } }
            return ready
        }
    }

    private let state = Mutex(State())

    package init() {}

    package var count: Int { state.withLock { $0.entries.count } }

    /// A value is about to be sent over the present connection.
    ///
    /// - Returns: The number by which the other calls know it.
    package func add(_ value: Value) -> Int {
        state.withLock { state in
            defer { state.nextNumber += 1 }
            state.entries.append(Entry(number: state.nextNumber, value: value, connection: state.connection))
            return state.nextNumber
        }
    }

    /// The value was confirmed, or it will not be sent again. False if it is not here.
    @discardableResult
    package func remove(_ number: Int) -> Bool {
        let (wasThere, ready) = state.withLock { state -> (Bool, [Caller]) in
            guard let index = state.index(of: number) else { return (false, []) }
            state.entries.remove(at: index)
            return (true, state.takeReady())
        }
        for caller in ready { caller.call.end(()) }
        return wasThere
    }

    /// The connection ended before the confirmation came.
    ///
    /// - Returns: The value if it has to be sent again at once, because there is a newer connection already; nil if
    ///   `reconnected()` will return it.
    package func lost(_ number: Int) -> Value? {
        state.withLock { state in
            guard let index = state.index(of: number), state.entries[index].connection != state.connection else {
                return nil
            }
            state.entries[index].connection = state.connection
            return state.entries[index].value
        }
    }

    /// No confirmation came in time over a connection that still exists.
    ///
    /// - Returns: The value to be sent again; nil after the second time, when it is best left alone.
    package func timedOut(_ number: Int) -> Value? {
        state.withLock { state in
            guard let index = state.index(of: number) else { return nil }
            state.entries[index].timeouts += 1
            return state.entries[index].timeouts < 2 ? state.entries[index].value : nil
        }
    }

    /// There is a new connection.
    ///
    /// - Returns: All that has to be sent over it again, in the order of the first time.
    package func reconnected() -> [(number: Int, value: Value)] {
        state.withLock { state in
            state.connection += 1
            for index in state.entries.indices { state.entries[index].connection = state.connection }
            return state.entries.map { ($0.number, $0.value) }
        }
    }

    /// Waits until `most` values or fewer are unconfirmed, or the task is cancelled.
    package func untilAtMost(_ most: Int) async {
        let call = PendingCall<Void>()
        let isReady = state.withLock { state in
            guard state.entries.count > most else { return true }
            // Calls that were cancelled are not needed any more.
            state.callers.removeAll(where: \.call.isOver)
            state.callers.append(Caller(most: most, call: call))
            return false
        }
        if !isReady { await call.answer { call.end(()) } }
    }
}
