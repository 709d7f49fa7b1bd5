import Foundation
import TestSupport
import Testing

/// motions-device and Mosquitto's own clients.
@Suite(.requires(.mosquitto), .requires(program: "mosquitto_sub", "mosquitto_pub"), .turns)
struct MosquittoTests {
    private func url(_ broker: Mosquitto) -> String { "mqtt://127.0.0.1:\(broker.port)" }

    @Test func `motions are 24 bytes, big-endian, retained`() async throws {
        let scratch = try ScratchDirectory("devices")
        let file = try scratch.write("pitch,roll,yaw\n1,-2,0.5\n0,0.25,-1\n", to: "motions.csv")
        let broker = try await Mosquitto.start()
        let format = ["-F", "%t %l %x %r"]
        let subscriber = try await MosquittoClients.subscribe(to: "/mwm/+/motion", port: broker.port, format)
        let result = try await DeviceProgram.motions.run(
            ["--broker", url(broker), "--device-id", "M", "--motion", file, "--interval", "0"])
        #expect(result.status == .exited(0))
        let first = "3ff0000000000000" + "c000000000000000" + "3fe0000000000000"
        let last = "0000000000000000" + "3fd0000000000000" + "bff0000000000000"
        try await subscriber.waitForLine(
            containing: "/mwm/M/motion 24 \(first) 0")
        try await subscriber.waitForLine(containing: "/mwm/M/motion 24 \(last) 0")
        let late = try await MosquittoClients.subscribe(to: "/mwm/M/motion", port: broker.port, format)
        try await late.waitForLine(containing: "/mwm/M/motion 24 \(last) 1")
        await broker.stop()
    }

    @Test func `alerts are lines, and on a terminal colours`() async throws {
        let broker = try await Mosquitto.start()
        let plain = try await DeviceProgram.motions.start(["--broker", url(broker), "--device-id", "P", "--loop"])
        let painted = try await DeviceProgram.motions.start(
            ["--broker", url(broker), "--device-id", "C", "--loop"], terminal: Command.TerminalSize())
        for (device, id) in [(plain, "P"), (painted, "C")] {
            try await device.waitForLine(containing: "subscribed to /mwm/\(id)/alert with QoS 1")
            try await MosquittoClients.publish("green", to: "/mwm/\(id)/alert", port: broker.port, ["-q", "1"])
            try await device.waitForLine(containing: "alert: green")
        }
        #expect(plain.lines().contains("alert: green"))
        #expect(painted.text().contains("\u{1B}]11;#008000\u{1B}\\"))
        // After two seconds the terminal has its own background again.
        #expect(await eventually { painted.text().contains("\u{1B}]111\u{1B}\\") })
        #expect(try await plain.end() == .exited(0))
        #expect(try await painted.end(by: SIGINT) == .exited(0))
        #expect(plain.lines().last?.contains("1 alert received") == true)
        await broker.stop()
    }

    @Test func `a device that is killed leaves its will, one that stops does not`() async throws {
        let broker = try await Mosquitto.start()
        let watcher = try await MosquittoClients.subscribe(
            to: "/mwm/lastWill", port: broker.port, ["-q", "2", "-F", "%p QoS %q retained %r"])
        for id in ["stopped", "killed"] {
            let device = try await DeviceProgram.motions.start(["--broker", url(broker), "--device-id", id, "--loop"])
            try await device.waitForLine(containing: "pitch: ")
            if id == "stopped" { #expect(try await device.end() == .exited(0)) } else { await device.kill() }
        }
        try await watcher.waitForLine(containing: #"{"deviceID":"killed"} QoS 2 retained 0"#)
        #expect(!watcher.text().contains("stopped"))
        await broker.stop()
    }

    @Test(arguments: [SIGKILL, SIGTERM])
    func `alerts that come while the device is away arrive on its return, if it keeps its session`(
        signal: Int32
    ) async throws {
        let broker = try await Mosquitto.start()
        let arguments = ["--broker", url(broker), "--device-id", "K", "--keep-session"]
        let first = try await DeviceProgram.motions.start(arguments)
        try await first.waitForLine(containing: "subscribed to")
        _ = try await first.end(by: signal)
        try await MosquittoClients.publish("blue", to: "/mwm/K/alert", port: broker.port, ["-q", "1"])
        let second = try await DeviceProgram.motions.start(arguments)
        try await second.waitForLine(containing: "alert: blue")
        #expect(try await second.end() == .exited(0))
        await broker.stop()
    }

    @Test(arguments: ["0", "1", "2"])
    func `a broker that dies in the middle is waited for, and the replay goes on`(qos: String) async throws {
        let broker = try await Mosquitto.start()
        let device = try await DeviceProgram.motions.start(
            ["--broker", url(broker), "--device-id", "H", "--qos", qos, "--interval", "0.1", "--loop"])
        let before = try await device.waitForLine(containing: "pitch: ")
        await broker.kill()
        let lost = try await device.waitForLine(containing: "connection lost: ", after: before)
        #expect(lost.text.contains("; the replay waits; trying again in "))
        try await broker.restart()
        let back = try await device.waitForLine(containing: "connected again", after: lost)
        // Two who watch the client print the two lines: their order is nobody's promise.
        try await device.waitForLine(containing: "subscribed again to /mwm/H/alert", after: lost)
        let subscriber = try await MosquittoClients.subscribe(
            to: "/mwm/H/motion", port: broker.port, ["-F", "%l bytes"])
        try await subscriber.waitForLine(containing: "24 bytes")
        try await MosquittoClients.publish("red", to: "/mwm/H/alert", port: broker.port, ["-q", "1"])
        try await device.waitForLine(containing: "alert: red", after: back)
        #expect(try await device.end() == .exited(0))
        #expect(device.lines().last?.contains("1 reconnect") == true)
        await broker.stop()
    }
}
