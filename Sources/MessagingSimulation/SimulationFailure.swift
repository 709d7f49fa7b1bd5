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
    /// The last hundred steps, one line each, and the last hundred of ``Simulation/note(_:)``. Heart-beats and pings in a
    /// row are one step.
    public let steps: [String]
    /// Whether the options were those that `run` has by default.
    let hasDefaultOptions: Bool

    /// One line that repeats the failure. It has `options: options` if the options were not the default ones: they have to be
    /// the same, because the plan of a seed depends on them.
    public var repetition: String {
        var arguments = "seed: \(seed)"
        if !hasDefaultOptions { arguments += ", options: options" }
        let left = leftOut.sorted().map(String.init).joined(separator: ", ")
        if !leftOut.isEmpty { arguments += ", leavingOut: [\(left)]" }
        return "try await Simulation.run(\(arguments)) { … }"
    }

    public var description: String {
        """
        The world of seed \(seed) fails: \(underlying)
        Repeat it: \(repetition)
        Its plan:
        \(plan.entries.isEmpty ? "Nothing happens." : plan.description)
        Its last steps:
        \(steps.joined(separator: "\n"))
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
