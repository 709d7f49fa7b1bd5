extension MQTTConfiguration {
    /// Every option and its value, with secrets hidden.
    package var options: [(label: String, value: Any)] {
        let others = Mirror(reflecting: rest.values).children.map { (label: $0.label ?? "", value: $0.value) }
        return [("clientID", clientID)] + others
    }
}

extension MQTTConfiguration: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// Every option and its value, with secrets hidden.
    public var description: String {
        "MQTTConfiguration(\(options.map { "\($0.label): \($0.value)" }.joined(separator: ", ")))"
    }
    public var debugDescription: String { description }
    public var customMirror: Mirror {
        Mirror(self, children: options.map { (label: $0.label, value: $0.value) }, displayStyle: .struct)
    }
}
