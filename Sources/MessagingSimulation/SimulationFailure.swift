/// The world of a seed fails: what a ``Simulation`` throws.
public struct SimulationFailure: Error, CustomStringConvertible {
    /// The seed of the world.
    public let seed: UInt64
    /// The entries of its plan that are not needed for the failure.
    public let leftOut: Set<Int>
    /// The rest of its plan.
    public let plan: SimulationPlan
    /// What the body threw.
    public let underlying: any Error
    /// The steps around the entries of the plan, around the first rule of the specification that a client broke, and at the
    /// end, one line each, and the last hundred of ``Simulation/note(_:)``. Packets and frames are decoded; heart-beats and
    /// pings in a row are one step.
    public let steps: [String]
    /// The clients' states when the body failed, and what waited in them.
    let clients: [String]
    let options: SimulationOptions

    private var hasDefaultOptions: Bool { options == SimulationOptions() }

    /// One line that repeats the failure. It has `options: options` if the options were not the default ones: they have to be
    /// the same, because the plan of a seed depends on them.
    public var repetition: String {
        var arguments = "seed: \(seed)"
        if !hasDefaultOptions { arguments += ", options: options" }
        if !leftOut.isEmpty { arguments += ", leavingOut: \(leftOut.sorted())" }
        return "try await Simulation.run(\(arguments)) { … }"
    }

    /// A test with these options, for the body that failed.
    private var test: String {
        let usual = SimulationOptions()
        var lines = ["@Test func `The world of seed \(seed) keeps its promises`() async throws {"]
        var arguments = "seed: \(seed)"
        if !hasDefaultOptions {
            arguments += ", options: options"
            lines.append("    var options = SimulationOptions()")
        }
        func add(_ name: String, _ value: String, if differs: Bool) {
            if differs { lines.append("    options.\(name) = \(value)") }
        }
        func add(_ name: String, _ value: Duration, _ usual: Duration) {
            add(name, ".nanoseconds(\(value / .nanoseconds(1)))", if: value != usual)
        }
        let faults = "SimulationFaults(rawValue: \(options.faults.rawValue))"
        add("faults", faults, if: options.faults != usual.faults)
        add("acts", "\(options.acts)", if: options.acts != usual.acts)
        add("maximumEntries", "\(options.maximumEntries)", if: options.maximumEntries != usual.maximumEntries)
        add("calm", options.calm, usual.calm)
        add("duration", options.duration, usual.duration)
        add("maximumTime", options.maximumTime, usual.maximumTime)
        add("placesActsAtPackets", "true", if: options.placesActsAtPackets)
        if !leftOut.isEmpty { arguments += ", leavingOut: \(leftOut.sorted())" }
        lines.append("    try await Simulation.run(\(arguments)) { world in")
        return (lines + ["        // The body that failed.", "    }", "}"]).joined(separator: "\n")
    }

    public var description: String {
        """
        The world of seed \(seed) fails: \(underlying)
        Repeat it: \(repetition)
        Its plan:
        \(plan.entries.isEmpty ? "Nothing happens." : plan.description)
        Its steps:
        \(steps.joined(separator: "\n"))
        Its clients then:
        \(clients.isEmpty ? "There was none." : clients.joined(separator: "\n"))
        As a test:
        \(test)
        """
    }
}

/// A promise that was not kept in a ``Simulation``, or a body that does not end.
public struct SimulationError: Error, CustomStringConvertible {
    /// What happened, then what to do.
    public let message: String
    public var description: String { message }
    /// Whether the run cannot be repeated, because something from outside took part in it.
    let isForeign: Bool

    /// Makes an error for what a test has found.
    public init(_ message: String) {
        self.init(message, isForeign: false)
    }

    init(_ message: String, isForeign: Bool) {
        self.message = message
        self.isForeign = isForeign
    }
}
