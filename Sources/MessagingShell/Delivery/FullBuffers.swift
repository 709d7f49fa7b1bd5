import MessagingWire
package import Transport

/// What waits for the reader of a full buffer.
@usableFromInline
package enum HeldUp: Sendable {
    /// Acknowledgements: the server sends no more than it may without them.
    case acknowledgements
    /// Everything that the server sends: nothing is read from the connection.
    case reading
}

/// The full buffers of a connection that hold something up, and whether their readers take messages. On the loop's thread.
package final class FullBuffers<Route: DeliveryRoute> {
    private struct Full {
        let route: Route
        var holdsUp: HeldUp
        /// The messages that the reader had taken when this was looked at.
        var taken: Int
    }

    private var buffers: [Full] = []
    /// Set while all subscriptions together hold too much: the messages that all readers had taken when this was looked at.
    private var takenByAll: Int?
    private let alarm: LoopAlarm
    private let interval: Int64

    /// - Parameters:
    ///   - interval: how long a reader may take nothing, in nanoseconds.
    ///   - look: called after each interval while anything is held up.
    package init(loop: EventLoop, interval: Int64, look: @escaping @Sendable () -> Void) {
        self.interval = interval
        alarm = LoopAlarm(loop: loop) { _ in look() }
    }

    /// Whether nothing is read.
    package var stopReading: Bool { takenByAll != nil || buffers.contains { $0.holdsUp == .reading } }

    /// A subscription has stored a batch that filled its buffer.
    package func add(_ route: Route, holdingUp: HeldUp) {
        if let index = buffers.firstIndex(where: { $0.route === route }) {
            if holdingUp == .reading { buffers[index].holdsUp = .reading }
        } else {
            buffers.append(Full(route: route, holdsUp: holdingUp, taken: route.takenCount))
        }
        watch()
    }

    /// All subscriptions together hold too much.
    package func connectionIsFull(_ routes: @autoclosure () -> [Route]) {
        if takenByAll == nil { takenByAll = Self.taken(by: routes()) }
        watch()
    }

    /// Removes the buffers that have room again.
    package func removeDrained(connectionIsFull: Bool) {
        buffers.removeAll { !$0.route.isFull }
        if !connectionIsFull { takenByAll = nil }
        if isEmpty { alarm.set(.max) }
    }

    package func removeAll() {
        (buffers, takenByAll) = ([], nil)
        alarm.set(.max)
    }

    /// The subscriptions whose readers have taken nothing for the interval: one that keeps the client from reading, and those
    /// that hold up acknowledgements only.
    package func standingStill(_ routes: @autoclosure () -> [Route]) -> (reading: Route?, acknowledgements: [Route]) {
        var reading: Route?
        var acknowledgements: [Route] = []
        for index in buffers.indices {
            let (full, taken) = (buffers[index], buffers[index].route.takenCount)
            buffers[index].taken = taken
            if taken != full.taken { continue }
            switch full.holdsUp {
            case .reading: reading = reading ?? full.route
            case .acknowledgements: acknowledgements.append(full.route)
            }
        }
        if let before = takenByAll {
            let routes = routes()
            takenByAll = Self.taken(by: routes)
            if takenByAll == before { reading = reading ?? routes.max { $0.waitingBytes < $1.waitingBytes } }
        }
        watch(anew: true)
        return (reading, acknowledgements)
    }

    private var isEmpty: Bool { buffers.isEmpty && takenByAll == nil }

    private func watch(anew: Bool = false) {
        if isEmpty || alarm.deadline != .max && !anew { return }
        alarm.set(alarm.loop.now.advanced(byNanoseconds: interval))
    }

    private static func taken(by routes: [Route]) -> Int { routes.reduce(0) { $0 + $1.takenCount } }
}
