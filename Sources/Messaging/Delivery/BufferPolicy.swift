/// How many messages wait for a slow receiver, and what happens to the next one.
public struct BufferPolicy: Sendable, Equatable {
    /// What happens to messages without a delivery guarantee (MQTT QoS 0, STOMP `auto`) when the buffer is full.
    ///
    /// Messages with a guarantee are never dropped: their acknowledgements are withheld until there is room, so that
    /// the server stops sending.
    public struct Overflow: Sendable, Equatable {
        package enum Kind: Sendable { case dropOldest, pauseReading }
        package let kind: Kind

        /// The oldest waiting messages go; the next message received tells how many in its `droppedBefore`.
        public static let dropOldest = Overflow(kind: .dropOldest)
        /// Nothing more is read from the connection until the receiver has caught up. All subscriptions of the
        /// connection wait with it; keep-alives still go out.
        public static let pauseReading = Overflow(kind: .pauseReading)
    }

    /// The most messages that wait.
    public var messages: Int
    /// The most bytes that wait, in what the batches keep in memory.
    public var bytes: Int
    /// What happens to messages without a guarantee when either bound is reached.
    public var overflow: Overflow

    public init(messages: Int = 65_536, bytes: Int = 16 << 20, overflow: Overflow = .dropOldest) {
        self.messages = max(1, messages)
        self.bytes = max(1, bytes)
        self.overflow = overflow
    }
}
