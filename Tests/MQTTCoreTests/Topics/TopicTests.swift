import MQTTCore
import TestSupport
import Testing

@Suite("Topic names and filters", .heavy)
struct TopicTests {
    @Test(
        "takes a topic name for one [MQTT-4.7.3-1]",
        arguments: [
            "a", "/", "a/b", "//", " ", "ö/🙂", "$SYS/x", "\u{FEFF}", "\u{301}", String(repeating: "x", count: 65_535),
        ])
    func goodNames(name: String) {
        #expect(MQTTTopicName.isValid(name))
        #expect(MQTTTopicFilter.isValid(name))
    }

    @Test(
        "refuses what is no topic name [MQTT-3.3.2-2]",
        arguments: [
            "", "+", "#", "a/+/b", "a+", "sport/#", "+\u{301}", "a\0b", "12345678\0", "1234567+", "0123456789#",
            "ääääääää+", String(repeating: "x", count: 65_536),
        ])
    func badNames(name: String) {
        #expect(!MQTTTopicName.isValid(name))
    }

    @Test(
        "takes a filter for one [MQTT-4.7.1-1, MQTT-4.7.1-2]",
        arguments: [
            "#", "+", "+/+", "/+", "+/", "a/#", "/#", "+/a/#", "a/+/b", "//", "$SYS/#", "$share/g/#", "$share/g//",
            "$share/g/+/x", "$shared/x", "$share", "a/$share/+",
        ])
    func goodFilters(filter: String) {
        #expect(MQTTTopicFilter.isValid(filter))
    }

    @Test(
        "refuses what is no filter",
        arguments: [
            "", "a#", "a/#/b", "#/", "##", "a+", "+a", "a/b+/c", "+#", "+\u{301}", "#\u{301}", "a/\0",
            "$share//a", "$share/g", "$share/g/", "$share/", "$share/+/a", "$share/#", "$share/g#/a",
        ])
    func badFilters(filter: String) {
        #expect(!MQTTTopicFilter.isValid(filter))
    }

    @Test("leaves $share alone before 5.0", arguments: ["$share/g", "$share//a", "$share/"])
    func shareBefore5(filter: String) {
        #expect(MQTTTopicFilter.isValid(filter, version: .v3_1_1))
    }

    @Test("takes a shared filter apart [MQTT-4.8.2-1]")
    func shared() {
        #expect(MQTTTopicFilter.shared("$share/group/a/+/#")?.name == "group")
        #expect(MQTTTopicFilter.shared("$share/group/a/+/#")?.filter == "a/+/#")
        #expect(MQTTTopicFilter.shared("$share/group//x")?.filter == "/x")
        #expect(MQTTTopicFilter.shared("$shared/group/a") == nil)
        #expect(MQTTTopicFilter.shared("$share/group") == nil)
    }

    @Test(
        "matches level by level",
        arguments: [
            ("a", "a", true), ("a", "b", false), ("a", "A", false), ("a/b", "a/b", true), ("a", "a/", false),
            ("a/", "a", false), ("a/", "a/", true), ("/a", "a", false), ("/a", "/a", true), ("+", "a", true),
            ("+", "/a", false), ("/+", "/a", true), ("+/+", "/a", true), ("+/+", "a", false), ("#", "a", true),
            ("#", "/", true), ("#", "a/b/c", true), ("a/#", "a", true), ("a/#", "a/", true), ("a/#", "a/b/c", true),
            ("a/#", "ab", false), ("a/+", "a", false), ("a/+", "a/", true), ("a/+", "a/b", true),
            ("a/+", "a/b/c", false), ("a/+/c", "a/b/c", true), ("a/+/c", "a//c", true), ("a/+/#", "a", false),
            ("a/+/#", "a/b", true), ("+/b/#", "a/b/c/d", true), ("#", "$SYS/x", false), ("+/x", "$SYS/x", false),
            ("$SYS/#", "$SYS/x", true), ("$SYS/+", "$SYS/x", true), ("+", "$SYS", false), ("a/#", "a/$x", true),
            ("a/+", "a/$x", true), ("$share/g/a/+", "a/b", true), ("$share/g/#", "$SYS", false),
            ("\u{E9}", "e\u{301}", false), ("+/c", "a/\u{301}b/c", false), ("+/+/c", "a/\u{301}b/c", true),
            ("//", "//", true), ("//", "/", false), ("+/+/+", "//", true),
        ] as [(String, String, Bool)])
    func matching(filter: String, topic: String, expected: Bool) {
        #expect(MQTTTopicFilter.matches(filter, topic: topic) == expected)
        #expect((MQTTTopicFilter.captures(of: filter, in: topic) != nil) == expected)
        var tree = MQTTFilterTree<String>()
        tree.insert(filter, for: MQTTTopicFilter.shared(filter)?.filter ?? filter)
        #expect(tree.matches(topic) == (expected ? [filter] : []))
    }

    @Test(
        "captures what wildcards stand for",
        arguments: [
            ("a/+/c", "a/b/c", ["b"]), ("a/+/c/#", "a/b/c/d/e", ["b", "d/e"]), ("#", "a/b", ["a/b"]),
            ("a/#", "a", [""]), ("a/#", "a/", [""]), ("a", "a", []), ("+/+", "/x", ["", "x"]),
            ("$share/g/+/x", "ö/x", ["ö"]), ("/mwm/+/motion", "/mwm/7f/motion", ["7f"]),
        ] as [(String, String, [String])])
    func captures(filter: String, topic: String, expected: [String]) {
        #expect(MQTTTopicFilter.captures(of: filter, in: topic) == expected)
    }
}
