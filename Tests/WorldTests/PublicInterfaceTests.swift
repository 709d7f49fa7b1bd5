import MQTT
import TestSupport
import Testing
import Transport

@testable import LoopbackBroker
@testable import MessagingSimulation

/// What worlds use of the public interface, and that they keep its promises.
@Suite struct PublicInterfaceTests {
    private static let mqtt: Set<String> = [
        "MQTTClient", "MQTTClient.Confirmation", "MQTTClient.EnqueuedMessage", "MQTTConfiguration", "MQTTMessage",
        "MQTTOutgoingMessage", "MQTTPublishResult", "MQTTSubscription", "MQTTSubscriptionRequest",
        "MQTTUnsubscribeResult",
    ]

    @Test func `The table names every call and option of MQTT, and says what no world uses`() throws {
        let interface = try PublicInterface(of: "MQTT", Self.mqtt)
        let options = MQTTInterface.options.map { "MQTTConfiguration: var \($0.name):" }
        let used = MQTTInterface.acts.flatMap(\.calls) + options + MQTTInterface.alwaysUsed
        let named = used + MQTTInterface.unused.keys
        #expect(interface.missing(in: named) == [], "in .ci/public, but not in the table")
        #expect(interface.unknown(among: named) == [], "in the table, but not in .ci/public")
        for (name, reason) in MQTTInterface.unused.sorted(by: { $0.key < $1.key }) {
            print("no world uses \(name): \(reason)")
        }
    }

    @Test func `Every act and every option of the table of MQTT is drawn`() {
        var (acts, options): (Set<String>, Set<String>) = ([], [])
        for seed in 0..<UInt64(100) {
            var random = SimulationRandom(generator: SplitMix(seed: seed, part: 1_000_001))
            let cast = MQTTInterface.cast(&random)
            acts.formUnion(cast.acts.map(\.name))
            options.formUnion(cast.options.map(\.name))
        }
        #expect(acts == Set(MQTTInterface.acts.map(\.name)))
        #expect(options == Set(MQTTInterface.options.map(\.name)))
    }

    @Test func `The whole interface of MQTT keeps its promises`() async throws {
        try await SimulationTests.timed("the whole interface of MQTT", 2000) { try await MQTTInterface.run(seeds: $0) }
    }

    private static let stomp: Set<String> = [
        "STOMPClient", "STOMPConfiguration", "STOMPMessage", "STOMPOutgoingMessage", "STOMPReceipt", "STOMPSendOptions",
        "STOMPSubscribeOptions", "STOMPSubscription",
    ]

    @Test func `The table names every call and option of STOMP, and says what no world uses`() throws {
        let interface = try PublicInterface(of: "STOMP", Self.stomp)
        let options = STOMPInterface.options.map { "STOMPConfiguration: var \($0.name):" }
        let used = STOMPInterface.acts.flatMap(\.calls) + options + STOMPInterface.alwaysUsed
        let named = used + STOMPInterface.unused.keys
        #expect(interface.missing(in: named) == [], "in .ci/public, but not in the table")
        #expect(interface.unknown(among: named) == [], "in the table, but not in .ci/public")
        for (name, reason) in STOMPInterface.unused.sorted(by: { $0.key < $1.key }) {
            print("no world uses \(name): \(reason)")
        }
    }

    @Test func `Every act and every option of the table of STOMP is drawn`() {
        var (acts, options): (Set<String>, Set<String>) = ([], [])
        for seed in 0..<UInt64(100) {
            var random = SimulationRandom(generator: SplitMix(seed: seed, part: 1_000_001))
            let cast = STOMPInterface.cast(&random)
            acts.formUnion(cast.acts.map(\.name))
            options.formUnion(cast.options.map(\.name))
        }
        #expect(acts == Set(STOMPInterface.acts.map(\.name)))
        #expect(options == Set(STOMPInterface.options.map(\.name)))
    }

    @Test func `The whole interface of STOMP keeps its promises`() async throws {
        try await SimulationTests.timed("the whole interface of STOMP", 2000) {
            try await STOMPInterface.run(seeds: $0)
        }
    }
}
