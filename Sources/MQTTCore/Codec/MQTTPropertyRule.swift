/// What the specification says about one property: its type, and which packets may carry it how often.
struct MQTTPropertyRule {
    /// The type of the value, with its range where there is one.
    enum Kind {
        /// A byte that is 0 or 1.
        case flag
        case uint16
        /// A Two Byte Integer above zero.
        case positive16
        case uint32
        /// A Four Byte Integer above zero.
        case positive32
        /// A Variable Byte Integer above zero.
        case positiveVariable
        case string
        /// A string of at least one character, without wildcards.
        case topicName
        case binary
        case pair
    }

    /// The packets that have properties, and the will, whose properties are its own.
    struct Carriers: OptionSet {
        let rawValue: UInt16

        static let will = Carriers(rawValue: 1)
        static let connect = Carriers(.connect)
        static let connack = Carriers(.connack)
        static let publish = Carriers(.publish)
        static let subscribe = Carriers(.subscribe)
        static let disconnect = Carriers(.disconnect)
        static let auth = Carriers(.auth)
        static let answers: Carriers = [
            .connack, .disconnect, .auth, Carriers(.puback), Carriers(.pubrec), Carriers(.pubrel), Carriers(.pubcomp),
            Carriers(.suback), Carriers(.unsuback),
        ]
        static let all: Carriers = [.will, .connect, .publish, .subscribe, Carriers(.unsubscribe), .answers]

        init(rawValue: UInt16) {
            self.rawValue = rawValue
        }

        init(_ type: MQTTPacketType) {
            rawValue = 1 << UInt16(type.rawValue)
        }
    }

    let kind: Kind
    let carriers: Carriers
    /// The packets that may carry it more than once.
    let repeatable: Carriers

    private init(_ kind: Kind, _ carriers: Carriers, repeatable: Carriers = []) {
        self.kind = kind
        self.carriers = carriers
        self.repeatable = repeatable
    }

    /// The table of section 2.2.2.2.
    static func rule(for identifier: MQTTPropertyIdentifier) -> MQTTPropertyRule {
        switch identifier {
        case .payloadFormatIndicator: .init(.flag, [.publish, .will])
        case .messageExpiryInterval: .init(.uint32, [.publish, .will])
        case .contentType: .init(.string, [.publish, .will])
        case .responseTopic: .init(.topicName, [.publish, .will])
        case .correlationData: .init(.binary, [.publish, .will])
        case .subscriptionIdentifier: .init(.positiveVariable, [.publish, .subscribe], repeatable: .publish)
        case .sessionExpiryInterval: .init(.uint32, [.connect, .connack, .disconnect])
        case .assignedClientIdentifier: .init(.string, .connack)
        case .serverKeepAlive: .init(.uint16, .connack)
        case .authenticationMethod: .init(.string, [.connect, .connack, .auth])
        case .authenticationData: .init(.binary, [.connect, .connack, .auth])
        case .requestProblemInformation: .init(.flag, .connect)
        case .willDelayInterval: .init(.uint32, .will)
        case .requestResponseInformation: .init(.flag, .connect)
        case .responseInformation: .init(.string, .connack)
        case .serverReference: .init(.string, [.connack, .disconnect])
        case .reasonString: .init(.string, .answers)
        case .receiveMaximum: .init(.positive16, [.connect, .connack])
        case .topicAliasMaximum: .init(.uint16, [.connect, .connack])
        case .topicAlias: .init(.positive16, .publish)
        case .maximumQoS: .init(.flag, .connack)
        case .retainAvailable: .init(.flag, .connack)
        case .userProperty: .init(.pair, .all, repeatable: .all)
        case .maximumPacketSize: .init(.positive32, [.connect, .connack])
        case .wildcardSubscriptionAvailable: .init(.flag, .connack)
        case .subscriptionIdentifierAvailable: .init(.flag, .connack)
        case .sharedSubscriptionAvailable: .init(.flag, .connack)
        }
    }

    /// The values that an integer of this kind may have.
    var integers: ClosedRange<UInt32>? {
        switch kind {
        case .flag: 0...1
        case .uint16: 0...0xFFFF
        case .positive16: 1...0xFFFF
        case .uint32: 0...UInt32.max
        case .positive32: 1...UInt32.max
        case .positiveVariable: 1...UInt32(VariableByteInteger.maximum)
        case .string, .topicName, .binary, .pair: nil
        }
    }
}
