package import MessagingWire

extension OneLine {
    /// The case of an enumeration with its values. Reflection does not know the name of a case without any.
    package static func values(of event: Any) -> String {
        guard let child = Mirror(reflecting: event).children.first, let name = child.label else { return "?" }
        let payload = Mirror(reflecting: child.value)
        guard payload.displayStyle == .tuple else { return "\(name)(\(value(child.value)))" }
        let values = payload.children.map { label, value in
            let isNamed = label.map { !$0.hasPrefix(".") } ?? false
            return (isNamed ? "\(label ?? ""): " : "") + Self.value(value)
        }
        return "\(name)(\(values.joined(separator: ", ")))"
    }

    private static func value(_ value: Any) -> String {
        if let duration = value as? Duration { return Self.duration(duration) }
        return text("\(value)")
    }

    /// A type's name with the values of its stored properties.
    package static func properties<Subject>(of subject: Subject) -> String {
        let values = Mirror(reflecting: subject).children.map { label, value in
            let name = label.map { $0.hasPrefix("_") ? String($0.dropFirst()) : $0 } ?? ""
            return "\(name): \(text("\(value)"))"
        }
        return "\(Subject.self)(\(values.joined(separator: ", ")))"
    }
}
