import MQTTCore
import MessagingShell
import MessagingWire
import TestSupport
import Testing

@testable import MQTT

/// Filters that are different at the server and alike in what they match, and what one more of them costs.
@Suite("Router", .turns)
struct RouterTests {
    private func route(_ filters: String...) -> MQTTRoute { route(filters) }

    private func route(_ filters: [String]) -> MQTTRoute {
        MQTTRoute(
            requests: filters.map { MQTTSubscriptionRequest(filter: $0, qos: .atLeastOnce) }, policy: BufferPolicy(),
            acknowledgement: .automatic)
    }

    private func add(_ route: MQTTRoute, to router: MQTTRouter) {
        for request in route.requests { _ = router.add(route, request) }
    }

    private func ids(_ routes: [MQTTRoute]) -> [ObjectIdentifier] { routes.map { ObjectIdentifier($0) } }

    private func matches(_ router: MQTTRouter, _ topic: String) -> [ObjectIdentifier] {
        router.beginRead()
        let engine = MQTTEngine(configuration: MQTTEngineConfiguration())
        return ids(router.routes(at: topic.withUTF8Span { router.number(for: $0, engine) }))
    }

    @Test func `a filter has the same identifier each time, and not that of one that overlaps it`() throws {
        let router = MQTTRouter()
        func subscribe() -> [UInt32] {
            let overlapping = route("a/+", "a/#")
            let entries = overlapping.requests.map { router.add(overlapping, $0).entry }
            #expect(router.identify(entries).isEmpty)
            defer { _ = router.remove(overlapping) }
            return entries.map(\.identifier)
        }
        let first = subscribe()
        #expect(first.allSatisfy { (134_217_728...268_435_455).contains($0) } && first[0] != first[1])
        #expect(subscribe() == first)
        // The last one of the protocol is followed by the first one of its upper half.
        let next = first[0] == 268_435_455 ? 134_217_728 : first[0] + 1
        #expect(router.makeIdentifier(for: "a/+", apartFrom: [first[0]]) == next)
    }

    /// Each set of filters of three routes that match a topic, each state of the server, and each set of identifiers.
    @Test func `the identifiers of a message decide which routes get it`() {
        let routes = [route("a/#"), route("a/+"), route("$share/g/a/b")]
        for held in 0..<8 {
            let matches = routes.indices.map { index in
                let entry = MQTTFilterEntry(routes[index].requests[0], of: routes[index], number: UInt64(index))
                entry.identifier = UInt32(index) + 1
                return MQTTRouter.Match(entry: entry, held: held >> index & 1 == 1 ? .own : .maybeNone)
            }
            for set in 0..<16 {
                let identifiers = (0..<4).filter { set >> $0 & 1 == 1 }.map { UInt32($0) + 1 }
                // The last one is not theirs.
                let goesByTopic = identifiers.isEmpty || set >= 8
                let expected = routes.indices.filter { goesByTopic || held >> $0 & 1 == 0 || set >> $0 & 1 == 1 }
                let found = MQTTRouter.routes(matches, identifiers, isRetained: false)
                #expect(ids(found) == expected.map { ObjectIdentifier(routes[$0]) }, "\(held), \(identifiers)")
            }
        }
    }

    @Test func `a route of several filters gets the copy for the highest QoS, and each message once`() {
        let own = MQTTRoute(
            requests: [.init(filter: "a/#", qos: .atMostOnce), .init(filter: "a/+", qos: .exactlyOnce)],
            policy: BufferPolicy(), acknowledgement: .automatic)
        let other = route("a/b")
        let matches = (own.requests.map { ($0, own) } + [(other.requests[0], other)]).enumerated().map { index, pair in
            let entry = MQTTFilterEntry(pair.0, of: pair.1, number: UInt64(index))
            entry.identifier = UInt32(index) + 1
            return MQTTRouter.Match(entry: entry, held: .own)
        }
        let table: [([UInt32], [MQTTRoute])] = [
            ([], [own, other]), ([1], []), ([2], [own]), ([1, 2], [own]), ([3], [other]), ([1, 3], [other]),
            ([2, 3], [own, other]), ([1, 2, 3], [own, other]), ([1, 9], [own, other]),
        ]
        for (identifiers, expected) in table {
            #expect(ids(MQTTRouter.routes(matches, identifiers, isRetained: false)) == ids(expected), "\(identifiers)")
        }
    }

