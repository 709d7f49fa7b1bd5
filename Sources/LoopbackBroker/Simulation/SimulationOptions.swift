import Transport
import Wire

/// What can go wrong in a ``Simulation``, and for how long.
public struct SimulationOptions: Sendable {
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

    /// All but ``losses``.
    public static let recoverable: SimulationFaults = [.cuts, .latency, .refusals, .silence, .restarts]
    /// All of them.
    public static let all: SimulationFaults = [.recoverable, .losses]
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
            case act(String)
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
                case .act(let name): "the app: \(name)"
                }
            return "\(number). at \(time): \(what)"
        }
    }

    /// What happens, in the order of its numbers.
    public let entries: [Entry]

    /// - Parameter leftOut: numbers of entries that the plan does not get.
    init(seed: UInt64, options: SimulationOptions, leavingOut leftOut: Set<Int>) {
        var random = SplitMix(seed: seed, part: 4)
        let count = random.below(max(0, options.maximumEntries) + 1)
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
        events += options.acts.map { .act($0) }
        guard !events.isEmpty else { return nil }
        let event = events[random.below(events.count)]
        return Entry(number: number, time: .milliseconds(start), event: event, random: random)
    }

    public var description: String { entries.map(\.description).joined(separator: "\n") }
}

/// Random numbers that follow from the seed of a ``Simulation``.
public struct SimulationRandom: RandomNumberGenerator, Sendable {
    var generator: SplitMix

    public mutating func next() -> UInt64 { generator.next() }
}
