/// Something that our own side must not do. It is thrown before anything is written, and changes nothing.
public struct STOMPUsageError: Error, Sendable, Hashable, CustomStringConvertible {
    /// What kind of misuse; more may be added.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        public let description: String

        /// There is no connection, or CONNECTED has not come yet.
        public static let notConnected = Code(description: "notConnected")
        /// DISCONNECT was sent; nothing may follow it.
        public static let disconnecting = Code(description: "disconnecting")
        /// The operation belongs to the other role.
        public static let wrongRole = Code(description: "wrongRole")
        /// A header name or value cannot be written in this version.
        public static let unencodableHeader = Code(description: "unencodableHeader")
        /// A header that the operation writes itself.
        public static let reservedHeader = Code(description: "reservedHeader")
        /// A frame that may not have a body was given one.
        public static let unexpectedBody = Code(description: "unexpectedBody")
        /// The subscription id is in use.
        public static let duplicateSubscription = Code(description: "duplicateSubscription")
        /// There is no such subscription.
        public static let unknownSubscription = Code(description: "unknownSubscription")
        /// Messages of a subscription in mode `auto` are not acknowledged.
        public static let acknowledgingAutoSubscription = Code(description: "acknowledgingAutoSubscription")
        /// The message carries nothing that an acknowledgement could name.
        public static let notAcknowledgeable = Code(description: "notAcknowledgeable")
        /// The negotiated version does not have the operation.
        public static let unsupportedByVersion = Code(description: "unsupportedByVersion")
        /// The transaction was ended, or its connection was.
        public static let transactionEnded = Code(description: "transactionEnded")
        /// The message came over a connection that is gone.
        public static let staleMessage = Code(description: "staleMessage")
        /// A receipt id that is in flight, or looks like one of the engine's own.
        public static let invalidReceiptID = Code(description: "invalidReceiptID")
        /// As many receipts are awaited as the configuration allows.
        public static let tooManyReceipts = Code(description: "tooManyReceipts")
        /// A broker limit known from its profile would be exceeded.
        public static let brokerLimit = Code(description: "brokerLimit")
        /// An option is out of its range.
        public static let invalidOption = Code(description: "invalidOption")
    }

    public var code: Code
    /// What happened, which value, and what to do instead.
    public var message: String

    public init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    public var description: String { message }
}
