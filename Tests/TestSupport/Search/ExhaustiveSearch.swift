public import Testing

/// A little world whose every state can be visited: it does nothing by itself, and the same steps lead to the same state.
public protocol SearchedWorld: AnyObject {
    associatedtype Step: CustomStringConvertible

    /// What may happen next, in the same order in equal states.
    var steps: [Step] { get }

    func take(_ step: Step)

    /// Writes down everything that what follows, and the promises, depend on. States that write the same are visited once.
    func write(into writer: inout StateWriter)

    /// Lets everything go well until nothing moves, and checks what is promised to happen in the end.
    func complete()

    /// Promises that were broken so far.
    var complaints: [String] { get }
}

/// Visits every state of a world that can be reached, those with the fewest steps first.
///
/// States cannot be copied: engines are noncopyable. Each is reached again by taking the steps of its path in a new world.
public struct ExhaustiveSearch<World: SearchedWorld> {
    /// What was visited.
    public struct Result: Sendable {
        public init() {}

        public var states = 0
        public var steps = 0
        /// The number of steps of the longest of the shortest paths.
        public var depth = 0
        /// States without a next step.
        public var ends = 0
        /// A shortest path to a broken promise, and what was broken.
        public var failure: (path: [String], complaint: String)?

        public var description: String { "\(states) states, \(steps) steps, \(depth) deep, \(ends) ends" }

        public static func + (one: Result, other: Result) -> Result {
            var sum = one
            sum.states += other.states
            sum.steps += other.steps
            sum.depth = max(one.depth, other.depth)
            sum.ends += other.ends
            sum.failure = one.failure ?? other.failure
            return sum
        }
    }

    private let make: () -> World
    /// Each so many times that a state is reached by another path, both paths are followed for one step more.
    private let comparison: Int
    private let limit: Int
    private var parents: [Int32] = [-1]
    private var choices: [UInt8] = [0]
    private var known: [StateKey: Int32] = [:]

    /// - Parameters:
    ///   - comparison: each so many times that a state is reached by another path, the two are compared: the same steps
    ///     must be possible and lead to the same states, or `write` leaves something out.
    ///   - limit: more states than these are a failure.
    public init(comparison: Int = 50, limit: Int = 5_000_000, _ make: @escaping () -> World) {
        self.make = make
        self.comparison = comparison
        self.limit = limit
    }

    /// Visits all states.
    public mutating func run(sourceLocation: SourceLocation = #_sourceLocation) -> Result {
        var result = Result()
        let root = make()
        known[Self.key(root)] = 0
        if let failure = judge(root, []) { result.failure = failure }
        var index = 0
        var depth = 0
        var layerEnd = 1
        var repeats = 0
        while index < parents.count, result.failure == nil {
            if index == layerEnd {
                depth += 1
                layerEnd = parents.count
            }
            let path = path(to: index)
            var world = replay(path)
            let count = world.steps.count
            if count == 0 { result.ends += 1 }
            for choice in 0..<count {
                if choice > 0 { world = replay(path) }
                world.take(world.steps[choice])
                result.steps += 1
                let key = Self.key(world)
                if let other = known[key] {
                    if let failure = complaint(world, path + [UInt8(choice)]) {
                        result.failure = failure
                        break
                    }
                    repeats += 1
                    if repeats % comparison == 0 {
                        compare(path + [UInt8(choice)], self.path(to: Int(other)), sourceLocation)
                    }
                } else {
                    known[key] = Int32(parents.count)
                    parents.append(Int32(index))
                    choices.append(UInt8(choice))
                    if let failure = judge(world, path + [UInt8(choice)]) {
                        result.failure = failure
                        break
                    }
                }
            }
            index += 1
            // A slow machine computes for long between a test's beginning and its end.
            if index % 5_000 == 0 { AtWork.note("progress", "\(index) states") }
            if parents.count > limit { result.failure = ([], "There are more than \(limit) states.") }
        }
        result.states = parents.count
        result.depth = depth
        return result
    }

    /// Calls the body with worlds in every state; for tests of single states.
    public mutating func forEachState(_ body: (_ again: () -> World) -> Void) {
        for index in parents.indices {
            let path = path(to: index)
            body { replay(path) }
        }
    }

    public static func key(_ world: World) -> StateKey {
        var writer = StateWriter()
        world.write(into: &writer)
        return writer.key
    }

    private func complaint(_ world: World, _ path: [UInt8], _ end: [String] = []) -> ([String], String)? {
        guard let complaint = world.complaints.first else { return nil }
        return (describe(path) + end, complaint)
    }

    /// Checks a new state, and what becomes of it.
    private func judge(_ world: World, _ path: [UInt8]) -> ([String], String)? {
        if let failure = complaint(world, path) { return failure }
        world.complete()
        return complaint(world, path, ["everything goes well"])
    }

    private func path(to index: Int) -> [UInt8] {
        var path: [UInt8] = []
        var index = index
        while index > 0 {
            path.append(choices[index])
            index = Int(parents[index])
        }
        return path.reversed()
    }

    private func replay(_ path: [UInt8]) -> World {
        let world = make()
        for choice in path { world.take(world.steps[Int(choice)]) }
        return world
    }

    private func describe(_ path: [UInt8]) -> [String] {
        let world = make()
        return path.map { choice in
            let step = world.steps[Int(choice)]
            world.take(step)
            return step.description
        }
    }

    /// Two paths to a state have the same next states.
    private func compare(_ one: [UInt8], _ other: [UInt8], _ sourceLocation: SourceLocation) {
        let (first, second) = (replay(one).steps.map(\.description), replay(other).steps.map(\.description))
        let difference =
            first != second
            ? "the next steps are \(first) and \(second)"
            : first.indices.first { choice in
                Self.key(replay(one + [UInt8(choice)])) != Self.key(replay(other + [UInt8(choice)]))
            }.map { "the next step is: \(first[$0])" }
        guard let difference else { return }
        Issue.record(
            "These paths lead to states that are written down alike and differ: \(difference)\n\(describe(one))\n\(describe(other))",
            sourceLocation: sourceLocation)
    }
}

extension ExhaustiveSearch.Result {
    /// Records a broken promise with its path.
    public func check(_ name: String, sourceLocation: SourceLocation = #_sourceLocation) {
        guard let failure else { return }
        let steps = failure.path.enumerated().map { "  \($0.offset + 1). \($0.element)" }.joined(separator: "\n")
        Issue.record(
            "\(name): \(failure.complaint)\nAfter \(failure.path.count) steps:\n\(steps)",
            sourceLocation: sourceLocation)
    }
}
