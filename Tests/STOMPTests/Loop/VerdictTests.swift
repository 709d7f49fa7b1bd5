import MessagingShell
import TestSupport
import Testing
import Transport

@testable import STOMP

@Suite(.turns) struct VerdictTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let failure: STOMPError
        let withFixedCredentials: ReconnectVerdict
        let withProvider: ReconnectVerdict

        init(
            _ code: STOMPError.Code, _ underlying: TransportError.Code? = nil, _ withFixedCredentials: ReconnectVerdict,
            _ withProvider: ReconnectVerdict
        ) {
            failure = STOMPError(code, "", underlying: underlying.map { TransportError($0, "") })
            self.withFixedCredentials = withFixedCredentials
            self.withProvider = withProvider
        }

        var testDescription: String {
            "\(failure.code)\((failure.underlying as? TransportError).map { ", \($0.code)" } ?? "")"
        }
    }

    static let rows = [
        Row(.badCredentials, nil, .giveUp, .askForCredentials),
        Row(.noCredentials, nil, .wait, .wait),
        Row(.unsupportedVersion, nil, .giveUpServer, .giveUpServer),
        Row(.protocolError, nil, .wait, .wait),
        Row(.connectionLost, nil, .wait, .wait),
        Row(.refused, nil, .wait, .wait),
        Row(.connectionRefused, .connectionRefused, .wait, .wait),
        Row(.unsupported, .unsupported, .giveUp, .giveUp),
        Row(.connectFailed, .connectionLost, .wait, .wait),
        Row(.noCredentials, .unsupported, .wait, .wait),
        Row(.badURL, .badURL, .giveUp, .giveUp),
        Row(.timedOut, nil, .wait, .wait),
        Row(.invalidRequest, nil, .giveUp, .giveUp),
    ]

    @Test(arguments: rows) func `what follows a failure depends on where credentials come from`(row: Row) {
        #expect(row.failure.verdict(hasCredentialsProvider: false) == row.withFixedCredentials)
        #expect(row.failure.verdict(hasCredentialsProvider: true) == row.withProvider)
    }
}
