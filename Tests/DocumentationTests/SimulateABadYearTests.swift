import Foundation
import LoopbackBroker
import MQTT
import Testing

/// The app of the article "Simulate a bad year" with the mistake that the article names.
struct SimulateABadYearTests {
    @Test func `The article prints what the first world says about a meter without a session`() async throws {
        let failure = try await #require(throws: SimulationFailure.self) {
            try await Simulation.run(seeds: 0..<20) { try await MeterTests.count(MQTTConfiguration(), in: $0) }
        }
        let page = DocumentationPage.root.appending(
            path: "Sources/LoopbackBroker/LoopbackBroker.docc/SimulateABadYear.md")
        let article = try String(contentsOf: page, encoding: .utf8)
        let block = try #require(article.split(separator: "```").first { $0.hasPrefix("\nThe world of seed 0 fails") })
        // Without the steps, which each change of a packet moves.
        let head = try #require(block.firstRange(of: "Its steps:\n"))
        let printed = block[..<head.upperBound].dropFirst()
        #expect("\(failure)".hasPrefix(printed), "\(failure)")
    }
}
