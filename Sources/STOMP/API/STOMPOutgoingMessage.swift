/// A message to be sent, for those who send many at once.
public struct STOMPOutgoingMessage: Sendable {
    /// The body.
    public var body: [UInt8]
    /// The destination in the broker's notation.
    public var destination: String
    /// What the message asks of the broker.
    public var options: STOMPSendOptions

    /// Makes a message.
    public init(_ body: [UInt8], to destination: String, options: STOMPSendOptions = STOMPSendOptions()) {
        self.body = body
        self.destination = destination
        self.options = options
    }

    /// Text, as UTF-8.
    public init(_ text: String, to destination: String, options: STOMPSendOptions = STOMPSendOptions()) {
        self.init(Array(text.utf8), to: destination, options: options)
    }
}
