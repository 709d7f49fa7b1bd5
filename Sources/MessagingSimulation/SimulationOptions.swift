import MQTTCore
import MessagingWire
import Transport

/// What can go wrong in a ``Simulation``, and for how long.
public struct SimulationOptions: Sendable, Equatable {
    /// What goes wrong. Default: everything that a session and acknowledgements protect from.
    public var faults = SimulationFaults.recoverable
    /// Names of what the app does now and then, such as "suspend": each of them may be in the plan several times. Default:
    /// none. See ``Simulation/onAct(_:_:)``.
    public var acts: [String] = []
    /// The most entries that the plan of a world has. Default: 12.
    public var maximumEntries = 12
    /// The time at the start in which nothing goes wrong, so that clients can connect and subscribe. Default: 1 second.
    public var calm = Duration.seconds(1)
    /// The time after which nothing goes wrong any more. Default: 2 minutes.
    public var duration = Duration.seconds(120)
    /// The time after which the body has to be over. Default: a day.
    public var maximumTime = Duration.seconds(86_400)
    /// Whether entries of the plan of a failing world are left out while it still fails. Default: true.
    public var shrinks = true
    /// Whether acts happen between two steps of a client instead of at a time: each other act of a plan waits for a packet of
    /// a kind that the world has seen by then, such as the next CONNACK. Default: false.
    package var placesActsAtPackets = false
    /// The real time for which the body may hold the thread of its world. Default: 60 seconds.
    package var longestHold = Duration.seconds(60)

    /// Makes the default options.
    public init() {}
}

/// Kinds of faults.
public struct SimulationFaults: OptionSet, Sendable {
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// A connection is cut before, within or after a packet or frame.
    public static let cuts = SimulationFaults(rawValue: 1)
    /// Bytes, and attempts to connect, need up to some seconds.
    public static let latency = SimulationFaults(rawValue: 2)
    /// Attempts to connect are refused for a time.
    public static let refusals = SimulationFaults(rawValue: 4)
    /// Brokers fall silent for a time, as ``LoopbackBroker/freeze()`` does.
    public static let silence = SimulationFaults(rawValue: 8)
    /// Brokers restart: they close all connections and refuse others for a time, but keep sessions and queues.
    public static let restarts = SimulationFaults(rawValue: 16)
    /// Brokers restart and have forgotten everything.
    public static let losses = SimulationFaults(rawValue: 32)

    /// One direction of a connection, or both, carry nothing any more, and neither end is told.
    public static let halfOpen = SimulationFaults(rawValue: 64)
    /// Connections carry some hundred bytes a second, and attempts to connect take up to a minute, for a time.
    public static let slowness = SimulationFaults(rawValue: 128)
    /// A second client of MQTT connects with the client identifier of one that is connected, and leaves after a time. A client
    /// of 5.0 then stops with `takenOver`.
    public static let takeovers = SimulationFaults(rawValue: 256)
    /// Brokers restart with their sessions and grant connections of MQTT 5.0 less, for a time: smaller values of Receive
    /// Maximum, Maximum Packet Size (512 bytes), Maximum QoS and Topic Alias Maximum.
    public static let smallerLimits = SimulationFaults(rawValue: 512)
    /// Brokers acknowledge up to five seconds late, in another order where the protocols allow it, for a time.
    public static let slowAnswers = SimulationFaults(rawValue: 1024)
    /// Names take up to a minute to be found, or are not found, for a time. Addresses have no names: see
    /// ``Simulation/startBroker(_:host:)``.
    public static let names = SimulationFaults(rawValue: 2048)
    /// The device of the clients has no network for a time, and then another one: connections die silently, attempts fail,
    /// and clients with `usesNetworkMonitor` know about it. Brokers at addresses of this machine need no network to be
    /// tried: see ``Simulation/startBroker(_:host:)``.
    public static let networkChanges = SimulationFaults(rawValue: 4096)

    /// The disk of the simulation, where `FileSessionStore` has its files, is full or broken for a time. A client whose store
    /// fails stops.
    public static let disk = SimulationFaults(rawValue: 8192)

    /// The time of day of the device is set forward or back, by up to two days. A message with an expiry interval that a
    /// session store has kept then is as much older or younger for the next process.
    public static let clockChanges = SimulationFaults(rawValue: 16384)
    /// The disk of the simulation takes up to five seconds for each write, for a time.
    public static let slowDisk = SimulationFaults(rawValue: 32768)

