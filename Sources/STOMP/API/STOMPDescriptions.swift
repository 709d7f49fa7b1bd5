import Messaging
public import STOMPCore

#if canImport(FoundationEssentials)
    public import protocol FoundationEssentials.LocalizedError
#else
    public import protocol Foundation.LocalizedError
#endif

// How the values of this module and of its engine are shown; see `OneLine`.

extension STOMPError: LocalizedError {
    public var errorDescription: String? { message }
}

extension STOMPConnectionFailure: LocalizedError {
    public var errorDescription: String? { description }
}

extension STOMPMessage: CustomStringConvertible {
    /// Destination, number and the beginning of the body.
    public var description: String {
        let id = messageID.map { ", id \(OneLine.text($0))" } ?? ""
        return "STOMPMessage(\(OneLine.text(destination))\(id), \(OneLine.payload(body)))"
    }
}

extension STOMPOutgoingMessage: CustomStringConvertible {
    /// Destination and the beginning of the body.
    public var description: String {
        "STOMPOutgoingMessage(\(OneLine.text(destination)), \(OneLine.payload(body[...])))"
    }
}

extension STOMPSubscription: CustomStringConvertible {
    /// The destination, with how its messages are acknowledged.
    public var description: String { "STOMPSubscription(\(OneLine.text(destination)), \(acknowledgement))" }
}

extension STOMPDestination: CustomStringConvertible {
    /// The name and the type of its values.
    public var description: String { "STOMPDestination<\(Value.self)>(\(OneLine.text(name)))" }
}

extension STOMPEvent: CustomStringConvertible {
    /// The case and its values.
    public var description: String { OneLine.values(of: self) ?? "event" }
}
