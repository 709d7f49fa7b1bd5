/// Looks for a secret in everything that prints a value: descriptions, `dump()` and mirrors, as text and as bytes.
public enum SecretSearch {
    /// The ways of printing `value` that show `secret`.
    public static func leaks(of secret: String, in value: Any) -> [String] {
        var dumped = ""
        dump(value, to: &dumped)
        let printed = [
            "String(describing:)": String(describing: value), "String(reflecting:)": String(reflecting: value),
        ]
        .merging(["dump()": dumped]) { $1 }
        var leaks = printed.filter { contains($0.value, secret) }.map(\.key)
        if mirrorHolds(secret, value, depth: 0) { leaks.append("Mirror") }
        return leaks.sorted()
    }

    /// As text, or as the decimal numbers of its bytes, on one line or on many.
    private static func contains(_ text: String, _ secret: String) -> Bool {
        if text.contains(secret) { return true }
        let numbers = text.split { !$0.isNumber }.joined(separator: ",")
        return ",\(numbers),".contains("," + secret.utf8.map(String.init).joined(separator: ",") + ",")
    }

    private static func mirrorHolds(_ secret: String, _ value: Any, depth: Int) -> Bool {
        if let text = value as? String, text.contains(secret) { return true }
        if let bytes = value as? [UInt8] { return contains("\(bytes)", secret) }
        // References may lead in circles.
        guard depth < 40 else { return false }
        let mirror = Mirror(reflecting: value)
        let inherited = mirror.superclassMirror?.children.map(\.value) ?? []
        return (mirror.children.map(\.value) + inherited).contains { mirrorHolds(secret, $0, depth: depth + 1) }
    }
}
