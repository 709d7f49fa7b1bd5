/// The options of a program, declared by the text that explains them.
///
/// Each line of the usage that begins with a dash declares an option: `-t, --topic TOPIC` has a value, `-r, --retain` has
/// none. Two spaces or more separate it from its explanation.
public struct Options: Sendable {
    private var values: [String: [String]] = [:]
    /// What belongs to no option: arguments without a dash, numbers, and all that follows `--`.
    public private(set) var rest: [String] = []

    init(_ arguments: [String], usage: String) throws(UsageError) {
        let declared = Self.declarations(in: usage)
        var arguments = arguments[...]
        while let argument = arguments.popFirst() {
            if argument == "--" {
                rest += arguments
                break
            }
            let isNumber = declared[argument] == nil && Double(argument) != nil
            guard argument.hasPrefix("-"), argument.count > 1, !isNumber else {
                rest.append(argument)
                continue
            }
            // What follows the sign may be empty.
            let parts = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                .map { String($0) }
            guard let (name, takesValue) = declared[parts[0]] else {
                throw UsageError("There is no option \(parts[0]).")
            }
            switch (takesValue, parts.count) {
            case (false, 1): values[name, default: []].append("")
            case (false, _): throw UsageError("\(name) has no value.")
            case (true, 2): values[name, default: []].append(parts[1])
            case (true, _):
                guard let value = arguments.popFirst() else { throw UsageError("\(name) needs a value.") }
                values[name, default: []].append(value)
            }
        }
    }

    /// The last value of an option.
    public subscript(name: String) -> String? { values[name]?.last }

    /// All values of an option that may be repeated.
    public func all(_ name: String) -> [String] { values[name] ?? [] }

    /// Whether an option was given.
    public func has(_ name: String) -> Bool { values[name] != nil }

    /// The value of an option as a number in a range.
    public func number(_ name: String, in range: ClosedRange<Int> = 0...Int.max) throws -> Int? {
        guard let text = self[name] else { return nil }
        guard let number = Int(text), range.contains(number) else {
            let bounds =
                range.upperBound == .max
                ? "from \(range.lowerBound)" : "from \(range.lowerBound) to \(range.upperBound)"
            throw UsageError("\(name) is a whole number \(bounds), not '\(text)'.")
        }
        return number
    }

    /// Each spelling of each option, with its long name and whether it has a value: what a line of the usage has before two
    /// spaces.
    private static func declarations(in usage: String) -> [String: (name: String, takesValue: Bool)] {
        var declared: [String: (String, Bool)] = ["--help": ("--help", false), "-h": ("--help", false)]
        for line in usage.split(separator: "\n") {
            let words =
                line.trimmingPrefix(while: { $0 == " " }).split(separator: "  ").first?.split(separator: " ") ?? []
            let names = words.prefix { $0.hasPrefix("-") }.map {
                $0.hasSuffix(",") ? String($0.dropLast()) : String($0)
            }
            guard let name = names.last else { continue }
            for spelling in names { declared[spelling] = (name, names.count < words.count) }
        }
        return declared
    }
}

/// A mistake in the arguments of a program.
public struct UsageError: Error, CustomStringConvertible {
    public let description: String

    public init(_ description: String) {
        self.description = description
    }
}
