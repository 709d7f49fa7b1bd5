import Foundation
import MQTT
import TestSupport
import Testing

@Suite("Session store: a writer that is killed", .serialized, .turns)
struct KilledWriterTests {
    @Test(arguments: ["store", "client"])
    func `nothing accepted is missing and nothing done comes back, wherever it is killed`(mode: String) async throws {
        let rounds = Campaign.rounds(1000, least: 12) / 2
        var random = SeededGenerator(seed: Campaign.seed)
        var accepted: Set<UInt64> = []
        var done: Set<UInt64> = []
        /// What was about to happen when the writer was killed may have happened or not.
        var uncertain: Set<UInt64> = []
        var next: UInt64 = 1
        var scratch = try ScratchDirectory("store")
        for round in 0..<rounds {
            if round % 20 == 0 {
                (accepted, done, uncertain, next) = ([], [], [], 1)
                scratch = try ScratchDirectory("store")
            }
            let seed = UInt64.random(in: 0...UInt64.max, using: &random)
            let time = Int.random(in: 0...20_000, using: &random)
            let arguments = try ChildArguments(
                [scratch.file("session"), mode, "\(next)", "\(seed)", "\(time)"], for: "killed-writer")
            defer { arguments.remove() }
            let writer = try #require(
                await #expect(processExitsWith: .signal(SIGKILL), observing: [\.standardOutputContent]) {
                    try await StoreWriter.writeUntilKilled(ChildArguments.received(for: "killed-writer"))
                })
            let lines = String(decoding: writer.standardOutputContent, as: UTF8.self).split(separator: "\n")
            #expect(lines.contains("ready"))
            for line in lines {
                let words = line.split(separator: " ")
                guard words.count == 2, let number = UInt64(words[1]) else { continue }
                switch words[0] {
                case "a":
                    accepted.insert(number)
                    next = max(next, number + 1)
                case "g": uncertain.insert(number)
                case "f":
                    uncertain.remove(number)
                    done.insert(number)
                default: break
                }
            }
            let store = FileSessionStore(directory: scratch.file("session"))
            let stored = try store.open()
            store.close()
            var present: Set<UInt64> = []
            for record in stored.records {
                guard case .message(let message) = record else { continue }
                let (sequence, topic) = (message.sequence, message.topic)
                #expect(topic == "t/\(mode == "store" ? sequence : UInt64(topic.dropFirst(2)) ?? 0)")
                present.insert(UInt64(topic.dropFirst(2)) ?? 0)
            }
            let missing = accepted.subtracting(done).subtracting(uncertain).subtracting(present)
            let revived = present.intersection(done)
            let unheard = present.subtracting(accepted)
            #expect(stored.damage == nil)
            #expect(
                missing.isEmpty && revived.isEmpty && unheard.count <= 1,
                "round \(round), CAMPAIGN_SEED=\(Campaign.seed): missing \(missing), done but back \(revived), unheard of \(unheard)"
            )
            guard missing.isEmpty, revived.isEmpty else { return }
            // What the writer did not live to say is so all the same.
            accepted.formUnion(unheard)
            next = max(next, (unheard.max() ?? 0) + 1)
            done.formUnion(uncertain.subtracting(present))
            uncertain = []
        }
    }
}
