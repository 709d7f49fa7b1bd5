import Testing

@testable import MessagingJudge

/// Each rule for clients of STOMP: a conversation that breaks it and nothing else, and one like it that breaks nothing.
@Suite struct STOMPClauseTests {
    struct Case {
        let clause: Clause
        let breaks: STOMPScript
        let keeps: STOMPScript

        init(_ clause: Clause, breaks: STOMPScript, keeps: STOMPScript) {
            (self.clause, self.breaks, self.keeps) = (clause, breaks, keeps)
        }
    }

    private static let v10 = STOMPScript().client("CONNECT").server("CONNECTED session:1")
    private static let v11 = STOMPScript.connected("1.1")
    private static let v12 = STOMPScript.connected("1.2")

    /// What both sides can send and want to receive, in milliseconds.
    private static func beating(_ client: String, _ server: String) -> STOMPScript {
        STOMPScript().client("CONNECT accept-version:1.2 host:h heart-beat:\(client)")
            .server("CONNECTED version:1.2 heart-beat:\(server)")
    }

    static let connectionCases: [Case] = [
        Case(
            .malformedFrame, breaks: v12.client("SEND destination:/a x:\\t"),
            keeps: v10.client("SEND destination:/a x:\\t")),
        Case(
            .malformedFrame, breaks: v11.client("SEND destination:/a x:\\r"),
            keeps: v12.client("SEND destination:/a x:\\r")),
        Case(
            .malformedFrame, breaks: v12.client("BEGIN transaction:1", body: "x"),
            keeps: v12.client("SEND destination:/a", body: "x")),
        Case(
            .malformedFrame, breaks: v12.client("SEND destination:/a content-length:1", body: "xy"),
            keeps: v12.client("SEND destination:/a content-length:2", body: "xy")),
        Case(
            .headerNotEscaped, breaks: v12.client("SEND destination:/a x:b:c"),
            keeps: v12.client("SEND destination:/a x:b\\cc")),
        Case(.headerNotEscaped, breaks: v11.client("SEND destination:a:b"), keeps: v10.client("SEND destination:a:b")),
        Case(
            .frameOfServer, breaks: v12.client("RECEIPT receipt-id:1"),
            keeps: v12.client("SEND destination:/a receipt:1").server("RECEIPT receipt-id:1")),
        Case(
            .connectFrameFirst, breaks: STOMPScript().client("SEND destination:/a"),
            keeps: v12.client("SEND destination:/a")),
        Case(
            .connectFrameOnce, breaks: v12.client("CONNECT accept-version:1.2 host:h"),
            keeps: v12.client("DISCONNECT")),
        Case(
            .connectHeaderMissing, breaks: STOMPScript().client("CONNECT accept-version:1.0,1.2"),
            keeps: STOMPScript().client("CONNECT accept-version:1.0")),
        Case(
            .connectHeaderMissing, breaks: STOMPScript().client("STOMP host:h"),
            keeps: STOMPScript().client("STOMP accept-version:1.2 host:h")),
        Case(
            .receiptOnConnect, breaks: STOMPScript().client("CONNECT accept-version:1.2 host:h receipt:1"),
            keeps: STOMPScript().client("CONNECT accept-version:1.2 host:h")),
        Case(
            .frameAfterDisconnect, breaks: v12.client("DISCONNECT").client("SEND destination:/a"),
            keeps: v12.client("SEND destination:/a").client("DISCONNECT").client(bytes: "\n")),
        Case(.heartBeat, breaks: v12.wait(16).client(bytes: "\n"), keeps: v12.wait(10).client(bytes: "\n")),
        Case(
            .heartBeat, breaks: v11.wait(16).client("SEND destination:/a"),
            keeps: v10.wait(100).client("SEND destination:/a")),
        Case(
            .heartBeat, breaks: beating("5000,0", "0,10000").wait(16).client(bytes: "\n"),
            keeps: beating("5000,0", "10000,0").wait(100).client(bytes: "\n")),
        Case(
            .heartBeat, breaks: beating("20000,5000", "0,10000").wait(31).client(bytes: "\n"),
            keeps: beating("0,5000", "10000,10000").wait(100).client(bytes: "\n")),
    ]

