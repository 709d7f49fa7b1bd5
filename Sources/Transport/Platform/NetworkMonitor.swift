import Synchronization

#if canImport(Network)
    import Dispatch
    import Network
#endif

/// Reports whether this device has a network, and when the device moves to another one.
///
/// Apple's systems feed ``system``. Other systems have none; tests feed one of their own.
package final class NetworkMonitor: Sendable {
    /// What the system knows of the network.
    package struct Path: Sendable, Equatable {
        package var isAvailable: Bool
        /// The names of the interfaces in use, the preferred one first.
        package var interfaces: [String]

        package init(isAvailable: Bool, interfaces: [String] = []) {
            self.isAvailable = isAvailable
            self.interfaces = interfaces
        }
    }

    /// Ends with its last reference.
    package final class Observation: Sendable {
        private let monitor: NetworkMonitor
        private let number: UInt64

        fileprivate init(_ monitor: NetworkMonitor, _ number: UInt64) {
            self.monitor = monitor
            self.number = number
        }

        deinit { monitor.remove(number) }
    }

    private struct Observer {
        let call: @Sendable () -> Void
    }

    private struct State {
        /// Nil until the system has reported one.
        var path: Path?
        var observers: [UInt64: Observer] = [:]
        var lastNumber: UInt64 = 0
    }

    private let state = Lock(State())
    /// The system's own monitor, which lives as long as this one.
    private let source: (any AnyObject & Sendable)?

    package init(source: (any AnyObject & Sendable)? = nil) {
        self.source = source
    }

    /// The monitor of the system that this process runs on; nil where the system has none.
    package static let system = systemMonitor

    #if !canImport(Network)
        private static var systemMonitor: NetworkMonitor? { nil }
    #endif

    /// Whether the device has a network, as far as is known; on any thread.
    package var isAvailable: Bool { state.withLock { $0.path?.isAvailable ?? true } }

    /// The system reports the present path. Observers are called when the network comes, goes or has other interfaces.
    package func update(_ path: Path) {
        let observers = state.withLock { state -> [Observer] in
            let before = state.path
            state.path = path
            let wasAvailable = before?.isAvailable ?? true
            let hasMoved = path.isAvailable && before.map { $0.interfaces != path.interfaces } ?? false
            guard wasAvailable != path.isAvailable || hasMoved else { return [] }
            return state.observers.sorted { $0.key < $1.key }.map(\.value)
        }
        for observer in observers { observer.call() }
    }

    /// Calls `change` after each change, on a thread of the system, until the observation is released; at once if there is
    /// no network. `isAvailable` then has the present value.
    package func observe(_ change: @escaping @Sendable () -> Void) -> Observation {
        let (number, isAvailable) = state.withLock { state in
            state.lastNumber += 1
            state.observers[state.lastNumber] = Observer(call: change)
            return (state.lastNumber, state.path?.isAvailable ?? true)
        }
        if !isAvailable { change() }
        return Observation(self, number)
    }

    private func remove(_ number: UInt64) {
        // Released outside the lock, with what its closure holds.
        _ = state.withLock { $0.observers.removeValue(forKey: number) }
    }
}

#if canImport(Network)
    extension NetworkMonitor {
        /// Fed by `NWPathMonitor`, for the life of the process.
        static var systemMonitor: NetworkMonitor? {
            let source = Source()
            let monitor = NetworkMonitor(source: source)
            source.paths.pathUpdateHandler = { [weak monitor] path in
                // A VPN that connects on demand can be had, unlike no path at all.
                monitor?.update(
                    Path(
                        isAvailable: path.status != .unsatisfied,
                        interfaces: path.availableInterfaces.map { $0.name }))
            }
            source.paths.start(queue: DispatchQueue(label: "messaging-path"))
            return monitor
        }

        private final class Source: @unchecked Sendable {
            // Sendable because nothing touches it after the start.
            let paths = NWPathMonitor()
        }
    }
#endif
