import Foundation
import TestSupport
import Testing

@testable import MessagingDeviceSupport

/// A real STOMP broker of a test's own.
enum STOMPBroker: String, Sendable, CaseIterable {
    case activeMQ
    case rabbitMQ

    /// Those that tests run with here.
    static let usable = allCases.filter { $0 == .activeMQ ? Broker.activeMQ.isUsable : Broker.rabbitMQ.isUsable }

    struct Running {
        let broker: any RunningBroker
        let port: Int
        let user: BrokerUser?
        let host: String
    }

    func start() async throws -> Running {
        switch self {
        case .activeMQ:
            let broker = try await ActiveMQ.start()
            return Running(broker: broker, port: broker.stompPort, user: nil, host: "localhost")
        case .rabbitMQ:
            let broker = try await RabbitMQ.start { $0.mqtt = false }
            return Running(broker: broker, port: broker.stompPort, user: broker.user, host: "/")
        }
    }
}

/// locations-device, real brokers, and stomp.py at headquarters.
@Suite(.turns)
struct STOMPBrokerTests {
    private struct Location: Decodable, Equatable {
        let deviceID: String
        let lat: Double
        let lng: Double
        let ts: String
    }

    /// A climb of `count` fixes, a second apart.
    private func recording(_ count: Int, in scratch: ScratchDirectory) throws -> (path: String, fixes: [Location]) {
        var points = ""
        var fixes: [Location] = []
        for number in 0..<count {
            let time = "2024-05-04T07:\(two(number / 60)):\(two(number % 60))Z"
            let (latitude, longitude) = (45.9 + Double(number) / 10_000, 7.15 - Double(number) / 7_000)
            points += "<trkpt lat=\"\(latitude)\" lon=\"\(longitude)\"><time>\(time)</time></trkpt>\n"
            fixes.append(
                Location(
                    deviceID: "G", lat: latitude, lng: longitude,
                    ts: "2024-05-04T07:\(two(number / 60)):\(two(number % 60))+00:00"))
        }
        let gpx = "<gpx version=\"1.1\"><trk><trkseg>\n\(points)</trkseg></trk></gpx>"
        return (try scratch.write(gpx, to: "climb.gpx"), fixes)
    }

