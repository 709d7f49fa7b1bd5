import Transport

/// A frame that a ``FrameLog`` keeps: what it was, and its bytes with the secrets masked.
public struct LoggedFrame: Sendable {
    /// Counts the frames of a log from 1 on, without gaps.
    public internal(set) var number: UInt64 = 0
    /// The name under which its client feeds the log.
    public internal(set) var client = ""
    /// Counts the connections of all clients of a log from 1 on.
    public internal(set) var connection = 0

    /// Milliseconds since 1970, UTC.
    public let time: Int64
    /// Whether the client sent or received the frame.
    public let direction: FrameDirection
    /// The protocol and its version: `MQTT 5.0`, `STOMP 1.2`.
    public let protocolName: String
    /// The packet's type or the frame's command as it is written: `PUBLISH`, `SEND`; `heart-beat` for a line end alone.
    public let type: String
    /// Bytes on the wire.
    public let size: Int
    /// The topic, topic filters or destination.
    public let destination: String?
    /// The quality of service of an MQTT message: 0, 1 or 2.
    public let qos: Int?
    /// Bytes of the payload or body.
    public let payloadCount: Int
    /// The bytes, of which passwords, passcodes and authentication data are replaced by as many `*`. Of a frame that is
    /// larger than an eighth of the log's bound only the first 4096.
    public private(set) var bytes: [UInt8]
    /// Whether it is the first frame of its connection.
    package let opensConnection: Bool
    /// Whether its sender says goodbye with it.
    package let endsConnection: Bool
    /// Whether its payload is a message to or from the destination.
    package let carriesMessage: Bool
    /// What it asks for or answers.
    package let exchange: FrameExchange
    /// Nanoseconds of the monotonic clock, for durations.
    package let instant: Int64
    let content: any FrameContent

    package init(
        _ direction: FrameDirection, time: Int64, protocolName: String, type: String, size: Int, destination: String?,
        qos: Int?, payloadCount: Int, bytes: [UInt8], opensConnection: Bool, endsConnection: Bool,
        carriesMessage: Bool = false, exchange: FrameExchange = FrameExchange(),
        instant: Int64 = MonotonicClock.now, content: any FrameContent
    ) {
        self.direction = direction
        self.time = time
        self.protocolName = protocolName
        self.type = type
        self.size = size
        self.destination = destination
        self.qos = qos
        self.payloadCount = payloadCount
        self.bytes = bytes
        self.opensConnection = opensConnection
        self.endsConnection = endsConnection
        self.carriesMessage = carriesMessage
        self.exchange = exchange
        self.instant = instant
        self.content = content
    }

    /// The frame as a log keeps it whose bound for whole frames is `limit` bytes.
    func limited(to limit: Int) -> LoggedFrame {
        let count = FrameBytes.keptCount(of: size, limit: limit)
        guard bytes.count > count else { return self }
        var frame = self
        frame.bytes = Array(bytes.prefix(count))
        return frame
    }

    /// Whether all bytes were kept.
    public var isWhole: Bool { bytes.count == size }

    /// What was decoded, in the order of the wire; secrets are `***`.
    public var fields: [Field] { content.fields }

    /// What matters beside type, destination and quality of service, in a few words.
    public var note: String { content.note }

    /// The first 256 bytes of the payload, as quoted text where they are text and otherwise in hexadecimal digits; nil
    /// without a payload.
    public var payload: String? { content.payloadPreview }

    /// Whether the text occurs in what is shown of the frame; upper and lower case are the same.
    public func contains(_ text: String) -> Bool {
        let text = text.lowercased()
        let words = [type, destination ?? "", client, note, payload ?? ""]
        return (words + fields.map { "\($0.name): \($0.value)" }).contains { $0.lowercased().contains(text) }
    }

    /// A part of a frame that has a name in its specification.
    public struct Field: Sendable, Hashable {
        /// The name of the field in the specification.
        public let name: String
        /// The value as text.
        public let value: String

        package init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }
}

/// A decoded frame, described as text only when it is read.
package protocol FrameContent: Sendable {
    var fields: [LoggedFrame.Field] { get }
    var note: String { get }
    var payloadPreview: String? { get }
}

/// How a frame belongs to others of its connection: an acknowledgement has the identifier of what it acknowledges, and
/// goes the other way.
package struct FrameExchange: Sendable, Hashable {
    /// The identifier that the answer to this frame will have.
    package var asks: String?
    /// The identifier of what this frame answers.
    package var answers: String?

    package init(asks: String? = nil, answers: String? = nil) {
        self.asks = asks
        self.answers = answers
    }
}

/// Which way a frame went, as the client sees it.
public enum FrameDirection: Sendable, Hashable {
    /// From the client to the server.
    case sent
    /// From the server to the client.
    case received
}
