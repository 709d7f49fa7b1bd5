import Foundation
import TestSupport
import Testing

/// What the specification and real brokers ask of a client, each with the tests that show it.
@Suite(.heavy) struct ObligationTests {
    struct Obligation: Sendable {
        var number: Int
        var duty: String
        /// Tests in this target.
        var tests: [String]
        /// Tests of the client or against real brokers, each behind the folder that it is in.
        var elsewhere: [String] = []

        init(_ number: Int, _ duty: String, _ tests: String..., elsewhere: String...) {
            self.number = number
            self.duty = duty
            self.tests = tests
            self.elsewhere = elsewhere
        }
    }

    static let vectors = "vectorGivesTheSameWholeByteByByteAndSplitAtRandom"

    static let all: [Obligation] = [
        Obligation(
            1, "the handshake is not escaped", "neverEscapesTheHandshake", "connectIsNeverEscapedUnlessAskedTo", vectors
        ),
        Obligation(2, "escapes by version", "escapesNamesAndValuesByVersion", vectors),
        Obligation(3, "an undefined escape is fatal", "violationsEndTheSessionAndAllWaits", vectors),
        Obligation(4, "unescaping in one pass", "whatIsEncodedIsDecodedEqualInEveryVersionAndSplit", vectors),
        Obligation(5, "names are escaped too", "escapesNamesAndValuesByVersion", vectors),
        Obligation(6, "blanks are kept, but in 1.0", "paddedReceiptOfOneDotZeroIsRead", vectors),
        Obligation(7, "split at the first colon", "idsThatTheServerWritesInAnotherFormAreFound", vectors),
        Obligation(8, "empty values, no empty names", "refusesWhatAVersionCannotCarryAndWritesNothing", vectors),
        Obligation(9, "the first of repeated headers wins", "headersKeepOrderAndTheFirstOfRepeatedOnesWins", vectors),
        Obligation(10, "case counts", "otherHeadersTravelWithTheMessage", vectors),
        Obligation(11, "CRLF, and CR only before LF", "readsWhatClientsAsk", vectors),
        Obligation(12, "EOLs between frames", "lineEndsAreCounted", "countsLineEndsBetweenFrames", vectors),
        Obligation(13, "content-length is checked", "violationsEndTheSessionAndAllWaits", vectors),
        Obligation(
            14, "content-length is sent", "sendWritesDestinationHeadersLengthAndBody",
            "contentLengthIsLeftOutOnRequestButNotBesideANul", "countsBytesNotCharacters"),
        Obligation(15, "three commands have bodies", "refusesABodyWhereNoneMayBe", vectors),
        Obligation(16, "accept-version and host", "connectNamesVersionsAndHostFirst"),
        Obligation(17, "the version of CONNECTED", "missingVersionMeansOneDotZero", "versionThatWasNotOfferedFails"),
        Obligation(18, "CONNECT by default", "connectNamesVersionsAndHostFirst", "connectSaysAllThatTheOptionsSay"),
        Obligation(19, "no receipt on CONNECT", "connectTakesNoReceiptAndNoHeaderTwice"),
        Obligation(
            20, "heart-beats are agreed upon", "heartBeatsAreReadAndAgreedUpon", "eitherZeroTurnsThatDirectionOff",
            "missingHeaderTurnsBothDirectionsOff"),
        Obligation(
            21, "early beats, patient watch", "beatsAreSentEarlyAndOnlyWhenNothingElseWas",
            "noIntervalWithoutAWriteIsAsLongAsAgreed", "anyByteIsLifeEvenHalfAFrame",
            "silenceIsBornForTwoAndAHalfIntervalsAtAnyTime", "aHeartBeatMayComeTwoIntervalsAfterAFrame",
            elsewhere: "STOMPTests: silenceIsNoticed", "BrokerTests: quietConnectionIsKeptByItsHeartBeats",
            "BrokerTests: frozenBrokerIsNoticedAndComeBackTo"),
        Obligation(22, "beats only inside the session", "noBeatsBeforeConnectedAndNoneAfterDisconnect"),
        Obligation(
            23, "subscription ids", "idsAreUniqueOnAConnectionAndFreeOnTheNext",
            "oneDotZeroWithoutSubscriptionHeaderGoesByDestination",
            "oneDotZeroMaySubscribeWithoutIDAndUnsubscribeByDestination"),
        Obligation(
            24, "client-individual and NACK from 1.1 on", "clientIndividualNeedsOneDotOne", "nackExistsFromOneDotOneOn"),
        Obligation(25, "ACK by version", "ackNamesTheMessageByVersionByteByByte"),
        Obligation(
            26, "cumulative acks, never in auto mode", "neverAcknowledgesInAutoMode",
            elsewhere: "STOMPTests: clientAcksCoverAllMessagesOfTheirSubscriptionUpToThem",
            "STOMPTests: automaticMessagesAreNotAcknowledged", "BrokerTests: clientAcksAreCumulative"),
        Obligation(
            27, "messages before the receipt and after UNSUBSCRIBE", "messageMayComeBeforeTheReceiptOfSubscribe",
            "messagesAfterUnsubscribeAreUnmatched",
            elsewhere: "STOMPTests: subscriptionNotYetAnsweredIsAskedForAgain"),
        Obligation(
            28, "transactions die with their connection", "transactionDiesWithItsConnection",
            "framesOfATransactionCarryItsName", "transactionEndsOnce",
            elsewhere: "STOMPTests: messagesAndTransactionsOfAnEarlierConnectionAreRefused"),
        Obligation(
            29, "receipts by id", "receiptsAreMatchedByIdNotByOrder", "thousandsAreInFlightAndEachEndsOnce",
            "lossAndRestartNeverLoseOrInventAReceipt"),
        Obligation(
            30, "ERROR is read and ends the session", "errorShowsMessageBodyAndHeaders",
            "errorWithReceiptIDFailsThatWaiterAndEndsTheSession", "sessionIsOverForUsThoughTheStreamStaysOpen",
            "laterReceiptDoesNotOverturnAnError",
            elsewhere: "STOMPTests: errorEndsTheSessionThoughTheSocketStaysOpen",
            "BrokerTests: rabbitMQErrorEndsTheSessionThoughTheSocketStaysOpen",
            "BrokerTests: rabbitMQReceiptAfterAnErrorDoesNotOverturnIt"),
        Obligation(
            31, "lingering", "endOfStreamAfterDisconnectIsSuccess", "disconnectNeverHangs",
            elsewhere: "STOMPTests: disconnectWithoutAnAnswerEndsAllTheSame",
            "STOMPTests: disconnectFromAFrozenBrokerEndsAllTheSame", "STOMPTests: closeInsteadOfAReceiptIsAnOrderlyEnd",
            "BrokerTests: rabbitMQWebSocketCloseAfterDisconnectIsSuccess"),
        Obligation(32, "nothing after DISCONNECT", "nothingIsSentAfterDisconnect"),
        Obligation(
            33, "destinations are opaque", "destinationsAreOpaque",
            elsewhere: "BrokerTests: activeMQTakesAnyNameForAQueue"),
        Obligation(
            34, "destinations may differ", "messagesCarryTheTokenOfTheirSubscription",
            elsewhere: "BrokerTests: rabbitMQNamesTheTopicForAnExchange",
            "BrokerTests: wildcardsBringMessagesOfOtherDestinations"),
        Obligation(
            35, "content types", "textTypesAreUTF8UnlessTheySayOtherwise", "otherTypesAreBytes", "charsetIsHonoured"),
        Obligation(
            36, "headers that collide", "reservedHeadersAreRefused", "messageIsRelayedWithoutWhatWasForTheServerAlone",
            elsewhere: "STOMPTests: nothingIsSentOfWhatCannotBe"),
        Obligation(
            37, "limits before memory", "holdsNoMoreThanTheLimitsAllow",
            "announcedBodyBeyondTheLimitIsRefusedFromItsHeaderAlone", vectors),
        Obligation(
            38, "frames split and joined", vectors, "looksAtEachByteOfALargeBodyOnce",
            elsewhere: "STOMPTests: confirmedMessagesSurviveCutsAnywhere", "STOMPTests: framesAreFoundHoweverTheyAreCut"
        ),
        Obligation(39, "unknown frames", "unknownServerFramesDoNotHarm"),
        Obligation(
            40, "refusals are transient unless recognised", "errorBeforeConnectedIsTransientUnlessItIsAboutCredentials",
            "refusedCredentialsAreRecognised", "clientIDInUseIsTransient",
            elsewhere: "STOMPTests: refusedCredentialsAskForFreshOnesOnceAndThenStop",
            "BrokerTests: activeMQClientIDInUseHealsByItself"),
        Obligation(
            41, "CONNECT escaping is an option", "endOfStreamBeforeConnectedNamesTheEscapingOptionWhereABackslashIs",
            "connectIsNeverEscapedUnlessAskedTo",
            "refusedCredentialsNameTheEscapingOptionUnlessItIsSet",
            elsewhere: "BrokerTests: rabbitMQTakesABackslashInAPasscodeWithItsEscaping",
            "BrokerTests: activeMQTakesABackslashInAPasscodeWithRabbitMQsEscaping"),
    ]

    @Test func eachObligationHasTestsThatExist() throws {
        #expect(Self.all.map(\.number) == Array(1...41))
        let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
        let here = try Self.sources(in: folder)
        let tests = folder.deletingLastPathComponent()
        let elsewhere = [
            "STOMPTests": try Self.sources(in: tests.appendingPathComponent("STOMPTests")),
            "BrokerTests": try Self.sources(in: tests.appendingPathComponent("BrokerTests/STOMP")),
        ]
        for obligation in Self.all {
            #expect(!obligation.tests.isEmpty)
            for test in obligation.tests {
                #expect(here.contains("func \(test)("), "\(obligation.number), \(obligation.duty): no test \(test)")
            }
            for entry in obligation.elsewhere {
                let parts = entry.split(separator: ": ").map(String.init)
                let sources = elsewhere[parts[0]] ?? ""
                #expect(
                    sources.contains("func \(parts[1])("), "\(obligation.number), \(obligation.duty): no test \(entry)")
            }
        }
    }

    private static func sources(in folder: URL) throws -> String {
        let files = try #require(FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil))
        var sources = ""
        for case let file as URL in files where file.pathExtension == "swift" {
            sources += try String(contentsOf: file, encoding: .utf8)
        }
        return sources
    }
}
