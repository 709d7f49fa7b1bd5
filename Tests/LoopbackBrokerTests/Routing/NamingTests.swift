import STOMPCore
import TestSupport
import Testing

@testable import LoopbackBroker

@Suite(.turns) struct NamingTests {
    /// As observed with ActiveMQ 5.17.
    @Test(arguments: [
        ("z.>", "z", true), ("z.>", "z.a", true), ("z.>", "z.a.b", true), ("z.>", "y.a", false),
        ("*", "a", true), ("*", "a.b", false), ("a.*.c", "a.b.c", true), ("a.*.c", "a.c", false),
        ("a.*", "a", false), ("a.*", "a.b", true), (">", "anything.at.all", true), ("a*", "ab", false),
        ("a*", "a*", true), ("#", "a", false), ("**", "a", false), ("a.b", "a.b", true), ("A.b", "a.b", false),
        (".mwm.*.motion", ".mwm.x.motion", true), ("a..b", "a..b", true), ("a.*.b", "a..b", true),
    ])
    func matchesAsActiveMQDoes(pattern: String, name: String, matches: Bool) throws {
        let destination = try #require(Destination("/topic/" + pattern))
        #expect(destination.matches(name) == matches)
    }

    @Test(arguments: [
        ("device/B/location", "/topic/device.B.location"), ("/mwm/x/motion", "/topic/.mwm.x.motion"),
        ("a.b/c", "/topic/a/b.c"), ("a*b", "/topic/a+b"), ("é/ü", "/topic/é.ü"),
    ])
    func namesATopicInBothProtocols(mqtt: String, stomp: String) {
        #expect(TopicNaming.destination(ofTopic: mqtt) == stomp)
        #expect(TopicNaming.exchanged(String(stomp.dropFirst("/topic/".count))) == mqtt)
    }

    @Test func takesWhatHasNoPrefixForAQueue() throws {
        #expect(try #require(Destination("/foo/bar")).kind == .queue)
        #expect(try #require(Destination("/temp-queue/x")).kind == .temporaryQueue)
        #expect(Destination("/queue/") == nil)
        #expect(Destination("") == nil)
    }

    @Test(arguments: [
        ("a = 'x'", ["a": "x"], true), ("a='x' AND b <> 'y'", ["a": "x", "b": "z"], true),
        ("a = 'x' and b <> 'y'", ["a": "x", "b": "y"], false), ("a IN ('x','y')", ["a": "y"], true),
        ("a NOT IN ('x','y')", ["a": "y"], false), ("a NOT IN ('x')", [:], false), ("a = 'it''s'", ["a": "it's"], true),
        ("priority = 9", ["priority": "9"], true),
    ])
    func understandsASimpleSelector(text: String, headers: [String: String], accepts: Bool) throws {
        let selector = try #require(Selector(text))
        #expect(selector.accepts(STOMPHeaders(headers.map { .init($0.key, $0.value) })) == accepts)
    }

    @Test(arguments: [
        "", "a", "a =", "a = b", "a = 'x' OR b = 'y'", "a LIKE 'x%'", "a IN ()", "a = 'x", "(a = 'x')", "a > 1",
    ])
    func refusesOtherSelectors(text: String) {
        #expect(Selector(text) == nil)
    }
}
