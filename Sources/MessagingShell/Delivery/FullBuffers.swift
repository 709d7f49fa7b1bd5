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
    /// Progress is counted in messages that the reader has taken.
    private var buffers: [(route: Route, holdsUp: HeldUp, progress: CountedProgress)] = []
    /// Set while all subscriptions together hold too much.
    private var ofAll: CountedProgress?
    private let alarm: LoopAlarm
    private let interval: Int64

    /// - Parameters:
    ///   - interval: how long a reader may take nothing, in nanoseconds.
    ///   - look: called when that may be over.
    package init(loop: EventLoop, interval: Int64, look: @escaping @Sendable () -> Void) {
        // Not again and again without a pause.
        self.interval = max(1_000_000_000, interval)
        alarm = LoopAlarm(loop: loop) { _ in look() }
    }

    /// Whether nothing is read.
    package var stopReading: Bool { ofAll != nil || buffers.contains { $0.holdsUp == .reading } }

    /// The subscription because of which nothing is read: if all together hold too much, the one with the most.
    package func slowest(of routes: @autoclosure () -> [Route]) -> Route? {
        if let full = buffers.first(where: { $0.holdsUp == .reading }) { return full.route }
        return ofAll == nil ? nil : routes().max { $0.waitingBytes < $1.waitingBytes }
    }

    /// The buffer of a subscription is full, and something waits for its reader.
    package func add(_ route: Route, holdingUp: HeldUp) {
        let index = buffers.firstIndex { $0.route === route }
        if let index, holdingUp == .acknowledgements || buffers[index].holdsUp == .reading { return }
        if let index { buffers.remove(at: index) }
        buffers.append((route, holdingUp, CountedProgress(route.takenCount, at: alarm.loop.timeAwake)))
        watch()
    }

    /// All subscriptions together hold too much.
    package func connectionIsFull(_ routes: @autoclosure () -> [Route]) {
        guard ofAll == nil else { return }
        ofAll = CountedProgress(Self.taken(by: routes()), at: alarm.loop.timeAwake)
        watch()
    }

    /// Removes the buffers that have room again.
    package func removeDrained(connectionIsFull: Bool) {
        buffers.removeAll { !$0.route.isFull }
        if !connectionIsFull { ofAll = nil }
        watch()
    }

    package func removeAll() {
        (buffers, ofAll) = ([], nil)
        watch()
    }

    /// The subscriptions whose readers have taken nothing for the interval: one that keeps the client from reading, and those
    /// that hold up acknowledgements only.
    package func standingStill(_ routes: @autoclosure () -> [Route]) -> (reading: Route?, acknowledgements: [Route]) {
        let now = alarm.loop.timeAwake
        var reading: Route?
        var acknowledgements: [Route] = []
        for index in buffers.indices {
            let route = buffers[index].route
            guard buffers[index].progress.stands(route.takenCount, for: interval, at: now) else {
                continue
            }
            switch buffers[index].holdsUp {
            case .reading: reading = reading ?? route
            case .acknowledgements: acknowledgements.append(route)
            }
        }
        if ofAll != nil {
            let routes = routes()
            let stands = ofAll?.stands(Self.taken(by: routes), for: interval, at: now) == true
            if stands, reading == nil { reading = slowest(of: routes) }
        }
        watch()
        return (reading, acknowledgements)
    }

    /// Looks again when a reader may have taken nothing for the interval.
    private func watch() {
        let since = buffers.reduce(ofAll?.since ?? .max) { min($0, $1.progress.since) }
        let loop = alarm.loop
        alarm.set(since == .max ? .max : since.advanced(byNanoseconds: interval + loop.now - loop.timeAwake))
    }

    private static func taken(by routes: [Route]) -> Int { routes.reduce(0) { $0 + $1.takenCount } }
}