    /// Those that a session and acknowledgements protect from: all but ``losses``, ``takeovers``, ``smallerLimits``,
    /// ``disk`` and ``clockChanges``.
    public static let recoverable: SimulationFaults = [
        .cuts, .latency, .refusals, .silence, .restarts, .halfOpen, .slowness, .slowAnswers, .names, .networkChanges,
        .slowDisk,
    ]
    /// All of them.
    public static let all: SimulationFaults = [
        .recoverable, .losses, .takeovers, .smallerLimits, .disk, .clockChanges,
    ]
}

/// What happens to the world of a ``Simulation``: decided by its seed before the world begins.
public struct SimulationPlan: Sendable, CustomStringConvertible {
    /// One thing that happens.
    public struct Entry: Sendable, CustomStringConvertible {
        enum Event: Sendable {
            case cut(place: SimulatedCut, isUp: Bool, packets: Int)
            case latency(Duration, lasting: Duration)
            case refusal(lasting: Duration)
            case silence(lasting: Duration)
            case restart(keepsSessions: Bool, lasting: Duration)
            /// The direction to the broker or from it; nil for both.
            case death(isUp: Bool?)
            /// In bytes a second.
            case slowness(rate: Int, connecting: Duration, lasting: Duration)
            case takeover(lasting: Duration)
            case limits(GrantedLimits, lasting: Duration)
            case slowAnswers(Duration, lasting: Duration)
            /// Nil if names are not found.
            case names(Duration?, lasting: Duration)
            case offline(lasting: Duration)
            case disk(SimulatedDisk.Fault, lasting: Duration)
            case slowDisk(Duration, lasting: Duration)
            case clockChange(Duration)
            case act(String)
            /// When the next packet of a kind is written that the world has seen.
            case actAtPacket(String)
        }

        /// Its place in the plan of its seed, from 0.
        public let number: Int
        /// When it happens, counted from the start of the world.
        public let time: Duration
        let event: Event
        /// A generator of its own, so that leaving an entry out changes no other.
        let random: SplitMix

        public var description: String {
            let what =
                switch event {
                case .cut(let place, let isUp, let packets):
                    "a connection is cut \(place) packet \(packets + 1) \(isUp ? "to" : "from") the broker"
                case .latency(let latency, let lasting): "bytes need up to \(latency) for \(lasting)"
                case .refusal(let lasting): "connections are refused for \(lasting)"
                case .silence(let lasting): "the brokers fall silent for \(lasting)"
                case .restart(true, let lasting): "the brokers restart with their sessions after \(lasting)"
                case .restart(false, let lasting): "the brokers restart without their sessions after \(lasting)"
                case .death(nil): "a connection dies silently"
                case .death(let isUp?): "a connection dies silently in the direction \(isUp ? "to" : "from") the broker"
                case .slowness(let rate, let connecting, let lasting):
                    "connections carry \(rate) bytes a second and need up to \(connecting) to be opened, for \(lasting)"
                case .takeover(let lasting): "another client takes a session over for \(lasting)"
                case .limits(let limits, let lasting):
                    "the brokers restart with Receive Maximum \(limits.receiveMaximum), Maximum Packet Size \(limits.maximumPacketSize), Maximum QoS \(limits.maximumQoS.rawValue) and Topic Alias Maximum \(limits.topicAliasMaximum) for \(lasting)"
                case .slowAnswers(let delay, let lasting):
                    "the brokers acknowledge up to \(delay) late for \(lasting)"
                case .names(let delay?, let lasting): "names take up to \(delay) to be found for \(lasting)"
                case .names(nil, let lasting): "names are not found for \(lasting)"
                case .offline(let lasting): "the clients have no network for \(lasting)"
                case .disk(let fault, let lasting): "the disk is \(fault) for \(lasting)"
                case .slowDisk(let delay, let lasting): "the disk takes up to \(delay) for \(lasting)"
                case .clockChange(let change):
                    "the time of day is set \(change < .zero ? "back by \(.zero - change)" : "forward by \(change)")"
                case .act(let name): "the app: \(name)"
                case .actAtPacket(let name): "the app, at the next packet of some kind: \(name)"
                }
            return "\(number). at \(time): \(what)"
        }
    }

