/// Why bytes could not be moved: an open code, words for a person, and the system's own number where there is one.
public struct TransportError: Error, Equatable, Sendable, CustomStringConvertible {
    /// What kind of failure it was. More codes may come; switch with a default.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        public let name: String
        public var description: String { name }

        /// The name did not resolve to an address.
        public static let unknownHost = Code(name: "unknownHost")
        /// Nobody listens at the address.
        public static let connectionRefused = Code(name: "connectionRefused")
        /// No route, or the network is down.
        public static let unreachable = Code(name: "unreachable")
        /// The peer did not answer in time.
        public static let timedOut = Code(name: "timedOut")
        /// The task that waited was cancelled.
        public static let cancelled = Code(name: "cancelled")
        /// The peer ended the connection.
        public static let closedByPeer = Code(name: "closedByPeer")
        /// The connection broke.
        public static let connectionLost = Code(name: "connectionLost")
        /// The address is already taken, or may not be listened on.
        public static let cannotListen = Code(name: "cannotListen")
        /// A limit of the operating system was reached.
        public static let systemLimit = Code(name: "systemLimit")
        /// The URL is not one that this library understands.
        public static let badURL = Code(name: "badURL")
        /// What was asked for is not available here.
        public static let unsupported = Code(name: "unsupported")
    }

    public let code: Code
    public let message: String
    /// The `errno` of the system call that failed, or 0.
    public let errno: Int32

    public init(_ code: Code, _ message: String, errno: Int32 = 0) {
        self.code = code
        self.message = message
        self.errno = errno
    }

    public var description: String { message }
}
