// swift-format-ignore-file: AlwaysUseLowerCamelCase, TypeNamesShouldBeCapitalized

import Dispatch
import Synchronization

/// The network that the fake connections and monitors live in, and what goes wrong with it. For tests.
package enum FakeNetwork {
    package struct Faults: Sendable {
        /// Whether a TLS failure is reported as `.waiting`, as Apple's systems do in some versions, and not `.failed`.
        package var reportsTLSFailuresAsWaiting = false
        /// How fast connections pass on what is sent, by the server's port; all others do so at once. Nothing of a send leaves
        /// before the time for all of it is over.
        package var bytesPerSecond: [UInt16: Int] = [:]
        package init() {}
    }

    /// What connections have done since the start of the process.
    package struct Counts: Sendable {
        package var connections = 0
        /// By the port of the server.
        package var resumedSessions: [UInt16: Int] = [:]
        package var mostUnsentBytes = 0
        package var cancelled = 0
        /// Of the last connection to each port.
        package var parameters: [UInt16: NWParameters] = [:]
    }

    private struct State {
        var path = NWPath(status: .satisfied, unsatisfiedReason: .notAvailable, availableInterfaces: [])
        var faults = Faults()
        var interfaces: [String] = []
        var counts = Counts()
        var watchers: [ObjectIdentifier: (DispatchQueue, @Sendable (NWPath) -> Void)] = [:]
        var waiting: [@Sendable () -> Void] = []
        var viability: [ObjectIdentifier: @Sendable (Bool) -> Void] = [:]
    }

    /// The interfaces of the device, by their names.
    package static var interfaces: [String] {
        get { state.withLock { $0.interfaces } }
        set { state.withLock { $0.interfaces = newValue } }
    }

    private static let state = Mutex(State())

    package static var path: NWPath { state.withLock { $0.path } }
    package static var faults: Faults {
        get { state.withLock { $0.faults } }
        set { state.withLock { $0.faults = newValue } }
    }
    package static var counts: Counts { state.withLock { $0.counts } }
    package static func count(_ change: @Sendable (inout Counts) -> Void) { state.withLock { change(&$0.counts) } }

    /// Changes the path: monitors are told on their queues, connections that wait for one try again, and those that are
    /// open stop or begin to be viable.
    package static func setPath(
        _ status: NWPath.Status, because reason: NWPath.UnsatisfiedReason = .notAvailable, interfaces: [String] = []
    ) {
        let (watchers, waiting, viability) = state.withLock { state in
            state.path = NWPath(
                status: status, unsatisfiedReason: reason,
                availableInterfaces: interfaces.map { NWInterface(name: $0) })
            let waiting = status == .satisfied ? state.waiting : []
            if status == .satisfied { state.waiting = [] }
            return (Array(state.watchers.values), waiting, Array(state.viability.values))
        }
        let path = path
        for (queue, handler) in watchers { queue.async { handler(path) } }
        for retry in waiting { retry() }
        for change in viability { change(status == .satisfied) }
    }

    static func watch(_ monitor: NWPathMonitor, _ queue: DispatchQueue, _ handler: @escaping @Sendable (NWPath) -> Void)
    {
        // The path as it is comes first, at once.
        let path = state.withLock { state in
            state.watchers[ObjectIdentifier(monitor)] = (queue, handler)
            return state.path
        }
        queue.async { handler(path) }
    }

    static func unwatch(_ monitor: NWPathMonitor) {
        state.withLock { _ = $0.watchers.removeValue(forKey: ObjectIdentifier(monitor)) }
    }

    /// Tells an open connection whether it is viable, until it has ended.
    static func setViabilityHandler(
        of connection: ObjectIdentifier, _ handler: (@Sendable (Bool) -> Void)?
    ) {
        state.withLock { $0.viability[connection] = handler }
    }

    static func whenPathReturns(_ retry: @escaping @Sendable () -> Void) {
        state.withLock { $0.waiting.append(retry) }
    }
}

#if !os(Linux)
    import FoundationEssentials

    package final class FakeConnection: @unchecked Sendable {
        var stateHandler: (@Sendable (NWConnection.State) -> Void)?
        var viabilityHandler: (@Sendable (Bool) -> Void)?
        var metadata: NWProtocolMetadata?
        init(_ endpoint: NWEndpoint, _ parameters: NWParameters) {}
        func start(_ queue: DispatchQueue) {}
        func cancel() {}
        func receive(_ minimum: Int, _ maximum: Int, _ completion: @escaping @Sendable (Data?, Bool, NWError?) -> Void)
        {}
        func send(_ content: Data?, isFinal: Bool, _ completion: @escaping @Sendable (NWError?) -> Void) {}
    }
#endif