    /// What happens, in the order of its numbers.
    public let entries: [Entry]

    /// - Parameter leftOut: numbers of entries that the plan does not get.
    init(seed: UInt64, options: SimulationOptions, leavingOut leftOut: Set<Int>) {
        var random = SplitMix(seed: seed, part: 4)
        let count = random.below(min(max(0, options.maximumEntries), 100_000) + 1)
        entries = (0..<count).filter { !leftOut.contains($0) }.compactMap { number in
            Self.entry(number, SplitMix(seed: seed, part: 1000 + UInt64(number)), options)
        }
    }

    private static func entry(_ number: Int, _ random: SplitMix, _ options: SimulationOptions) -> Entry? {
        var random = random
        let total = Int(clamping: options.duration.inNanoseconds / 1_000_000)
        let calm = Int(clamping: max(0, options.calm.inNanoseconds) / 1_000_000)
        guard total > calm else { return nil }
        let start = calm + random.below(total - calm)
        let lasting = Duration.milliseconds(min(random.below(20_000), total - start))
        var events: [Entry.Event] = []
        if options.faults.contains(.cuts) {
            let place = SimulatedCut.allCases[random.below(3)]
            let cut = Entry.Event.cut(place: place, isUp: random.below(2) == 0, packets: random.below(4))
            // The fault that finds most.
            events += [cut, cut, cut]
        }
        if options.faults.contains(.latency) {
            events.append(.latency(.milliseconds(1 + random.below(3000)), lasting: lasting))
        }
        if options.faults.contains(.refusals) { events.append(.refusal(lasting: lasting)) }
        if options.faults.contains(.silence) { events.append(.silence(lasting: lasting)) }
        if options.faults.contains(.restarts) { events.append(.restart(keepsSessions: true, lasting: lasting)) }
        if options.faults.contains(.losses) { events.append(.restart(keepsSessions: false, lasting: lasting)) }
        if options.faults.contains(.halfOpen) {
            let direction = random.below(3)
            let death = Entry.Event.death(isUp: direction == 2 ? nil : direction == 0)
            events += [death, death]
        }
        if options.faults.contains(.slowness) {
            let rate = 100 + random.below(2000)
            events.append(
                .slowness(rate: rate, connecting: .milliseconds(random.below(60_000)), lasting: lasting))
        }
        if options.faults.contains(.takeovers) { events.append(.takeover(lasting: lasting)) }
        if options.faults.contains(.smallerLimits) {
            let limits = GrantedLimits(
                receiveMaximum: UInt16(1 + random.below(3)), maximumPacketSize: 512,
                maximumQoS: QoS.allCases[random.below(3)], topicAliasMaximum: UInt16(random.below(3)))
            events.append(.limits(limits, lasting: lasting))
        }
        if options.faults.contains(.slowAnswers) {
            events.append(.slowAnswers(.milliseconds(1 + random.below(5000)), lasting: lasting))
        }
        if options.faults.contains(.names) {
            let delay = Duration.milliseconds(1 + random.below(60_000))
            events.append(.names(random.below(2) == 0 ? delay : nil, lasting: lasting))
        }
        if options.faults.contains(.networkChanges) { events.append(.offline(lasting: lasting)) }
        if options.faults.contains(.disk) {
            events.append(.disk(random.below(2) == 0 ? .full : .broken, lasting: lasting))
        }
        if options.faults.contains(.slowDisk) {
            events.append(.slowDisk(.milliseconds(1 + random.below(5000)), lasting: lasting))
        }
        if options.faults.contains(.clockChanges) {
            events.append(.clockChange(.seconds(random.below(345_600) - 172_800)))
        }
        events += options.acts.map { .act($0) }
        guard !events.isEmpty else { return nil }
        var event = events[random.below(events.count)]
        if options.placesActsAtPackets, case .act(let name) = event, random.below(2) == 0 { event = .actAtPacket(name) }
        return Entry(number: number, time: .milliseconds(start), event: event, random: random)
    }

    public var description: String { entries.map(\.description).joined(separator: "\n") }
}

/// Random numbers that follow from the seed of a ``Simulation``.
public struct SimulationRandom: RandomNumberGenerator, Sendable {
    var generator: SplitMix

    public mutating func next() -> UInt64 { generator.next() }
}