    private func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }

    @Test(.requires(anyOf: .activeMQ, .rabbitMQ), .requiresPythonClients, arguments: STOMPBroker.usable)
    func `every fix arrives as JSON, texts are shown, and a broker that dies is waited for`(
        kind: STOMPBroker
    ) async throws {
        let running = try await kind.start()
        let url = "stomp://127.0.0.1:\(running.port)"
        let scratch = try ScratchDirectory("devices")
        let (path, fixes) = try recording(200, in: scratch)

        let headquarters = try await PythonClients.stomp(port: running.port, host: running.host, user: running.user)
        try await headquarters.subscribe(to: "/topic/device.G.location", id: "1")
        let result = try await DeviceProgram.locations.run(
            [
                "--broker", url, "--device-id", "G", "--track", path, "--speed", "200", "--recorded-time",
                "--country", "fr", "--priority", "7", "--expires", "600",
            ], user: running.user)
        #expect(result.status == .exited(0), "\(result.errors)")
        var received: [Location] = []
        for _ in fixes {
            let message = try await headquarters.next("message")
            received.append(try JSONDecoder().decode(Location.self, from: Data(message.bytes)))
            #expect(message.headers?["content-type"] == "application/json;charset=utf-8")
            #expect(message.headers?["country"] == "FR")
            #expect(message.headers?["priority"] == "7")
        }
        #expect(received == fixes)
        try await headquarters.close()

        try await survivesACut(running)
        try await heals(running, url)
        await running.broker.stop()
    }

    /// The link is cut in the middle of the replay, and headquarters still gets every fix.
    private func survivesACut(_ running: STOMPBroker.Running) async throws {
        let scratch = try ScratchDirectory("devices")
        let path = try scratch.write(LostLinkTests.track(60), to: "track.csv")
        let relay = try TCPRelay.start(to: running.port, swallowingAfter: #""lat":10.015"#)
        let headquarters = try await PythonClients.stomp(port: running.port, host: running.host, user: running.user)
        try await headquarters.subscribe(to: "/topic/device.L.location", id: "1")
        let device = try await DeviceProgram.locations.start(
            [
                "--broker", "stomp://127.0.0.1:\(relay.port)", "--device-id", "L", "--track", path, "--speed", "20",
            ], user: running.user)
        try await LostLinkTests.cut(relay, of: device)
        #expect(try await device.waitForEnd() == .exited(0))
        let summary = device.lines().last ?? ""
        #expect(summary.hasPrefix("summary: 60 fixes sent, 0 unconfirmed, "), "\(device.report)")
        var bodies = ""
        while LostLinkTests.latitudes(in: bodies).count < 60 {
            bodies += String(decoding: try await headquarters.next("message").bytes, as: UTF8.self) + "\n"
        }
        #expect(LostLinkTests.latitudes(in: bodies) == (0..<60).map(LostLinkTests.latitude))
        try await headquarters.close()
    }

    /// The same device identifier throughout, which ActiveMQ lets nobody use twice.
    private func heals(_ running: STOMPBroker.Running, _ url: String) async throws {
        let device = try await DeviceProgram.locations.start(
            [
                "--broker", url, "--device-id", "H", "--loop", "--interval", "0.1", "--heart-beat", "5000,5000",
                "--ack",
                "client-individual",
            ], user: running.user, input: .pipe)
        try await device.waitForLine(containing: "subscribed to /queue/device.H.text")
        try await send("first", to: running, shownBy: device, after: nil)
        try await device.write("a\n")
        try await device.waitForLine(containing: "accepted: first")

        await running.broker.kill()
        let lost = try await device.waitForLine(containing: "connection lost: ")
        try await running.broker.restart()
        let back = try await device.waitForLine(containing: "connected again", after: lost)
        // One line comes from the states and the other from the events: either may be the first.
        try await device.waitForLine(containing: "subscribed to /queue/device.H.text again", after: lost)
        try await send("second", to: running, shownBy: device, after: back)
        // A broker that was killed before it read that the first text was accepted hands that out again.
        var rejected = back
        repeat {
            try await device.write("r\n")
            rejected = try await device.waitForLine(containing: "rejected: ", after: rejected)
        } while !rejected.text.contains("second")

        await running.broker.freeze()
        let frozen = try await device.waitForLine(containing: "connection lost: ", after: back)
        try await Task.sleep(for: .seconds(1))
        running.broker.thaw()
        let thawed = try await device.waitForLine(containing: "connected again", after: frozen)
        try await device.waitForLine(containing: "subscribed to /queue/device.H.text again", after: frozen)
        try await device.waitForLine(containing: "φ:", after: thawed)
        try await send("third", to: running, shownBy: device, after: thawed)
        #expect(try await device.end() == .exited(0))
        // On a busy machine a heart-beat may come too late, which costs a connection more.
        let reconnects = try #require(device.lines().last?.firstMatch(of: /(\d+) reconnects/), "\(device.report)")
        #expect(Int(reconnects.1) ?? 0 >= 2)
    }

    private func send(
        _ text: String, to running: STOMPBroker.Running, shownBy device: ChildProcess, after line: ChildProcess.Line?
    ) async throws {
        let sender = try await PythonClients.stomp(port: running.port, host: running.host, user: running.user)
        try await sender.send(Array(text.utf8), to: "/queue/device.H.text", headers: ["persistent": "true"])
        try await device.waitForLine(containing: "text: \(text)", after: line)
        try await sender.close()
    }

    @Test(.requires(.activeMQ)) func `a client identifier that is still in use is waited for`() async throws {
        let broker = try await SharedBrokers.activeMQ()
        let arguments = ["--broker", "stomp://127.0.0.1:\(broker.stompPort)", "--device-id", "I", "--loop"]
        let first = try await DeviceProgram.locations.start(arguments)
        try await first.waitForLine(containing: "φ:")
        let second = try await DeviceProgram.locations.start(arguments)
        try await second.waitForLine(containing: "trying again in")
        await first.kill()
        try await second.waitForLine(containing: "φ:")
        #expect(try await second.end() == .exited(0))
    }

    @Test(.requires(.activeMQ)) func `refused credentials end at once`() async throws {
        let broker = try await ActiveMQ.start { $0.users = [BrokerUser("ann", password: "right")] }
        let result = try await DeviceProgram.locations.run(
            ["--broker", "stomp://127.0.0.1:\(broker.stompPort)"], user: BrokerUser("ann", password: "wrong"))
        #expect(result.status == .exited(77))
        #expect(result.errors.count == 1, "\(result.errors)")
        await broker.stop()
    }
}
