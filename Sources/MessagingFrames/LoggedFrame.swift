import Transport

/// A frame that a ``FrameLog`` keeps: what it was, and its bytes with the secrets masked.
public struct LoggedFrame: Sendable {
    private let raw: RawFrame
    package let content: any FrameContent
    /// Counts the frames of a log from 1 on, without gaps.
    public let number: UInt64
    /// The name under which its client feeds the log.
    public let client: String
    /// Counts the connections of all clients of a log from 1 on.
    public let connection: Int

    init(_ raw: RawFrame, number: UInt64, client: String, connection: Int, _ content: any FrameContent) {
        self.raw = raw
        self.content = content
        self.number = number
        self.client = client
        self.connection = connection
    }

    /// Milliseconds since 1970, UTC.
    public var time: Int64 { raw.moment.time }
    /// Whether the client sent or received the frame.
    public var direction: FrameDirection { raw.moment.direction }
    /// The protocol and its version: `MQTT 5.0`, `STOMP 1.2`.
    public var protocolName: String { content.protocolName }
    /// The packet's type or the frame's command as it is written: `PUBLISH`, `SEND`; `heart-beat` for a line end alone.
    public var type: String { content.typeName }
    /// Bytes on the wire.
    public var size: Int { raw.size }
    /// The topic, topic filters or destination.
    public var destination: String? { content.destination }
    /// The quality of service of an MQTT message: 0, 1 or 2.
    public var qos: Int? { content.qos }
    /// Bytes of the payload or body.
    public var payloadCount: Int { content.payloadCount }
    /// The bytes, of which passwords, passcodes and authentication data are replaced by as many `*`. A frame that is
    /// larger than an eighth of the log's bound has only its first 4096 bytes.
    public var bytes: [UInt8] { raw.bytes }
    /// Whether its sender says goodbye with it.
    var endsConnection: Bool { content.endsConnection }
    /// Whether it is the first frame of its connection.
    var opensConnection: Bool { content.opensConnection }
    /// Whether its payload is a message to or from the destination.
    package var carriesMessage: Bool { content.carriesMessage }
    /// What it asks for or answers.
    package var exchange: FrameExchange { content.exchange }
    /// Nanoseconds of the monotonic clock, for durations.
    package var instant: Int64 { raw.moment.instant }

    /// Whether all bytes were kept.
    public var isWhole: Bool { raw.missingCount == 0 }

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

/// A decoded frame: what its log shows. Text is made only when it is read.
package protocol FrameContent: Sendable {
    var protocolName: String { get }
    var typeName: String { get }
    var destination: String? { get }
    var qos: Int? { get }
    var payloadCount: Int { get }
    /// Whether it is the first frame of its connection.
    var opensConnection: Bool { get }
    /// Whether its sender says goodbye with it.
    var endsConnection: Bool { get }
    /// Whether its payload is a message to or from the destination.
    var carriesMessage: Bool { get }
    var exchange: FrameExchange { get }
    /// What the frame means for a message.
    var messageEvent: MessageEvent? { get }
    var fields: [LoggedFrame.Field] { get }
    var note: String { get }
    var payloadPreview: String? { get }
}

extension FrameContent {
    package var destination: String? { nil }
    package var qos: Int? { nil }
    package var payloadCount: Int { 0 }
    package var opensConnection: Bool { false }
    package var endsConnection: Bool { false }
    package var carriesMessage: Bool { false }
    package var exchange: FrameExchange { FrameExchange() }
    package var messageEvent: MessageEvent? { nil }
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