    private static let one = v12.subscribed("1", "client-individual").message("1", "a")
    private static let two = v12.subscribed("1", "client").message("1", "a").message("1", "b").message("1", "c")

    static let messageCases: [Case] = [
        Case(.destinationMissing, breaks: v12.client("SEND"), keeps: v12.client("SEND destination:/a")),
        Case(
            .destinationMissing, breaks: v12.client("SUBSCRIBE id:1"),
            keeps: v12.client("SUBSCRIBE id:1 destination:/a")),
        Case(
            .subscriptionIDMissing, breaks: v11.client("SUBSCRIBE destination:/a"),
            keeps: v10.client("SUBSCRIBE destination:/a").client("UNSUBSCRIBE destination:/a")),
        Case(
            .subscriptionIDMissing, breaks: one.client("UNSUBSCRIBE destination:/queue/q"),
            keeps: one.client("UNSUBSCRIBE id:1")),
        Case(
            .subscriptionIDInUse, breaks: one.subscribed("1", "auto"),
            keeps: one.client("UNSUBSCRIBE id:1").subscribed("1", "auto")),
        Case(
            .subscriptionUnknown, breaks: one.client("UNSUBSCRIBE id:2"),
            keeps: one.subscribed("2", "auto").client("UNSUBSCRIBE id:2")),
        Case(.ackModeUnknown, breaks: v12.subscribed("1", "each"), keeps: v12.subscribed("1", "client")),
        Case(.ackModeUnknown, breaks: v10.subscribed("1", "client-individual"), keeps: v10.subscribed("1", "client")),
        Case(.ackHeaderMissing, breaks: one.client("ACK message-id:ma subscription:1"), keeps: one.client("ACK id:a")),
        Case(
            .ackHeaderMissing, breaks: v11.subscribed("1", "client").message("1", "a").client("ACK message-id:ma"),
            keeps: v11.subscribed("1", "client").message("1", "a").client("ACK message-id:ma subscription:1")),
        Case(.ackOfUnknownMessage, breaks: one.client("ACK id:b"), keeps: one.message("1", "b").client("ACK id:b")),
        Case(
            .ackOfUnknownMessage,
            breaks: v11.subscribed("1", "client").message("1", "a").client("ACK message-id:ma subscription:2"),
            keeps: v10.subscribed("1", "client").message("1", "a").client("ACK message-id:ma")),
        Case(
            .ackTwice, breaks: one.client("ACK id:a").client("NACK id:a"),
            keeps: one.client("NACK id:a").message("1", "a").client("ACK id:a")),
        Case(
            .ackTwice, breaks: two.client("ACK id:b").client("ACK id:a"),
            keeps: v12.subscribed("1", "client-individual").message("1", "a").message("1", "b").client("ACK id:b")
                .client("ACK id:a")),
        Case(
            .ackTwice,
            breaks: one.client("BEGIN transaction:t").client("ACK id:a transaction:t").client("COMMIT transaction:t")
                .client("ACK id:a"),
            keeps: one.client("BEGIN transaction:t").client("ACK id:a transaction:t").client("ABORT transaction:t")
                .client("ACK id:a")),
        Case(
            .ackTwice, breaks: two.client("BEGIN transaction:t").client("ACK id:c transaction:t").client("ACK id:a"),
            keeps: two.client("BEGIN transaction:t").client("ACK id:a transaction:t").client("ACK id:c")),
        Case(
            .ackInAutoMode, breaks: v12.subscribed("1", "auto").message("1", "a").client("ACK id:a"),
            keeps: one.client("ACK id:a")),
        Case(
            .nackInVersion10, breaks: v10.subscribed("1", "client").message("1", "a").client("NACK message-id:ma"),
            keeps: v11.subscribed("1", "client").message("1", "a").client("NACK message-id:ma subscription:1")),
        Case(.transactionMissing, breaks: v12.client("BEGIN"), keeps: v12.client("BEGIN transaction:1")),
        Case(
            .transactionInUse, breaks: v12.client("BEGIN transaction:1").client("BEGIN transaction:1"),
            keeps: v12.client("BEGIN transaction:1").client("BEGIN transaction:2")),
        Case(
            .transactionUnknown, breaks: v12.client("BEGIN transaction:1").client("COMMIT transaction:2"),
            keeps: v12.client("BEGIN transaction:1").client("COMMIT transaction:1")),
        Case(
            .transactionUnknown,
            breaks: v12.client("BEGIN transaction:1").client("ABORT transaction:1").client("ABORT transaction:1"),
            keeps: v12.client("BEGIN transaction:1").client("ABORT transaction:1")),
        Case(
            .transactionUnknown, breaks: v12.client("SEND destination:/a transaction:1"),
            keeps: v12.client("BEGIN transaction:1").client("SEND destination:/a transaction:1")),
        Case(
            .transactionUnknown, breaks: one.client("ACK id:a transaction:1"),
            keeps: one.client("BEGIN transaction:1").client("ACK id:a transaction:1")),
    ]

