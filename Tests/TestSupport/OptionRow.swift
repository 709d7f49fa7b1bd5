public import Testing

/// One row of a table of options: the option's name, and what fails if the option has no effect.
public struct OptionRow: Sendable, CustomTestStringConvertible {
    /// As in the configuration; options of a struct that the configuration holds follow its name and a dot.
    public let name: String
    /// Nil if another test shows the effect.
    public let check: (@Sendable () async throws -> Void)?

    public init(_ name: String, _ check: @escaping @Sendable () async throws -> Void) {
        self.name = name
        self.check = check
    }

    /// An option whose effect a test shows that is run by itself: it fails when the option has none.
    public init<Suite, Test>(_ name: String, shownBy _: (Suite) -> Test) {
        self.name = name
        check = nil
    }

    public var testDescription: String { name }
}

/// The names of the stored properties of a value, behind a prefix.
public func optionNames(of value: Any, _ prefix: String = "") -> Set<String> {
    // A property wrapper is stored in a property with an underscore.
    Set(Mirror(reflecting: value).children.compactMap { child in child.label.map { prefix + $0.drop { $0 == "_" } } })
}

/// `#expect` for a condition that takes `try await`, which the macro cannot have inside a closure of a table.
public func verify(_ holds: Bool, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(holds, sourceLocation: sourceLocation)
}
