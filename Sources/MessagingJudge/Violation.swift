import MessagingWire

/// A rule that a client broke, and the packet or frame with which it did.
package struct Violation: Sendable, CustomStringConvertible {
    package let clause: Clause
    /// The client identifier of MQTT or the `client-id` of STOMP; empty if it is not known.
    package let client: String
    /// The number of the connection.
    package let connection: Int
    /// Nanoseconds of the caller's clock.
    package let time: Int64
    /// The packet or frame, on one line, without credentials.
    package let packet: String
    /// What is wrong with it.
    package let reason: String

    package var description: String {
        let name = client.isEmpty ? "The client" : "'\(OneLine.text(client, limit: 100))'"
        return "\(name) broke the rule '\(clause)' on connection \(connection). \(reason) \(packet) "
            + "[\(clause.reference)\(clause.isPromise ? ", promised by our clients" : "")]"
    }
}

/// What a judge examines besides what the specifications demand at any speed.
package struct JudgeOptions: Sendable {
    /// Whether rules are examined that only clients of this package promise to keep. Default: true.
    package var judgesPromises = true
    /// Whether the clock is a virtual one, so that a late packet is the client's fault and not the machine's. Default: false.
    package var judgesTime = false

    package init() {}
}

/// The violations that a judge has found, the first hundred.
struct ViolationList: Sendable {
    private(set) var all: [Violation] = []
    private static let limit = 100

    mutating func append(_ violation: Violation) {
        if all.count < Self.limit { all.append(violation) }
    }

    mutating func takeAll() -> [Violation] {
        defer { all = [] }
        return all
    }
}