    static let promiseCases: [Case] = [
        Case(
            .frameBeforeConnected, breaks: STOMPScript().client("CONNECT").client("SEND destination:/a"),
            keeps: v10.client("SEND destination:/a")),
        Case(
            .receiptReused,
            breaks: v12.client("SEND destination:/a receipt:1").server("RECEIPT receipt-id:1").client(
                "SEND destination:/a receipt:1"),
            keeps: v12.client("SEND destination:/a receipt:1").client("SEND destination:/a receipt:2")),
        Case(
            .transactionReused,
            breaks: v12.client("BEGIN transaction:1").client("COMMIT transaction:1").client("BEGIN transaction:1"),
            keeps: v12.client("BEGIN transaction:1").client("COMMIT transaction:1").client("BEGIN transaction:2")),
    ]

    static let cases = connectionCases + messageCases + promiseCases

    @Test(arguments: cases.indices)
    func `A conversation breaks this rule, and another keeps it`(index: Int) {
        let found = Self.cases[index]
        for pieces in [Int.max, 1, 3] {
            #expect(found.breaks.judged(pieces: pieces) == [found.clause], "\(found.breaks.violations())")
            #expect(found.keeps.judged(pieces: pieces) == [], "\(found.clause): \(found.keeps.violations())")
        }
    }

    @Test func `Each rule of STOMP has a conversation that breaks it`() {
        #expect(Set(Self.cases.map(\.clause)) == Set(Clause.allCases.filter(\.isOfSTOMP)))
    }

    @Test func `Promises of our clients are not examined in others`() {
        var options = JudgeOptions()
        (options.judgesPromises, options.judgesTime) = (false, true)
        for found in Self.cases {
            #expect(found.breaks.violations(options).isEmpty == found.clause.isPromise, "\(found.clause)")
        }
    }

    @Test func `A late heart-beat is no violation by the clock of a real machine`() {
        #expect(Self.v12.wait(1000).client(bytes: "\n").violations(JudgeOptions()).isEmpty)
    }

    @Test func `A violation shows the frame without credentials`() {
        let found = STOMPScript().client("CONNECT accept-version:1.2 client-id:c login:me passcode:secret1")
            .violations()
        #expect(
            found.map(\.description) == [
                "'c' broke the rule 'connectHeaderMissing' on connection 1. From 1.1 on accept-version and host are required. "
                    + "CONNECT accept-version:1.2, client-id:c, login:•••, passcode:••• [STOMP 1.1 and 1.2 CONNECT]"
            ])
    }
}
