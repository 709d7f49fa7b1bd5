/// A command line, taken apart: which options were given, and with what text.
struct Arguments: Sendable {
    let device: Device
    private var given: [String: [String]] = [:]

    /// - Throws: `.usage` for an unknown, repeated or incomplete option, and for anything that is not an option.
    init(_ arguments: [String], for device: Device) throws(DeviceFailure) {
        self.device = device
        let known = OptionDeclaration.all(of: device)
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            guard argument.utf8.starts(with: "--".utf8), argument != "--" else {
                throw .usage("unexpected argument '\(argument.printable)'; see \(device.programName) --help")
            }
            // Split at bytes: a Character would swallow the sign together with a combining mark after it.
            let sign = argument.utf8.firstIndex(of: UInt8(ascii: "="))
            let name = String(argument[..<(sign ?? argument.endIndex)])
            let attached = sign.map { String(argument[argument.utf8.index(after: $0)...]) }
            guard let option = known.first(where: { $0.name == name }) else {
                throw Self.unknown(name, for: device)
            }
            guard given[name] == nil || option.isRepeatable else {
                throw .usage("\(name) is given twice")
            }
            let value: String
            if option.value == nil {
                guard attached == nil else {
                    throw .usage("\(name) takes no value")
                }
                value = ""
            } else if let attached {
                value = attached
            } else if let next = rest.first, !next.utf8.starts(with: "--".utf8) {
                value = next
                rest.removeFirst()
            } else {
                throw .usage("\(name) needs a value: \(name) \(option.value ?? "")")
            }
            if value.isEmpty, option.value != nil {
                throw .usage("\(name) needs a value that is not empty")
            }
            given[name, default: []].append(value)
        }
    }

    func has(_ option: OptionDeclaration) -> Bool {
        given[option.name] != nil
    }

    func text(_ option: OptionDeclaration) -> String? {
        given[option.name]?.first
    }

    /// All values of an option that may be given several times, in their order.
    func texts(_ option: OptionDeclaration) -> [String] {
        given[option.name] ?? []
    }

    /// The value as a number within `range`, or nil when the option was not given.
    func number(_ option: OptionDeclaration, in range: ClosedRange<Double>) throws(DeviceFailure) -> Double? {
        guard let text = text(option) else { return nil }
        guard let value = DecimalText.parse(text), range.contains(value) else {
            throw malformed(
                option, text, "a number from \(range.lowerBound.plainText) to \(range.upperBound.plainText)")
        }
        return value
    }

    /// The value as a whole number within `range`, or nil when the option was not given.
    func integer(_ option: OptionDeclaration, in range: ClosedRange<Int>) throws(DeviceFailure) -> Int? {
        guard let text = text(option) else { return nil }
        guard let value = Int(text), range.contains(value) else {
            throw malformed(option, text, "a whole number from \(range.lowerBound) to \(range.upperBound)")
        }
        return value
    }

    func malformed(_ option: OptionDeclaration, _ text: String, _ wanted: String) -> DeviceFailure {
        .usage("\(option.name) wants \(wanted), not '\(text.printable)'")
    }

    private static func unknown(_ name: String, for device: Device) -> DeviceFailure {
        if let other = OptionDeclaration.all.first(where: { $0.name == name }), let owner = other.device {
            return .usage("unknown option '\(name)': it belongs to \(owner.programName)")
        }
        let names = OptionDeclaration.all(of: device).map(\.name)
        let hint = Suggestion.closest(to: name, among: names).map { "; did you mean \($0)?" }
        return .usage("unknown option '\(name.printable)'\(hint ?? "; see \(device.programName) --help")")
    }
}

/// Finds what a mistyped word was meant to be.
enum Suggestion {
    /// The candidate that is a few slips away at most, or that starts with what was typed; nil when none is near.
    static func closest(to typed: String, among candidates: [String]) -> String? {
        let typed = Array(typed.utf8.prefix(64))
        if typed.count >= 4, let longer = candidates.first(where: { $0.utf8.starts(with: typed) }) {
            return longer
        }
        let ranked = candidates.map { (name: $0, distance: distance(typed, Array($0.utf8))) }
        guard let best = ranked.min(by: { $0.distance < $1.distance }) else { return nil }
        return best.distance <= max(2, best.name.utf8.count / 4) ? best.name : nil
    }

    /// Insertions, deletions, replacements and swaps of neighbours that turn `left` into `right`.
    static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var beforeLast: [Int] = []
        var last = Array(0...right.count)
        for (row, byte) in left.enumerated() {
            var current = [row + 1]
            for (column, other) in right.enumerated() {
                var cost = min(last[column + 1] + 1, current[column] + 1, last[column] + (byte == other ? 0 : 1))
                if row > 0, column > 0, byte == right[column - 1], left[row - 1] == other {
                    cost = min(cost, beforeLast[column - 1] + 1)
                }
                current.append(cost)
            }
            beforeLast = last
            last = current
        }
        return last[right.count]
    }
}
