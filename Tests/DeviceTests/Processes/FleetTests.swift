import Foundation
import TestSupport
import Testing

/// A large fleet in one process, and a broker that is not ours.
@Suite(.requires(.mosquitto), .requires(program: "mosquitto_sub"), .turns)
struct FleetTests {
    @Test func `five hundred devices lose nothing and have one thread for their connections`() async throws {
        let devices = 500
        // The subscriber must not be what loses something: Mosquitto drops what waits longer than this.
        let broker = try await Mosquitto.start { $0.extraLines = ["max_queued_messages 0"] }
        let subscriber = try await MosquittoClients.subscribe(
            to: "/mwm/+/motion", port: broker.port, ["-F", "%t %l"], outputLimit: 256 << 20)
        let fleet = try await DeviceProgram.motions.start([
            "--broker", "mqtt://127.0.0.1:\(broker.port)", "--device-id", "F", "--fleet", "\(devices)", "--loop",
            "--interval", "1",
        ])
        // They start within ten seconds; the last one is not always the last to be there.
        for number in [1, devices - 1, devices] {
            try await fleet.waitForLine(
                containing: "\(number): subscribed to /mwm/F-\(number)/alert")
            try await subscriber.waitForLine(containing: "/mwm/F-\(number)/motion 24")
        }
        #if os(Linux)
            let names = threadNames(of: fleet.processID)
            #expect(names.count { $0 == "messaging-loop" } == 1, "\(names)")
            // Those of the pool, and a few for signals, keys and the like: none for each device.
            #expect(names.count < 32 + 2 * ProcessInfo.processInfo.activeProcessorCount, "\(names)")
        #endif
        #expect(try await fleet.end() == .exited(0))

        let summary = try #require(fleet.lines().last)
        #expect(!summary.contains("reconnect"))
        let sent = try #require(summary.wholeMatch(of: /summary: 500 devices, (\d+) motions sent, .*/))
        let total = try #require(Int(sent.1))
        #expect(total >= devices)
        func received() -> [Substring] {
            subscriber.lines().filter { $0.hasPrefix("/mwm/F-") }.compactMap { $0.split(separator: " ").first }
        }
        #expect(
            await eventually { received().count == total }, "\(received().count) of \(total)")
        #expect(Set(received()).count == devices)
        await subscriber.stop()
        await broker.stop()
    }

    private func threadNames(of process: Int32) -> [String] {
        let directory = "/proc/\(process)/task"
        let numbers = (try? FileManager.default.contentsOfDirectory(atPath: directory)) ?? []
        return numbers.compactMap { number in
            (try? String(contentsOfFile: "\(directory)/\(number)/comm", encoding: .utf8))?
                .trimmingCharacters(in: .whitespacesAndNewlines)
        }
    }
}
