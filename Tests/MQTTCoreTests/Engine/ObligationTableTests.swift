import Foundation
import Testing

/// What the two specifications ask of a client, by number, each with the tests that show it.
@Suite("Engine: table of obligations")
struct ObligationTableTests {
    struct Obligation: Sendable {
        let number: Int
        let duty: String
        let tests: [String]

        init(_ number: Int, _ duty: String, _ tests: String...) {
            self.number = number
            self.duty = duty
            self.tests = tests
        }
    }

    static let vectors = "are read alike whole, byte by byte and cut anywhere"
    static let malformed = "malformed bytes end a 5.0 connection with a reason"

    static let all: [Obligation] = [
        Obligation(1, "Session Present without a session", "a session that nobody knows is refused in 5.0"),
        Obligation(
            2, "a session that the server lost", "messages are published anew when the server lost the session",
            "messages of a lost session fail instead if the configuration says so",
            "what waited for PUBCOMP is published anew too, in its place"),
        Obligation(3, "sent again on resume only", "nothing is sent again while the connection lasts"),
        Obligation(
            4, "sent again in order", "identifiers that wrapped do not change the order",
            "unacknowledged publishes are sent again in their original order with DUP set"),
        Obligation(
            5, "DUP when sent again", "unacknowledged publishes are sent again in their original order with DUP set"),
        Obligation(6, "no DUP at QoS 0", "QoS 0 has no packet identifier and no DUP"),
        Obligation(7, "no PUBLISH after PUBREC", "after PUBREC only PUBREL is sent again"),
        Obligation(8, "a refusal is an acknowledgement", "a refused message completes with the reason and frees"),
        Obligation(
            9, "the session is kept or ends", "a session without expiry ends with its connection",
            "DISCONNECT is the last packet and the session's messages stay"),
        Obligation(10, "a clean start forgets", "a clean start forgets the identifiers of received messages too"),
        Obligation(11, "the assigned identifier", "the assigned client identifier is adopted"),
        Obligation(12, "empty identifiers before 5.0", "before 5.0 an empty client identifier needs a clean session"),
        Obligation(13, "no expiry in DISCONNECT", "DISCONNECT may not revive a session that CONNECT let die"),
        Obligation(
            14, "identifiers are unused ones", "packet identifiers are non-zero, unused, and used up only all together",
            "a cancelled operation keeps its identifier until the answer"),
        Obligation(15, "no identifier at QoS 0", "QoS 0 has no packet identifier and no DUP"),
        Obligation(
            16, "identifiers come free by their answers", "an identifier is new after PUBCOMP whatever DUP says",
            "a refused message completes with the reason and frees"),
        Obligation(
            17, "Receive Maximum", "no more than Receive Maximum is unacknowledged, and QoS 2 counts until PUBCOMP",
            "the window counts what was sent again"),
        Obligation(18, "what never waits for the window", "SUBSCRIBE, PINGREQ, QoS 0 and PUBREL do not wait"),
        Obligation(19, "PUBACK in order", "answers given in any order leave in the order of arrival"),
        Obligation(20, "PUBREC in order", "answers given in any order leave in the order of arrival"),
        Obligation(21, "PUBREL in order", "PUBREL is sent in the order of PUBREC"),
        Obligation(
            22, "unwanted messages are acknowledged", "what nobody wants or can read is acknowledged",
            "one call acknowledges everything up to a token"),
        Obligation(
            23, "QoS 2 is delivered once", "a QoS 2 message whose PUBREC was lost is delivered once",
            "a QoS 2 message held by the application over a connection"),
        Obligation(24, "PUBREL is answered", "PUBREL is always answered, also for an unknown identifier"),
        Obligation(25, "new after a refusal", "an identifier is new after a PUBREC that refused it"),
        Obligation(26, "new after PUBCOMP", "an identifier is new after PUBCOMP whatever DUP says"),
        Obligation(27, "QoS 1 is new each time", "a QoS 1 identifier is a new message after PUBACK"),
        Obligation(
            28, "PUBREL for a PUBREC that took it", "a refused message completes with the reason and frees"),
        Obligation(
            29, "expiry breaks no exchange", "an exchange that was begun is finished after the message expired",
            "the time in the queue shortens the expiry, and what expired is not sent"),
        Obligation(
            30, "keep alive, and liveness", "a quiet client pings at its interval and is answered",
            "a half-open connection is noticed within interval and ping timeout",
            "a client that only sends pings too, because it reads nothing"),
        Obligation(31, "the server's keep alive", "the server's keep alive replaces ours"),
        Obligation(
            32, "Maximum QoS", "the server's limits are obeyed before anything is written",
            "queued messages that the server turns out not to take complete as unsendable"),
        Obligation(33, "Retain Available", "the server's limits are obeyed before anything is written"),
        Obligation(
            34, "Maximum Packet Size", "the server's limits are obeyed before anything is written",
            "queued messages that the server turns out not to take complete as unsendable"),
        Obligation(35, "AUTH before CONNACK", "steps are exchanged before CONNACK and again afterwards"),
        Obligation(
            36, "AUTH by its rules", "AUTH without a method, or with another one, ends the connection",
            "only what a side may say now is said", "a re-authentication is not a server's to begin"),
        Obligation(37, "no password alone before 5.0", "before 5.0 a password needs a user name"),
        Obligation(38, "no will flags without a will", vectors),
        Obligation(39, "nothing after DISCONNECT", "DISCONNECT is the last packet and the session's messages stay"),
        Obligation(40, "CONNECT first", "a packet before CONNECT ends the connection", "nothing is published before"),
        Obligation(41, "no alias survives", "no mapping survives the connection: what is sent again has its topic"),
        Obligation(42, "aliases in bounds", "no alias is above the server's maximum, and none without one"),
        Obligation(43, "every advertised alias", "every alias up to the advertised maximum is accepted"),
        Obligation(
            44, "topics as bytes", "topics are kept apart byte by byte", "tells filters apart that look alike",
            "topics are told apart by their bytes"),
        Obligation(45, "wildcards as bytes", "agrees with a matcher that splits into levels", vectors),
        Obligation(46, "ill-formed UTF-8", vectors, malformed),
        Obligation(47, "U+FEFF is kept", vectors),
        Obligation(48, "U+0000 is refused", vectors),
        Obligation(
            49, "no wildcards in PUBLISH", "a topic that is none is refused before anything is written", vectors),
        Obligation(50, "1 to 65,535 bytes", "a topic that is none is refused before anything is written", vectors),
        Obligation(51, "wildcards and $", "agrees with a matcher that splits into levels"),
        Obligation(
            52, "shared subscriptions", "takes a shared filter apart", "captures are what the wildcards stand for",
            "what cannot be asked is refused before anything is written"),
        Obligation(53, "minimal integers", vectors),
        Obligation(54, "flags of the fixed header", "fixed-header flags of requests and PUBREL are 0b0010", vectors),
        Obligation(55, "QoS 3", vectors, malformed),
        Obligation(56, "property lengths and short forms", vectors),
        Obligation(57, "at least one filter", "what cannot be asked is refused before anything is written", vectors),
        Obligation(
            58, "codes by position", "subscriptions are answered code by code",
            "an answer with another number of codes is a violation"),
        Obligation(
            59, "no identifier in our PUBLISH", "properties travel, and those that are the engine's are refused"),
        Obligation(
            60, "several subscription identifiers", "a server passes several subscription identifiers on one message"),
        Obligation(61, "user properties in order", "properties travel, and those that are the engine's are refused"),
        Obligation(62, "WebSocket", "reads a response the same however it arrives"),
        Obligation(
            63, "malformed packets end the connection", malformed,
            "malformed bytes end a 3.1.1 connection without a word", "the code of a violation is what DISCONNECT says"),
        Obligation(64, "empty payloads", "an empty payload is a message, retained or not"),
    ]

    @Test func `each obligation has tests, and they exist`() throws {
        #expect(Self.all.map(\.number) == Array(1...64))
        let tests = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let here = URL(fileURLWithPath: #filePath).lastPathComponent
        var sources = ""
        for folder in ["MQTTCoreTests", "MQTTTests", "MessagingWebSocketCoreTests"] {
            let files = FileManager.default.enumerator(
                at: tests.appendingPathComponent(folder), includingPropertiesForKeys: nil)
            for case let file as URL in try #require(files)
            where file.pathExtension == "swift" && file.lastPathComponent != here {
                sources += try String(contentsOf: file, encoding: .utf8)
            }
        }
        for obligation in Self.all {
            #expect(!obligation.tests.isEmpty)
            for test in obligation.tests {
                // Either the function's name or the one in its attribute.
                let exists = sources.contains("func `\(test)") || sources.contains("\"\(test)")
                #expect(exists, "\(obligation.number), \(obligation.duty): no test \(test)")
            }
        }
    }
}
