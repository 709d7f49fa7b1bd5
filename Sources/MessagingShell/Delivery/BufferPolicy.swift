/// The bounds of a subscription's buffer, and what happens when it is full.
///
/// All messages are stored before the reader gets them, also while it waits, and then count no more. One read of the socket brings up
/// to 128 KiB, which may be thousands of small messages, or end a larger one: of these `dropOldest` keeps what the bounds
/// allow, the newest, and `pauseReading` stores all of them and reads on when the reader has taken them.
public struct BufferPolicy: Sendable, Equatable {
    /// What happens to messages without a delivery guarantee (MQTT QoS 0, STOMP `auto`) when the buffer is full.
    ///
    /// Messages with a guarantee are never dropped. With MQTT their acknowledgements are withheld until there is room, so that
    /// the server stops sending; with STOMP nothing more is read from the connection.
    public struct Overflow: Sendable, Equatable {
        package enum Kind: Sendable { case dropOldest, pauseReading }
        package let kind: Kind

        /// Drops the oldest waiting messages; the `droppedBefore` of the next received message counts them.
        public static let dropOldest = Overflow(kind: .dropOldest)
        /// Reads nothing more from the connection until the receiver has caught up. All subscriptions of the connection
        /// wait with it, and so do the server's answers. When the receiver has taken no message for `requestTimeout`, calls of
        /// the client that wait for an answer throw `timedOut`: a receiver that awaits a confirmation from the same client would
        /// wait for itself. Keep-alives are still sent.
        public static let pauseReading = Overflow(kind: .pauseReading)
    }

    /// The maximum number of waiting messages, at least 1. Default: 65,536.
    public var messages: Int { didSet { messages = max(1, messages) } }
    /// The maximum memory of waiting messages in bytes: their bytes, about 40 more for each, and 256 for those of one read.
    /// One read of the socket, up to 128 KiB, may exceed it. At least 1. Default: 16 MiB.
    public var bytes: Int { didSet { bytes = max(1, bytes) } }
    /// What happens to messages without a guarantee when either bound is reached. Default: `dropOldest`.
    public var overflow: Overflow

    /// Makes a policy. Default: 65,536 messages, 16 MiB, and the oldest are dropped. Both bounds are at least 1.
    public init(messages: Int = 65_536, bytes: Int = 16 << 20, overflow: Overflow = .dropOldest) {
        self.messages = max(1, messages)
        self.bytes = max(1, bytes)
        self.overflow = overflow
    }
}
