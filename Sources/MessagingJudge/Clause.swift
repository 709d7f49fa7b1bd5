/// The rules for clients that a judge examines. `ClientObligations.md` is the table of all obligations; in the tests of this
/// module each rule has bytes that break it and bytes that keep it.
package enum Clause: String, Sendable, CaseIterable, CustomStringConvertible {
    // MARK: MQTT: the connection
    case malformedPacket
    case connectFirst
    case connectOnce
    case packetBeforeConnack
    case packetAfterDisconnect
    case packetFromServer
    case sessionPresentAfterCleanStart
    case keepAlive
    case expiryInDisconnect
    case authenticationWithoutMethod
    case authenticationMethodChanged
    case authenticationOutOfTurn

    // MARK: MQTT: what the server allows
    case maximumQoS
    case retainUnavailable
    case maximumPacketSize
    case receiveMaximum
    case aliasAboveMaximum
    case aliasUnknown
    case wildcardUnavailable
    case subscriptionIdentifierUnavailable
    case sharedUnavailable
    case subscriptionIdentifierInPublish

    // MARK: MQTT: exchanges
    case packetIdentifierInUse
    case duplicateFlagMissing
    case duplicateFlagOnFirst
    case repetitionDiffers
    case repetitionOutOfTurn
    case repetitionOrder
    case publishAfterPubrel
    case pubrelWithoutPubrec
    case pubrelOrder
    case pubackOrder
    case pubrecOrder
    case answerWithoutPublish
    case answerOfOtherQoS
    case pubcompWithoutPubrel

    // MARK: MQTT: promises of our clients
    case repetitionOnSameConnection
    case unfinishedFirst
    case expiryNotReduced
    case willChanged
    case sessionExpiryChanged
    case connectChanged
    case releaseNotCounted
    case needlessSubscribe
    case subscriptionIdentifierChanged

    // MARK: STOMP: frames and the connection
    case malformedFrame
    case headerNotEscaped
    case frameOfServer
    case connectFrameFirst
    case connectFrameOnce
    case connectHeaderMissing
    case receiptOnConnect
    case frameAfterDisconnect
    case heartBeat

    // MARK: STOMP: subscriptions, acknowledgements, transactions
    case destinationMissing
    case subscriptionIDMissing
    case subscriptionIDInUse
    case subscriptionUnknown
    case ackModeUnknown
    case ackHeaderMissing
    case ackOfUnknownMessage
    case ackTwice
    case ackInAutoMode
    case nackInVersion10
    case transactionMissing
    case transactionInUse
    case transactionUnknown

    // MARK: STOMP: promises of our clients
    case frameBeforeConnected
    case receiptReused
    case transactionReused

    package var description: String { rawValue }

    /// Whether it is a rule of STOMP.
    package var isOfSTOMP: Bool { reference.hasPrefix("STOMP") }

    /// Where the rule is written: ids of MQTT 5.0 (`v5`) and 3.1.1 (`v3`), or chapters of STOMP.
    package var reference: String { entry.reference }

    /// Whether only clients of this package promise it.
    package var isPromise: Bool { entry.isPromise }

    private struct Entry {
        let reference: String
        var isPromise = false

        init(_ reference: String) { self.reference = reference }

        static func promise(_ reference: String) -> Entry {
            var entry = Entry(reference)
            entry.isPromise = true
            return entry
        }
    }

    private var entry: Entry {
        switch self {
        case .malformedPacket: Entry("the clause is in the reason")
        case .connectFirst: Entry("v5 and v3 MQTT-3.1.0-1")
        case .connectOnce: Entry("v5 and v3 MQTT-3.1.0-2")
        case .packetBeforeConnack: Entry("v5 MQTT-3.1.2-30")
        case .packetAfterDisconnect: Entry("v5 MQTT-3.14.4-1, v3 MQTT-3.14.4-2")
        case .packetFromServer: Entry("v5 and v3 2.1.2 Table 2-1")
        case .sessionPresentAfterCleanStart: Entry("v5 MQTT-3.2.2-4")
        case .keepAlive: Entry("v5 MQTT-3.1.2-20 and MQTT-3.1.2-21, v3 MQTT-3.1.2-23")
        case .expiryInDisconnect: Entry("v5 3.14.2.2.2")
        case .authenticationWithoutMethod: Entry("v5 MQTT-4.12.0-7")
        case .authenticationMethodChanged: Entry("v5 MQTT-4.12.0-5 and MQTT-4.12.1-1")
        case .authenticationOutOfTurn: Entry("v5 MQTT-4.12.0-3 and MQTT-4.12.1-1")
        case .maximumQoS: Entry("v5 MQTT-3.2.2-11")
        case .retainUnavailable: Entry("v5 MQTT-3.2.2-14")
        case .maximumPacketSize: Entry("v5 MQTT-3.2.2-15")
        case .receiveMaximum: Entry("v5 MQTT-3.3.4-7 and MQTT-4.9.0-1")
        case .aliasAboveMaximum: Entry("v5 MQTT-3.2.2-17, MQTT-3.2.2-18 and MQTT-3.3.2-9")
        case .aliasUnknown: Entry("v5 MQTT-3.3.2-7 and 3.3.2.3.4")
        case .wildcardUnavailable: Entry("v5 3.2.2.3.11")
        case .subscriptionIdentifierUnavailable: Entry("v5 3.2.2.3.12")
        case .sharedUnavailable: Entry("v5 3.2.2.3.13")
        case .subscriptionIdentifierInPublish: Entry("v5 MQTT-3.3.4-6")
        case .packetIdentifierInUse: Entry("v5 MQTT-2.2.1-3, v3 MQTT-2.3.1-2")
        case .duplicateFlagMissing: Entry("v5 and v3 MQTT-3.3.1-1")
        case .duplicateFlagOnFirst: Entry("v5 MQTT-4.3.2-2 and MQTT-4.3.3-2, v3 MQTT-4.3.2-1 and MQTT-4.3.3-1")
        case .repetitionDiffers: Entry("v5 and v3 MQTT-4.4.0-1")
        case .repetitionOutOfTurn: Entry("v5 MQTT-4.4.0-1")
        case .repetitionOrder: Entry("v5 and v3 MQTT-4.6.0-1")
        case .publishAfterPubrel: Entry("v5 MQTT-4.3.3-6, v3 MQTT-4.3.3-1")
        case .pubrelWithoutPubrec: Entry("v5 MQTT-4.3.3-4, v3 MQTT-4.3.3-1")
        case .pubrelOrder: Entry("v5 and v3 MQTT-4.6.0-4")
        case .pubackOrder: Entry("v5 and v3 MQTT-4.6.0-2")
        case .pubrecOrder: Entry("v5 and v3 MQTT-4.6.0-3")
        case .answerWithoutPublish: Entry("v5 MQTT-2.2.1-5, v3 MQTT-2.3.1-6")
        case .answerOfOtherQoS: Entry("v5 MQTT-4.3.2-4 and MQTT-4.3.3-8, v3 MQTT-4.3.2-2 and MQTT-4.3.3-2")
        case .pubcompWithoutPubrel: Entry("v5 MQTT-4.3.3-11, v3 MQTT-4.3.3-2")
        case .repetitionOnSameConnection: .promise("v3 4.4")
        case .unfinishedFirst: .promise("v5 and v3 MQTT-4.4.0-1 and 4.6")
        case .expiryNotReduced: .promise("v5 3.3.2.3.3")
        case .willChanged: .promise("v5 and v3 3.1.2.5")
        case .sessionExpiryChanged: .promise("v5 3.1.2.11.2")
        case .connectChanged: .promise("v5 3.1.2.10 and 3.1.2.11, v3 3.1.2.10")
        case .releaseNotCounted: .promise("v5 4.9")
        case .needlessSubscribe: .promise("v5 and v3 3.8.4")
        case .subscriptionIdentifierChanged: .promise("v5 3.8.2.1.2")
        case .malformedFrame: Entry("STOMP 1.0 to 1.2, the rule is in the reason")
        case .headerNotEscaped: Entry("STOMP 1.1 and 1.2 Value Encoding")
        case .frameOfServer: Entry("STOMP 1.2 Client Frames")
        case .connectFrameFirst: Entry("STOMP 1.0 to 1.2 Connecting")
        case .connectFrameOnce: Entry("STOMP 1.0 to 1.2 Connecting")
        case .connectHeaderMissing: Entry("STOMP 1.1 and 1.2 CONNECT")
        case .receiptOnConnect: Entry("STOMP 1.1 and 1.2 Standard Headers, receipt")
        case .frameAfterDisconnect: Entry("STOMP 1.1 and 1.2 DISCONNECT")
        case .heartBeat: Entry("STOMP 1.1 and 1.2 Heart-beating")
        case .destinationMissing: Entry("STOMP 1.0 to 1.2 SEND and SUBSCRIBE")
        case .subscriptionIDMissing: Entry("STOMP 1.1 and 1.2 SUBSCRIBE id Header and UNSUBSCRIBE")
        case .subscriptionIDInUse: Entry("STOMP 1.1 and 1.2 SUBSCRIBE id Header")
        case .subscriptionUnknown: Entry("STOMP 1.1 and 1.2 UNSUBSCRIBE")
        case .ackModeUnknown: Entry("STOMP 1.0 to 1.2 SUBSCRIBE ack Header")
        case .ackHeaderMissing: Entry("STOMP 1.0 to 1.2 ACK and NACK")
        case .ackOfUnknownMessage: Entry("STOMP 1.0 to 1.2 ACK and NACK")
        case .ackTwice: Entry("STOMP 1.0 to 1.2 ACK and NACK")
        case .ackInAutoMode: Entry("STOMP 1.0 to 1.2 SUBSCRIBE ack Header")
        case .nackInVersion10: Entry("STOMP 1.0")
        case .transactionMissing: Entry("STOMP 1.0 to 1.2 BEGIN, COMMIT and ABORT")
        case .transactionInUse: Entry("STOMP 1.0 to 1.2 BEGIN")
        case .transactionUnknown: Entry("STOMP 1.0 to 1.2 SEND, ACK, COMMIT and ABORT")
        case .frameBeforeConnected: .promise("STOMP 1.0 to 1.2 Connecting")
        case .receiptReused: .promise("STOMP 1.0 to 1.2 RECEIPT")
        case .transactionReused: .promise("STOMP 1.0 to 1.2 BEGIN")
        }
    }
}
