import MQTTCore
import MessagingShell
import TestSupport
import Testing
import Transport

@testable import MQTT

@Suite(.turns) struct VerdictTests {
    /// What a client can change, as columns of the table: nothing, the version, the credentials, the server.
    private static let columns = [
        MQTTRetryOptions(), MQTTRetryOptions(hasOlderVersion: true), MQTTRetryOptions(hasCredentialsProvider: true),
        MQTTRetryOptions(hasNewServer: true),
    ]

    struct Row: Sendable, CustomTestStringConvertible {
        let failure: MQTTError
        /// What follows when the client can change nothing, the version, the credentials; another server is always tried.
        let verdicts: [ReconnectVerdict]

        init(
            _ code: MQTTError.Code, _ reason: MQTTReasonCode? = nil, _ underlying: TransportError.Code? = nil,
            _ verdicts: ReconnectVerdict...
        ) {
            failure = MQTTError(
                code, "", reasonCode: reason, underlying: underlying.map { TransportError($0, "") })
            self.verdicts = verdicts
        }

        var testDescription: String {
            let below = (failure.underlying as? TransportError).map { ", \($0.code)" } ?? ""
            return "\(failure.code)\(failure.reasonCode.map { ", \($0)" } ?? "")\(below)"
        }
    }

    static let rows = [
        Row(.badCredentials, .badUserNameOrPassword, nil, .giveUp, .giveUp, .askForCredentials),
        Row(.badCredentials, .notAuthorized, nil, .giveUp, .giveUp, .askForCredentials),
        Row(.badCredentials, .badAuthenticationMethod, nil, .giveUp, .giveUp, .giveUp),
        Row(.badCredentials, nil, nil, .giveUp, .giveUp, .giveUp),
        Row(.noCredentials, nil, nil, .wait, .wait, .wait),
        Row(.unsupportedVersion, .unsupportedProtocolVersion, nil, .giveUpServer, .retryNow, .giveUpServer),
        Row(.protocolError, .malformedPacket, nil, .wait, .retryNow, .wait),
        Row(.connectionLost, nil, nil, .wait, .retryNow, .wait),
        Row(.connectionLost, .serverShuttingDown, nil, .wait, .wait, .wait),
        Row(.takenOver, .sessionTakenOver, nil, .giveUp, .giveUp, .giveUp),
        Row(.refused, .serverBusy, nil, .wait, .wait, .wait),
        Row(.refused, .clientIdentifierNotValid, nil, .giveUp, .giveUp, .giveUp),
        Row(.refused, .banned, nil, .giveUp, .giveUp, .giveUp),
        Row(.connectionRefused, nil, .connectionRefused, .wait, .wait, .wait),
        Row(.unsupported, nil, .unsupported, .giveUp, .giveUp, .giveUp),
        Row(.certificatePinMismatch, nil, .certificatePinMismatch, .giveUp, .giveUp, .giveUp),
        Row(.preSharedKeyRefused, nil, .preSharedKeyRefused, .giveUp, .giveUp, .giveUp),
        Row(.certificateRefused, nil, .certificateRefused, .wait, .wait, .wait),
        Row(.certificateRevoked, nil, .certificateRevoked, .wait, .wait, .wait),
        Row(.connectFailed, nil, .connectionLost, .wait, .wait, .wait),
        Row(.noCredentials, nil, .unsupported, .wait, .wait, .wait),
        Row(.badURL, nil, .badURL, .giveUp, .giveUp, .giveUp),
        Row(.timedOut, nil, nil, .wait, .wait, .wait),
        Row(.invalidRequest, nil, nil, .giveUp, .giveUp, .giveUp),
        Row(.storeFailed, nil, nil, .giveUp, .giveUp, .giveUp),
        Row(.sessionBlocked, nil, nil, .giveUp, .giveUp, .giveUp),
    ]

    @Test(arguments: rows) func `what follows a failure depends on what the client can change`(row: Row) {
        // Another server does not help a store.
        let elsewhere: ReconnectVerdict = row.failure.code == .storeFailed ? .giveUp : .retryNow
        for (options, verdict) in zip(Self.columns, row.verdicts + [elsewhere]) {
            #expect(options.verdict(on: row.failure) == verdict, "\(options)")
        }
    }
}
