import ClientTestSupport
import Foundation
import LoopbackBroker
import TestSupport
import Testing

/// A link that breaks in the middle of a replay.
@Suite(.turns)
struct LostLinkTests {
    /// How long the link stays cut: 30 seconds in the long run.
    static var outage: Duration { Campaign.scale < 0.05 ? .zero : .seconds(30) }

    /// Cuts a link on which bytes have begun to vanish: the connection ends, and others are refused until the device has
    /// tried in vain.
    static func cut(_ relay: TCPRelay, of device: ChildProcess) async throws {
        #expect(await eventually { relay.swallowedCount > 0 })
        relay.cut()
        let lost = try await device.waitForLine(containing: "connection lost: ")
        try await device.waitForLine(containing: "cannot connect: ", after: lost)
        try await Task.sleep(for: outage)
        relay.restore()
    }

    /// A track of `count` fixes, one second apart, of which number n is at latitude 10 + n / 1000.
    static func track(_ count: Int) -> String {
        (0..<count).map { "\(latitude($0)),7.25\n" }.joined()
    }

    static func latitude(_ number: Int) -> Double { Double(10_000 + number) / 1000 }

    /// The latitudes of the bodies in `text`, each counted once, in the order in which they came.
    static func latitudes(in text: String) -> [Double] {
        var seen: Set<Double> = []
        return text.matches(of: /"lat":([0-9.]+)/).compactMap { Double($0.1) }.filter { seen.insert($0).inserted }
    }

    @Test func `every fix arrives in its order although the link is cut, and the summary reports it`() async throws {
        let broker = try await LoopbackBroker.judged()
        let relay = try TCPRelay.start(to: broker.ports.stomp ?? 0, swallowingAfter: #""lat":10.015"#)
        let stranger = try await RawConnection.open(port: broker.ports.stomp ?? 0)
        try await stranger.send("CONNECT\n\n\0")
        _ = try await stranger.receive(through: 0)
        try await stranger.send("SUBSCRIBE\ndestination:/topic/device.*.location\nreceipt:r\n\n\0")
        _ = try await stranger.receive(through: 0)

        let scratch = try ScratchDirectory("devices")
        let path = try scratch.write(Self.track(60), to: "track.csv")
        let device = try await DeviceProgram.locations.start([
            "--broker", "stomp://127.0.0.1:\(relay.port)", "--device-id", "L", "--track", path, "--speed", "40",
        ])
        try await Self.cut(relay, of: device)
        #expect(try await device.waitForEnd() == .exited(0))
        #expect(relay.swallowedCount > 0)
        #expect(device.text().contains(/sending \d+ unconfirmed fix(es)? again/), "\(device.report)")
        let summary = device.lines().last ?? ""
        #expect(summary.hasPrefix("summary: 60 fixes sent, 0 unconfirmed, "), "\(summary)")
        #expect(summary.contains("1 reconnect"), "\(summary)")
        let bytes = try await stranger.receive { String(decoding: $0, as: UTF8.self).contains("10.059,") }
        #expect(Self.latitudes(in: String(decoding: bytes, as: UTF8.self)) == (0..<60).map(Self.latitude))
        await broker.stop()
    }

    /// A row of a live source whose fix is 25 seconds old: five more, and it is not sent.
    private static var agingRow: String {
        "2,7.25,\(ISO8601DateFormatter().string(from: Date(timeIntervalSinceNow: -25)))\n"
    }

    @Test func `a live fix that has grown old while there was no connection is skipped`() async throws {
        let broker = try await LoopbackBroker.judged()
        let relay = try TCPRelay.start(to: broker.ports.stomp ?? 0)
        let device = try await DeviceProgram.locations.start(
            ["--broker", "stomp://127.0.0.1:\(relay.port)", "--device-id", "L", "--track", "-"], input: .pipe)
        try await device.write("1,7.25\n")
        try await device.waitForLine(containing: "φ:1.0000")
        relay.cut()
        try await device.waitForLine(containing: "connection lost: ")
        try await device.write(Self.agingRow)
        try await Task.sleep(for: .seconds(7))
        relay.restore()
        try await device.waitForLine(containing: "skipped φ:2.0000")
        try await device.write("3,7.25\n")
        device.closeInput()
        #expect(try await device.waitForEnd() == .exited(0))
        #expect(!device.lines().contains { $0.hasPrefix("φ:2.0000") }, "\(device.report)")
        let summary = device.lines().last ?? ""
        #expect(summary.hasPrefix("summary: 2 fixes sent, 1 old fix skipped, 0 unconfirmed"), "\(summary)")
        await broker.stop()
    }

    @Test func `a live fix that has grown old while it waited for its interval is skipped`() async throws {
        let device = try await DeviceProgram.locations.start(
            ["--device-id", "L", "--track", "-", "--interval", "7", "--no-page"], input: .pipe)
        // In one piece: the second is read as soon as the first has gone out, however late this process runs.
        try await device.write("1,7.25\n" + Self.agingRow)
        device.closeInput()
        #expect(try await device.waitForEnd() == .exited(0))
        let summary = device.lines().last ?? ""
        #expect(summary.hasPrefix("summary: 1 fix sent, 1 old fix skipped, 0 unconfirmed"), "\(device.report)")
    }

    @Test func `a fix that the broker has refused is not reported as unconfirmed`() async throws {
        let broker = try await LoopbackBroker.judged()
        broker.changeFaults { $0.forbiddenTopics = ["/topic/device.H.location"] }
        let scratch = try ScratchDirectory("devices")
        let path = try scratch.write(Self.track(3), to: "track.csv")
        let device = try await DeviceProgram.locations.start([
            "--broker", try broker.stompURL, "--device-id", "H", "--track", path,
        ])
        try await device.waitForLine(containing: "the broker refused a fix: ")
        broker.changeFaults { $0.forbiddenTopics = [] }
        #expect(try await device.waitForEnd() == .exited(0))
        let summary = device.lines().last ?? ""
        #expect(summary.hasPrefix("summary: 3 fixes sent, 0 unconfirmed, "), "\(device.report)")
        await broker.stop()
    }

    @Test func `a device that is stopped while the link is dead reports what is unconfirmed`() async throws {
        let broker = try await LoopbackBroker.judged()
        let relay = try TCPRelay.start(to: broker.ports.stomp ?? 0)
        let device = try await DeviceProgram.locations.start([
            "--broker", "stomp://127.0.0.1:\(relay.port)", "--device-id", "L", "--speed", "20", "--loop",
        ])
        try await device.waitForLine(containing: "φ:")
        relay.swallow()
        #expect(await eventually { relay.swallowedCount > 1000 })
        #expect(try await device.end() == .exited(0))
        #expect(device.lines().last?.contains(/\s[1-9]\d* unconfirmed/) == true, "\(device.report)")
        await broker.stop()
    }
}
