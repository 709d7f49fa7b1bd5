public import MQTTCore
import Messaging

#if canImport(FoundationEssentials)
    public import protocol FoundationEssentials.LocalizedError
#else
    public import protocol Foundation.LocalizedError
#endif

// How the values of this module and of its engine are shown; see `OneLine`.

extension MQTTError: LocalizedError {
    public var errorDescription: String? { message }
}

extension MQTTProtocolError: LocalizedError {
    public var errorDescription: String? { description }
}

extension SessionStoreError: LocalizedError {
    public var errorDescription: String? { description }
}

extension MQTTMessage: CustomStringConvertible {
    /// Topic, flags and the beginning of the payload.
    public var description: String {
        let flags = [qos.description] + (isRetained ? ["retained"] : []) + (isDuplicate ? ["duplicate"] : [])
        return "MQTTMessage(\(OneLine.text(topic)), \(flags.joined(separator: ", ")), \(OneLine.payload(payload)))"
    }
}

extension MQTTOutgoingMessage: CustomStringConvertible {
    /// Topic, flags and the beginning of the payload.
    public var description: String {
        "MQTTOutgoingMessage(\(OneLine.text(topic)), \(qos)\(retain ? ", retained" : ""), "
            + "\(OneLine.payload(payload[...])))"
    }
}

extension MQTTWill: CustomStringConvertible {
    /// Topic and flags; the payload is hidden as that of an inspected CONNECT is.
    public var description: String {
        "MQTTWill(\(OneLine.text(topic)), \(qos)\(retain ? ", retained" : ""), \(payload.count) bytes)"
    }
}

extension MQTTSubscription: CustomStringConvertible {
    /// The filters, with the QoS that the server granted.
    public var description: String {
        let filters = filters.isEmpty ? "unmatched messages" : OneLine.text(filters.joined(separator: ", "))
        return "MQTTSubscription(\(filters), \(grantedQoS))"
    }
}

extension MQTTTopic: CustomStringConvertible {
    /// The filter and the type of its values.
    public var description: String { "MQTTTopic<\(Value.self)>(\(OneLine.text(filter)))" }
}

extension MQTTEvent: CustomStringConvertible {
    /// The case and its values.
    public var description: String {
        switch self {
        case .exactlyOnceUnavailable: "exactlyOnceUnavailable"
        case .reauthenticated: "reauthenticated"
        default: OneLine.values(of: self) ?? "event"
        }
    }
}

extension MQTTConfiguration: CustomStringConvertible {
    /// Every option and its value, with secrets hidden.
    public var description: String { OneLine.properties(of: self) }
}
