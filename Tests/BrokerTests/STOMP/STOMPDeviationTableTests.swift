import Foundation
import TestSupport
import Testing

/// In what the brokers depart from the specification or from each other, each with the tests that show what a user of
/// the client sees of it.
@Suite(.turns) struct STOMPDeviationTableTests {
    struct Deviation: Sendable {
        var subject: String
        var rabbitMQ: [String]
        var activeMQ: [String]
        /// Nil where its documentation says nothing that concerns the client.
        var artemis: [String]?

        init(_ subject: String, rabbitMQ: String..., activeMQ: String..., artemis: [String]? = nil) {
            self.subject = subject
            self.rabbitMQ = rabbitMQ
            self.activeMQ = activeMQ
            self.artemis = artemis
        }

        init(_ subject: String, both: String..., artemis: [String]? = nil) {
            self.subject = subject
            rabbitMQ = both
            activeMQ = both
            self.artemis = artemis
        }
    }

    static let odd = "oddFrameIsAnsweredInTheBrokersWay"

    static let all: [Deviation] = [
        Deviation(
            "after ERROR the connection may stay",
            rabbitMQ: "rabbitMQErrorEndsTheSessionThoughTheSocketStaysOpen", odd,
            activeMQ: "refusedDestinationIsToldByEachBrokerInItsWords", odd),
        Deviation(
            "receipt-id on ERROR", rabbitMQ: "rabbitMQErrorEndsTheSessionThoughTheSocketStaysOpen", odd,
            activeMQ: "refusedDestinationIsToldByEachBrokerInItsWords", odd),
        Deviation(
            "RECEIPT after the ERROR for the same frame",
            rabbitMQ: "rabbitMQReceiptAfterAnErrorDoesNotOverturnIt", odd, activeMQ: odd),
        Deviation(
            "what else is in ERROR", rabbitMQ: odd, activeMQ: "refusedDestinationIsToldByEachBrokerInItsWords", odd),
        Deviation(
            "CONNECT is unescaped", rabbitMQ: "rabbitMQTakesABackslashInAPasscodeWithItsEscaping",
            activeMQ: "activeMQTakesABackslashInAPasscodeWithRabbitMQsEscaping"),
        Deviation(
            "escaping in 1.0", rabbitMQ: "rabbitMQEscapesAndUnescapesInOneDotZeroToo",
            activeMQ: "activeMQUnescapesButDoesNotEscapeInOneDotZero"),
        Deviation("carriage returns in 1.1", both: "carriageReturnsInOneDotOne"),
        Deviation(
            "undefined escapes", rabbitMQ: odd, "rabbitMQEscapesAndUnescapesInOneDotZeroToo",
            activeMQ: odd, "undefinedEscapesOfOthersReachUsAsText"),
        Deviation(
            "heart-beats", both: "quietConnectionIsKeptByItsHeartBeats", "frozenBrokerIsNoticedAndComeBackTo",
            artemis: ["beatsComeWellWithinWhatItTolerates"]),
        Deviation(
            "virtual hosts", rabbitMQ: "rabbitMQTakesTheHostForAVirtualHost",
            activeMQ: "hostAndClientIDAreIgnoredByOneEach"),
        Deviation(
            "destinations",
            rabbitMQ: "rabbitMQErrorEndsTheSessionThoughTheSocketStaysOpen", "rabbitMQNamesTheTopicForAnExchange",
            activeMQ: "activeMQTakesAnyNameForAQueue", artemis: ["wishesBecomeItsHeaders"]),
        Deviation(
            "wildcards", rabbitMQ: "wildcardsBringMessagesOfOtherDestinations", "rabbitMQHasWildcardsForTopicsOnly",
            activeMQ: "wildcardsBringMessagesOfOtherDestinations", "activeMQHasWildcardsForQueuesToo",
            artemis: ["messagesOfAnyDestinationBelongToTheSubscriptionTheyName"]),
        Deviation("overlapping subscriptions", both: "overlappingSubscriptionsGetACopyEach"),
        Deviation("subscriptions without an id", both: odd),
        Deviation("subscription ids used twice", both: odd, "durableSubscriptionThatWouldBeNobodysIsRefused"),
        Deviation("unknown ack modes", both: odd, "clientRefusesToWriteThem"),
        Deviation("the ack header", both: "ackHeaderIsTheMessageIDOrNot", "clientAcksAreCumulative"),
        Deviation(
            "NACK", rabbitMQ: "rabbitMQHandsARejectedMessageOutAgainUnlessToldNotTo",
            activeMQ: "activeMQKeepsARejectedMessageToItself", "activeMQRejectsItsOwnMessageAloneInModeClient",
            artemis: ["rejectionIsRefused"]),
        Deviation(
            "ACK in mode client", rabbitMQ: "rabbitMQAcknowledgesOtherSubscriptionsInModeClient",
            activeMQ: "clientAcksAreCumulative"),
        Deviation(
            "transactions",
            rabbitMQ: "receiptInATransactionComesAtOnceOrWithItsCommit",
            "rabbitMQShowsHeadersOfTransactionsThatDoNoHarm",
            odd, activeMQ: "receiptInATransactionComesAtOnceOrWithItsCommit", odd),
        Deviation(
            "client-id", rabbitMQ: "hostAndClientIDAreIgnoredByOneEach", activeMQ: "activeMQClientIDInUseHealsByItself",
            artemis: ["durableSubscriptionNeedsAClientID"]),
        Deviation(
            "durable subscriptions",
            rabbitMQ: "durableSubscriptionIsKeptUntilItIsUnsubscribed",
            "rabbitMQQueueOfADurableSubscriptionMayBeNamed", "rabbitMQDeletesDurableSubscriptionsToTopicsOnly",
            activeMQ: "durableSubscriptionIsKeptUntilItIsUnsubscribed",
            "durableSubscriptionThatWouldBeNobodysIsRefused",
            artemis: ["wishesBecomeItsHeaders", "durableSubscriptionIsDeletedWithTheNameThatMadeIt"]),
        Deviation(
            "selectors", rabbitMQ: "selectorsAreRefusedForRabbitMQBeforeItIsAsked", "rabbitMQPassesOverSelectors",
            activeMQ: "activeMQObeysSelectors", artemis: ["wishesBecomeItsHeaders"]),
        Deviation("prefetch", both: "prefetchBoundsWhatIsNotAcknowledged", artemis: ["wishesBecomeItsHeaders"]),
        Deviation(
            "arguments of queues", rabbitMQ: "rabbitMQObeysPrioritiesInAQueueMadeForThem",
            activeMQ: "activeMQObeysPriorities"),
        Deviation(
            "reply-to", rabbitMQ: "repliesComeOverTemporaryQueues", "rabbitMQMakesReplyQueuesByItselfOnly",
            activeMQ: "repliesComeOverTemporaryQueues", "activeMQShowsOthersARemoteNameOfTheReplyQueue",
            artemis: ["requestsSayThatItsTemporaryQueuesAreUnknown"]),
        Deviation(
            "queues that nobody has made",
            rabbitMQ: "rabbitMQReceiptAfterAnErrorDoesNotOverturnIt", "rabbitMQConfirmsWhatItLoses",
            activeMQ: "activeMQTakesAnyNameForAQueue"),
        Deviation(
            "content-length", rabbitMQ: "rabbitMQAlwaysTellsTheLength",
            activeMQ: "activeMQTextMessagesComeWithoutALength", artemis: ["textIsWhatComesWithoutALength"]),
        Deviation("limits", both: "activeMQLimitsAreToldBeforeTheyAreReached"),
        Deviation("line ends after frames", both: "framesBeforeConnectedAreTaken"),
        Deviation(
            "WebSockets",
            rabbitMQ: "rabbitMQWebSocketCloseAfterDisconnectIsSuccess",
            "rabbitMQPutsBytesIntoTextMessagesOfAWebSocket", "closeInsteadOfAReceiptIsAnOrderlyEnd",
            "framesAreFoundHoweverTheyAreCut",
            // It has them over a gateway only, which is a server like any other.
            activeMQ: "framesAreFoundHoweverTheyAreCut",
            artemis: ["framesAreFoundHoweverTheyAreCut"]),
        Deviation("frames before CONNECTED", both: "framesBeforeConnectedAreTaken"),
        Deviation(
            "refused credentials", both: "wrongPasscodeIsNotTriedAgain", artemis: ["refusedCredentialsAreRecognised"]),
        // Not in other tables: it pages a queue in by 200, and looks for the next page upon an acknowledgement.
        Deviation("acknowledging many at once", both: "noConfirmedMessageIsLostWhenTheBrokerIsKilled"),
    ]

    @Test func eachDeviationHasTestsThatExist() throws {
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        var sources = ""
        for folder in ["BrokerTests/STOMP", "STOMPTests"] {
            let files = try #require(
                FileManager.default.enumerator(
                    at: tests.appendingPathComponent(folder), includingPropertiesForKeys: nil))
            for case let file as URL in files where file.pathExtension == "swift" {
                sources += try String(contentsOf: file, encoding: .utf8)
            }
        }
        for deviation in Self.all {
            for names in [
                deviation.rabbitMQ, deviation.activeMQ, deviation.artemis ?? ["eachDeviationHasTestsThatExist"],
            ] {
                #expect(!names.isEmpty, "\(deviation.subject): a broker without a test")
                for name in names {
                    #expect(sources.contains("func \(name)("), "\(deviation.subject): no test \(name)")
                }
            }
        }
    }
}
