import STOMPCore
import TestSupport
import Testing

@Suite(.heavy) struct VocabularyTests {
    @Test func headersKeepOrderAndTheFirstOfRepeatedOnesWins() {
        var headers: STOMPHeaders = ["a": "1", "b": "2", "a": "3"]
        #expect(headers["a"] == "1")
        #expect(headers.values(of: "a") == ["1", "3"])
        #expect(headers.map(\.name) == ["a", "b", "a"])
        headers["a"] = "4"
        #expect(headers == ["a": "4", "b": "2"])
        headers["b"] = nil
        headers["c"] = "5"
        #expect(headers == ["a": "4", "c": "5"])
        #expect(headers.contains("c") && !headers.contains("b"))
    }

    @Test func headerNamesAreComparedAsBytes() {
        let headers: STOMPHeaders = ["e\u{301}": "decomposed", "\u{E9}": "composed"]
        #expect(headers["\u{E9}"] == "composed")
        #expect(headers["e\u{301}"] == "decomposed")
        #expect(headers["E\u{301}"] == nil)
        #expect(STOMPHeaders([.init("\u{E9}", "")]) != STOMPHeaders([.init("e\u{301}", "")]))
    }

    @Test func versionsAreReadFromHeaders() {
        #expect(STOMPVersion.list("1.0,1.1,1.2") == [.v10, .v11, .v12])
        #expect(STOMPVersion.list(" 1.2 , 2.0,1.1") == [.v12, .v11])
        #expect(STOMPVersion.list("") == [])
        #expect(STOMPVersion.list("1.2.") == [])
    }

    @Test func heartBeatsAreReadAndAgreedUpon() {
        #expect(STOMPHeartBeat("60000,20000") == STOMPHeartBeat(outgoing: 60_000, incoming: 20_000))
        #expect(STOMPHeartBeat(" 1 , 2 ") == STOMPHeartBeat(outgoing: 1, incoming: 2))
        for bad in ["", ",", "1", "1,", "1,2,3", "-1,2", "a,b", "1.0,2", "+1,2", "٣,1"] {
            #expect(STOMPHeartBeat(bad) == nil)
        }
        #expect(
            STOMPHeartBeat("99999999999999999999,1")
                == STOMPHeartBeat(outgoing: STOMPHeartBeat.longestInterval, incoming: 1))
        let mine = STOMPHeartBeat(outgoing: 1_000, incoming: 5_000)
        #expect(mine.agreed(with: .none) == .none)
        #expect(mine.agreed(with: .init(outgoing: 0, incoming: 10)) == .init(outgoing: 1_000, incoming: 0))
        #expect(mine.agreed(with: .init(outgoing: 10, incoming: 0)) == .init(outgoing: 0, incoming: 5_000))
        #expect(mine.agreed(with: .init(outgoing: 7_000, incoming: 2_000)) == .init(outgoing: 2_000, incoming: 7_000))
    }

    @Test(arguments: [
        ("RabbitMQ/3.10.8", "RabbitMQ"), ("ActiveMQ/5.17.2", "ActiveMQ Classic"),
        ("ActiveMQ-Artemis/2.31.2 ActiveMQ Artemis Messaging Engine", "ActiveMQ Artemis"),
        ("apache-apollo/1.7", "generic"),
        ("swift-messaging/1.0", "loopback"),
    ])
    func profilesAreChosenFromTheServerHeader(_ header: String, _ name: String) {
        #expect(STOMPBrokerProfile(serverHeader: header).name == name)
        #expect(STOMPBrokerProfile(serverHeader: nil).name == "generic")
    }

    @Test func profilesKnowTheHeadersOfExtensions() {
        #expect(STOMPBrokerProfile.rabbitMQ.durableHeaders(name: "n") == ["durable": "true", "auto-delete": "false"])
        #expect(STOMPBrokerProfile.activeMQ.durableHeaders(name: "n") == ["activemq.subscriptionName": "n"])
        #expect(STOMPBrokerProfile.generic.durableHeaders(name: "n") == nil)
        #expect(STOMPBrokerProfile.activeMQ.prefetchHeaders(messages: 10) == ["activemq.prefetchSize": "10"])
        #expect(STOMPBrokerProfile.artemis.prefetchHeaders(messages: 10) == ["consumer-window-size": "10240"])
        #expect(STOMPBrokerProfile.generic.prefetchHeaders(messages: 10) == nil)
        #expect(STOMPBrokerProfile.rabbitMQ.nackHeaders(requeue: false) == ["requeue": "false"])
        #expect(STOMPBrokerProfile.activeMQ.nackHeaders(requeue: false) == [:])
    }

    @Test func refusedCredentialsAreRecognised() {
        func error(_ message: String, _ body: String) -> STOMPServerError {
            STOMPServerError(frame(.error, ["message": message], body))
        }
        #expect(STOMPBrokerProfile.refusesCredentials(error("Bad CONNECT", "Access refused for user 'guest'\n")))
        #expect(STOMPBrokerProfile.refusesCredentials(error("User name [a] or password is invalid.", "java.lang.…")))
        #expect(!STOMPBrokerProfile.refusesCredentials(error("Bad CONNECT", "Virtual host '/x' access denied")))
        #expect(!STOMPBrokerProfile.refusesCredentials(error("", "")))
        #expect(
            !STOMPBrokerProfile.refusesCredentials(
                error("Broker: localhost - Client: x already connected from tcp://127.0.0.1:1", "")))
    }

    @Test(arguments: [
        ("/topic/a.*", "/topic/a.b", true), ("/topic/a.*", "/topic/a.b.c", false), ("/topic/a.*", "/topic/a", false),
        ("/topic/z.>", "/topic/z", true), ("/topic/z.>", "/topic/z.a", true), ("/topic/z.>", "/topic/z.a.b", true),
        ("/queue/z.>", "/queue/z.a", true), ("/topic/>", "/topic/a", true), ("/topic/>", "/queue/a", false),
        ("/topic/*.b", "/topic/a.b", true), ("/topic/>.b", "/topic/a.c.b", true), ("/topic/>.b", "/topic/a.c", false),
        ("/topic/#", "/topic/a", false), ("/topic/device.*.location", "/topic/device.X-1.location", true),
        ("topic/*", "topic/a", false), ("/topic/a*", "/topic/ab", false), ("/topic/e\u{301}", "/topic/\u{E9}", false),
    ])
    func activeMQWildcardsMatch(_ pattern: String, _ destination: String, _ expected: Bool) {
        #expect(STOMPBrokerProfile.activeMQ.wildcards.matches(pattern, destination) == expected)
    }

    @Test(arguments: [
        ("/topic/a.#", "/topic/a", true), ("/topic/a.#", "/topic/a.b.c", true), ("/topic/a.*", "/topic/a.b", true),
        ("/topic/a.>", "/topic/a.b", false), ("/queue/a.*", "/queue/a.b", false), ("/queue/a.*", "/queue/a.*", true),
    ])
    func rabbitMQWildcardsMatch(_ pattern: String, _ destination: String, _ expected: Bool) {
        #expect(STOMPBrokerProfile.rabbitMQ.wildcards.matches(pattern, destination) == expected)
    }

    @Test func frameForgetsAnUnlistedNameWhenItsCommandChanges() {
        var frame = STOMPFrame(unlisted: "HELLO")
        #expect(frame.commandName == "HELLO")
        frame.command = .send
        #expect(frame.commandName == "SEND" && frame == STOMPFrame(.send))
    }
}