    @Test func `shared and plain subscriptions of one filter all get their messages, in the order they came`() {
        let routes = [
            route("a/+"), route("$share/one/a/+"), route("$share/two/a/+"), route("a/+"), route("$share/one/a/+"),
        ]
        // Routes of one filter at the server stand together.
        let order = [0, 3, 1, 4, 2]
        for first in routes.indices {
            let router = MQTTRouter()
            for route in routes { add(route, to: router) }
            var expected = order.map { routes[$0] }
            #expect(matches(router, "a/x") == ids(expected))
            // Each goes alone, the one that the tree knows first among them.
            for offset in routes.indices {
                let route = routes[(first + offset) % routes.count]
                let isLast = !routes.contains { other in
                    other !== route && other.requests == route.requests && expected.contains { $0 === other }
                }
                #expect(router.remove(route).unwanted == (isLast ? route.requests.map(\.filter) : []))
                expected.removeAll { $0 === route }
                #expect(matches(router, "a/x") == ids(expected), "from \(first), \(offset) gone")
            }
            #expect(router.entries.isEmpty)
        }
    }

    @Test func `a subscription of a filter and its shared twin gets a message once`() {
        let router = MQTTRouter()
        let both = route("$share/group/a", "a", "#")
        let other = route("a")
        add(other, to: router)
        add(both, to: router)
        #expect(matches(router, "a").sorted() == ids([both, other]).sorted())
        // The server refused one of them.
        router.removeEntry(ByteKey("a"))
        #expect(matches(router, "a") == ids([both]))
    }

    @Test func `filters with a prefix of EMQX get the messages that no other filter matches`() {
        let router = MQTTRouter()
        let (exclusive, queue, plain) = (route("$exclusive/t/+"), route("$queue/jobs/#"), route("t/1"))
        for route in [exclusive, queue, plain] { add(route, to: router) }
        #expect(matches(router, "t/2") == ids([exclusive]))
        #expect(matches(router, "jobs/a/b") == ids([queue]))
        #expect(matches(router, "$exclusive/t/2") == ids([exclusive]))
        // At another server `$exclusive/t/+` does not match this topic.
        #expect(matches(router, "t/1") == ids([plain]))
        #expect(matches(router, "other").isEmpty)
        #expect(router.remove(exclusive).unwanted == ["$exclusive/t/+"])
        #expect(matches(router, "t/2").isEmpty)
        #expect(matches(router, "jobs") == ids([queue]))
        _ = router.takeAllEntries()
        #expect(matches(router, "jobs").isEmpty)
    }

    @Test func `any sequence of subscriptions and their ends matches what looking at every filter does`() {
        var random = SeededGenerator(seed: Campaign.seed)
        let filters = ["a", "a/b", "a/#", "+/b", "#", "$share/g/a/b", "$share/h/a/b", "$share/g/#", "$share/g/a"]
        let topics = ["a", "a/b", "c", "c/b"]
        for round in 0..<Campaign.rounds(2000) {
            let router = MQTTRouter()
            var live: [MQTTRoute] = []
            for step in 0..<40 {
                if live.count < 2 || Int.random(in: 0..<3, using: &random) > 0 {
                    let route = route(
                        Array(filters.shuffled(using: &random).prefix(Int.random(in: 1...3, using: &random))))
                    add(route, to: router)
                    live.append(route)
                } else {
                    _ = router.remove(live.remove(at: Int.random(in: live.indices, using: &random)))
                }
                for topic in topics {
                    let expected = live.flatMap { route in
                        let matching = route.requests.count {
                            let inner = MQTTTopicFilter.shared($0.filter)?.filter ?? $0.filter
                            return MQTTTopicFilter.matches(inner, topic: topic)
                        }
                        return matching > 0 ? [ObjectIdentifier(route)] : []
                    }
                    let found = matches(router, topic)
                    #expect(
                        found.sorted() == expected.sorted(),
                        "round \(round), step \(step), '\(topic)', CAMPAIGN_SEED=\(Campaign.seed)")
                }
            }
        }
    }

    /// Thousands of times slower is what looking at every other filter would be.
    @Test func `a shared subscription does not make the others expensive`() {
        func cost(beside filter: String) -> Duration {
            let router = MQTTRouter()
            add(route(filter), to: router)
            let routes = (0..<4000).map { route("a/+/\($0)/#") }
            return ThreadTime.measure {
                for route in routes { add(route, to: router) }
                for route in routes { _ = router.remove(route) }
            }
        }
        let (plain, shared) = (cost(beside: "other"), cost(beside: "$share/group/other"))
        #expect(shared < plain * 30)
    }
}
