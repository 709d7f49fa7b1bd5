import MQTTCore
import MessagingShell
import MessagingWire
import TestSupport
import Testing

@testable import MQTT

/// A server chooses the topics of its messages; it may never repeat one.
@Suite("Router: many topics", .turns)
struct TopicFloodTests {
    private func longTopic(_ number: Int) -> String { "flood/" + String(repeating: "x", count: 60) + "/\(number)" }

    /// A campaign takes ten million topics.
    @Test func `topics that never repeat take bounded memory and find their subscriptions`() {
        let router = MQTTRouter()
        let engine = MQTTEngine(configuration: MQTTEngineConfiguration())
        let routes = (0..<3).map { number in
            MQTTRoute(
                requests: [MQTTSubscriptionRequest(filter: "flood/+/\(number)/#")], policy: BufferPolicy(),
                acknowledgement: .automatic)
        }
        for route in routes { _ = router.add(route, route.requests[0]) }
        let padding = String(repeating: "x", count: 150)
        var largest = 0
        for number in 0..<(Campaign.scale < 1 ? 40_000 : 10_000_000) {
            if number % 1000 == 0 { router.beginRead() }
            let topic = "flood/a/\(number % 4)/" + padding + "\(number)"
            let found = router.routes(at: topic.withUTF8Span { router.number(for: $0, engine) })
            let expected = number % 4 < 3 ? [routes[number % 4]] : []
            if !found.elementsEqual(expected, by: ===) { Issue.record("topic \(number) found other subscriptions") }
            largest = max(largest, router.topics.byteCount)
        }
        // Full at least once, and not much more than that.
        #expect(largest >= TopicTable.maximumBytes && largest < TopicTable.maximumBytes * 3 / 2)
        #expect(router.destinations.count == 5)
        router.forgetTopics(keepingCapacity: false)
        #expect(router.topics.byteCount == 0)
    }

    @Test func `a flood of topics does not disturb another connection of the loop`() async throws {
        let bench = try await Bench()
        let flooded = try await bench.connected("flooded")
        let sender = try await bench.connected("sender")
        let other = try await bench.connected("other")
        let messages = try await flooded.subscribe(
            to: "flood/#", qos: .atMostOnce, buffer: BufferPolicy(overflow: .pauseReading))
        let count = Campaign.rounds(500_000)
        let flood = Task {
            for start in stride(from: 0, to: count, by: 500) {
                try await sender.publish(
                    (start..<start + 500).map { MQTTOutgoingMessage([1], to: longTopic($0), qos: .atMostOnce) }
                ).check()
            }
        }
        let reading = Task {
            var next = 0
            for try await message in messages {
                #expect(message.topicName == longTopic(next))
                next += 1
                if next == count { break }
            }
        }
        // Each waits for its acknowledgement.
        for _ in 0..<20 { try await other.publish([1], to: "other", qos: .atLeastOnce) }
        try await flood.value
        try await reading.value
        await bench.stop()
    }
}
