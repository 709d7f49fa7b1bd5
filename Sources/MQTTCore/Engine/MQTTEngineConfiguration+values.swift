extension MQTTEngineConfiguration {
    /// What copies of a configuration share until one of them is changed: a client's engine looks at it when it connects
    /// and seldom after that, and thousands of engines are mostly told the same.
    final class Rest: Sendable {
        struct Values: Sendable {
            var keepAlive: UInt16 = 60
            var sessionExpiry: UInt32 = 0
            var will: MQTTWill?
            var authenticationMethod: String?
            var connectProperties: MQTTProperties = MQTTProperties()
            var acceptsUnknownSession: Bool = false
            var republishesAfterSessionLoss: Bool = true
            var receiveMaximum: UInt16 = 1024
            var maximumPacketSize: UInt32 = 16 << 20
            var maximumControlPacketSize: UInt32 = 256 << 10
            var topicAliasMaximum: UInt16 = 64
            var outboundTopicAliasMaximum: UInt16 = 32
            var maximumQueuedMessages: Int = 10_000
            var maximumQueuedBytes: Int = 16 << 20
            var queuesQoS0WhileDisconnected: Bool = false
            var subscribesFirst: Bool = false
            var dropsInvalidMessages: Bool = false
            var connectTimeout: Int64 = 30_000_000_000
            var pingTimeout: Int64 = 20_000_000_000
            var requestTimeout: Int64 = 30_000_000_000
            var wallClockOffset: Int64 = 0
        }

        let values: Values

        static let standard = Rest(Values())

        init(_ values: Values) {
            self.values = values
        }
    }

    /// The credentials that a client presents. Never shown.
    final class Secrets: Sendable, CustomReflectable {
        struct Values: Sendable {
            var userName: String?
            var password: [UInt8]?
            var authenticationData: [UInt8]?
        }

        let values: Values

        init(_ values: Values) {
            self.values = values
        }

        var customMirror: Mirror { Mirror(self, children: []) }
    }
}
