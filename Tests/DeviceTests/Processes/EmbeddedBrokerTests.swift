import ClientTestSupport
import Foundation
import LoopbackBroker
import TestSupport
import Testing

/// Both programs without a broker of anybody's: as people try them first.
@Suite(.turns)
struct EmbeddedBrokerTests {
    @Test func `motions-device prints its ports, its motions and a summary`() async throws {
        let (status, output, errors) = try await DeviceProgram.motions.run(["--speed", "60", "--interval", "0.2"])
        #expect(status == .exited(0))
        #expect(errors.isEmpty)
        #expect(output.contains { $0.hasPrefix("embedded broker: mqtt://127.0.0.1:") })
        #expect(output.contains { $0.hasPrefix("embedded broker: stomp://127.0.0.1:") })
        #expect(output.contains { $0.hasPrefix("embedded broker: ws://127.0.0.1:") })
        #expect(output.contains { $0.hasPrefix("headquarters page: http://127.0.0.1:") && $0.hasSuffix("/") })
        #expect(output.contains { $0.hasPrefix("pitch: ") && $0.contains("°  roll: ") && $0.contains("°  yaw: ") })
        #expect(output.last?.hasPrefix("summary: 5 motions sent, 0 alerts received") == true)
    }

    @Test func `locations-device prints its ports, its fixes and a summary`() async throws {
        let (status, output, errors) = try await DeviceProgram.locations.run(
            ["--speed", "2000", "--interval", "0.1", "--no-page"])
        #expect(status == .exited(0))
        #expect(errors.isEmpty)
        #expect(output.contains { $0.hasPrefix("embedded broker: stomp://127.0.0.1:") })
        #expect(!output.contains { $0.contains("page") })
        #expect(output.contains { $0.hasPrefix("subscribed to /queue/device.") && $0.hasSuffix(".text") })
        #expect(output.contains("φ:37.3302, λ:-122.0324"))
        #expect(output.last?.hasPrefix("summary: ") == true)
    }

    @Test func `a fleet has an id and a connection for each device`() async throws {
        let (status, output, _) = try await DeviceProgram.motions.run(
            ["--speed", "60", "--fleet", "3", "--device-id", "F"])
        #expect(status == .exited(0))
        for number in 1...3 {
            #expect(output.contains("device: F-\(number)"))
            #expect(output.contains("\(number): subscribed to /mwm/F-\(number)/alert with QoS 1"))
        }
        #expect(output.last?.hasPrefix("summary: 3 devices, ") == true)
    }

    @Test func `a session by hand, with the line ends of telnet, sees positions and sends a text`() async throws {
        let device = try await DeviceProgram.locations.start(["--device-id", "T", "--speed", "20", "--loop"])
        let session = try await RawConnection.open(port: device.embeddedPort("stomp"))
        try await session.send("CONNECT\r\n\r\n\0")
        let connected = try await session.receive(through: 0)
        #expect(String(decoding: connected, as: UTF8.self).hasPrefix("CONNECTED\n"))
        try await session.send("SUBSCRIBE\r\ndestination:/topic/device.*.location\r\n\r\n\0")
        let message = String(decoding: try await session.receive(through: 0), as: UTF8.self)
        #expect(message.contains("MESSAGE\n"))
        #expect(message.contains("destination:/topic/device.T.location\n"))
        #expect(message.contains(#"{"deviceID":"T","lat":37."#))
        try await session.send("SEND\r\ndestination:/queue/device.T.text\r\n\r\nhello, driver\0")
        try await device.waitForLine(containing: "text: hello, driver")
        #expect(try await device.end() == .exited(0))
    }

    /// The times that fixes of a track are sent with.
    private func times(of track: String, named name: String, _ arguments: [String]) async throws -> [String] {
        let scratch = try ScratchDirectory("devices")
        let broker = try await LoopbackBroker.judged()
        let stranger = try await RawConnection.open(port: broker.ports.stomp ?? 0)
        try await stranger.send("CONNECT\n\n\0")
        _ = try await stranger.receive(through: 0)
        try await stranger.send("SUBSCRIBE\ndestination:/topic/device.*.location\nreceipt:r\n\n\0")
        _ = try await stranger.receive(through: 0)
        let (status, output, _) = try await DeviceProgram.locations.run(
            ["--broker", try broker.stompURL, "--speed", "20", "--track", scratch.write(track, to: name)] + arguments)
        #expect(status == .exited(0), "\(output)")
        try await stranger.send("SEND\ndestination:/topic/device.end.location\n\nthe end\0")
        let bytes = try await stranger.receive { String(decoding: $0, as: UTF8.self).contains("the end") }
        await broker.stop()
        return String(decoding: bytes, as: UTF8.self).matches(of: /"ts":"([^"]+)"/).map { String($0.1) }
    }

    @Test func `recorded times are those of the file, without those that are impossible`() async throws {
        func gpx(_ times: [String]) -> String {
            let points = times.map { "<trkpt lat='1' lon='2'>\($0.isEmpty ? "" : "<time>\($0)</time>")</trkpt>" }
            return "<gpx version='1.1'><trk><trkseg>\(points.joined())</trkseg></trk></gpx>"
        }
        let recorded = ["--recorded-time"]
        let gap = ["2014-03-13T17:19:05+01:00", "", "2014-03-13T17:19:08+01:00", ""]
        #expect(
            try await times(of: gpx(gap), named: "gap.gpx", recorded) == [
                "2014-03-13T17:19:05+01:00", "2014-03-13T17:19:06+01:00", "2014-03-13T17:19:08+01:00",
                "2014-03-13T17:19:09+01:00",
            ])
        #expect(
            try await times(of: "1,2\n1,2\n1,2,2014-03-13T17:19:05Z\n", named: "late.csv", recorded) == [
                "2014-03-13T17:19:03+00:00", "2014-03-13T17:19:04+00:00", "2014-03-13T17:19:05+00:00",
            ])
        // Two rides in one file: each keeps its times.
        let years = "1,2,2012-03-13T17:19:05Z\n1,2,2014-03-13T17:19:05Z\n"
        #expect(
            try await times(of: years, named: "years.csv", recorded) == [
                "2012-03-13T17:19:05+00:00", "2014-03-13T17:19:05+00:00",
            ])
        // An impossible date is left out like a time that is not there.
        let wrong = gpx(["0001-01-01T00:00:00Z", "", "2014-03-13T17:19:05Z"])
        #expect(
            try await times(of: wrong, named: "wrong.gpx", recorded) == [
                "2014-03-13T17:19:03+00:00", "2014-03-13T17:19:04+00:00", "2014-03-13T17:19:05+00:00",
            ])
    }

    @Test func `a device whose texts are answered asks for few of them at a time`() async throws {
        let (_, output, _) = try await DeviceProgram.locations.run([
            "--ack", "client-individual", "--frames", "--no-page", "--speed", "2000", "--interval", "10",
        ])
        let subscribe = try #require(output.first { $0.hasPrefix(">>> SUBSCRIBE") })
        #expect(subscribe.contains("prefetch-count:100"), "\(subscribe)")
        #expect(subscribe.contains("activemq.prefetchSize:100"), "\(subscribe)")
        let (_, other, _) = try await DeviceProgram.locations.run([
            "--frames", "--no-page", "--speed", "2000", "--interval", "10",
        ])
        #expect(other.first { $0.hasPrefix(">>> SUBSCRIBE") }?.contains("prefetch") == false)
    }
}
