import Foundation
import TestSupport
import Testing

/// How the programs stop, and what people do at their keyboards.
@Suite(.turns)
struct EndingTests {
    @Test(arguments: DeviceProgram.allCases, [SIGINT, SIGTERM, SIGHUP])
    func `a signal makes a device leave its broker properly`(program: DeviceProgram, signal: Int32) async throws {
        let device = try await program.start(["--frames", "--loop"])
        try await device.waitForLine(containing: program == .motions ? "pitch: " : "φ:")
        let status = try await device.end(by: signal)
        #expect(status == .exited(0))
        let lines = device.lines()
        let unsubscribe = try #require(lines.firstIndex { $0.hasPrefix(">>> UNSUBSCRIBE") })
        let disconnect = try #require(lines.firstIndex { $0.hasPrefix(">>> DISCONNECT") })
        #expect(unsubscribe < disconnect)
        #expect(lines.last?.hasPrefix("summary: ") == true)
        #expect(device.text(.errors) == "")
    }

    @Test(arguments: DeviceProgram.allCases)
    func `a signal that comes with the first line ends a device properly, too`(program: DeviceProgram) async throws {
        for _ in 1...10 {
            let device = try await program.start(["--loop"])
            try await device.waitForLine(containing: "built-in")
            #expect(try await device.end(by: SIGINT) == .exited(0))
        }
    }

    @Test func `a second signal ends a device at once`() async throws {
        // Nobody answers there: the device is still connecting when it is told to stop.
        let device = try await DeviceProgram.motions.start(["--loop"])
        try await device.waitForLine(containing: "pitch: ")
        device.signal(SIGSTOP)
        device.signal(SIGTERM)
        device.signal(SIGINT)
        device.signal(SIGCONT)
        let status = try await device.waitForEnd()
        #expect(status == .exited(128 + SIGINT) || status == .exited(128 + SIGTERM) || status == .exited(0))
    }

    @Test(arguments: [SIGINT, SIGTERM])
    func `a second signal ends a device whose output has stopped`(signal: Int32) async throws {
        let device = try await DeviceProgram.motions.start(
            ["--loop", "--interval", "0", "--no-page"], terminal: Command.TerminalSize())
        try await device.waitForLine(containing: "pitch: ")
        // Ctrl-S: what is written from now on waits for Ctrl-Q.
        try await device.write([0x13])
        // Two that come at once count as one.
        let hasEnded = await eventually(every: .milliseconds(100)) {
            device.signal(signal)
            return device.exitStatus != nil
        }
        #expect(hasEnded, "\(device.report)")
        // 0 when the terminal took Ctrl-S so late that one signal was enough.
        #expect([.exited(128 + signal), .exited(0)].contains(device.exitStatus))
    }

    @Test func `a device that is still connecting stops as well`() async throws {
        let device = try await DeviceProgram.motions.start(["--broker", "mqtt://127.0.0.1:\(FreePort.next())"])
        try await device.waitForLine(containing: "trying again in")
        #expect(try await device.end(by: SIGINT) == .exited(0))
        #expect(device.lines().last?.hasPrefix("summary: 0 motions sent") == true)
    }

    @Test(arguments: [[], ["--device-id", "K"]])
    func `a session is kept for those who can come back to it, and the others are warned`(name: [String]) async throws {
        let device = try await DeviceProgram.motions.start(["--keep-session", "--interval", "0", "--no-page"] + name)
        try await device.waitForLine(containing: "pitch: ")
        #expect(try await device.end() == .exited(0))
        let warnings = device.lines(.errors).filter { $0.hasPrefix("WARNING: --keep-session without --device-id") }
        #expect(warnings.count == (name.isEmpty ? 1 : 0), "\(device.report)")
    }

    @Test(arguments: DeviceProgram.allCases)
    func `a reader that has seen enough is no failure`(program: DeviceProgram) async throws {
        let shell = try await ChildProcess.start(
            Command("bash", ["-c", "'\(program.path)' --speed 50 --loop | head -n 8; echo ${PIPESTATUS[0]}"]))
        #expect(try await shell.waitForEnd() == .exited(0))
        #expect(shell.lines().last == "0")
        #expect(shell.text(.errors) == "")
    }

    @Test(arguments: DeviceProgram.allCases)
    func `Enter shakes the device, and the end of input changes nothing`(program: DeviceProgram) async throws {
        let device = try await program.start(["--interval", "100", "--loop"], input: .pipe)
        let first = try await device.waitForLine(containing: program == .motions ? "pitch: " : "φ:")
        try await device.write("\n")
        let shaken = try await device.waitForLine(containing: "shaken: ", after: first)
        #expect(shaken.text == "shaken: \(first.text)")
        device.closeInput()
        try await Task.sleep(for: .milliseconds(200))
        #expect(device.exitStatus == nil)
        #expect(try await device.end() == .exited(0))
        #expect(device.lines().last?.hasPrefix("summary: 2 ") == true)
    }

    @Test func `a live source sends what is fresh and skips what is old`() async throws {
        let device = try await DeviceProgram.locations.start(["--track", "-", "--speed", "1000000"], input: .pipe)
        try await device.waitForLine(containing: "subscribed to")
        // Not old for as long as the test takes.
        let now = ISO8601DateFormatter().string(from: Date(timeIntervalSinceNow: 600))
        let old = ISO8601DateFormatter().string(from: Date(timeIntervalSinceNow: -60))
        try await device.write("45.5,7.25,\(old)\n45.5,7.5,\(now)\n45.5,7.75\n")
        try await device.waitForLine(containing: "skipped φ:45.5000, λ:7.2500")
        try await device.waitForLine(containing: "φ:45.5000, λ:7.7500")
        device.closeInput()
        #expect(try await device.waitForEnd() == .exited(0))
        #expect(device.lines().contains("φ:45.5000, λ:7.5000"))
        #expect(device.lines().last?.hasPrefix("summary: 2 fixes sent, 1 old fix skipped") == true)
    }

    @Test func `a live fix goes out at once after an old one`() async throws {
        let device = try await DeviceProgram.locations.start(["--track", "-"], input: .pipe)
        try await device.waitForLine(containing: "subscribed to")
        // Not old for as long as the test takes.
        let now = ISO8601DateFormatter().string(from: Date(timeIntervalSinceNow: 600))
        try await device.write("1,2,2014-03-13T17:19:05+01:00\n1,2,1901-12-13T20:45:52Z\n3,4,\(now)\n")
        try await device.waitForLine(containing: "φ:3.0000, λ:4.0000")
        device.closeInput()
        #expect(try await device.waitForEnd() == .exited(0))
        #expect(device.lines().last?.hasPrefix("summary: 1 fix sent, 2 old fixes skipped") == true)
    }

    @Test func `the last motions before the end of the input are sent, whatever their recorded times`() async throws {
        let device = try await DeviceProgram.motions.start(["--motion", "-", "--interval", "0.2"], input: .pipe)
        try await device.waitForLine(containing: "subscribed to")
        try await device.write("time,pitch,roll,yaw\n0,0,0,0\n")
        try await device.waitForLine(containing: "pitch: 0°")
        try await device.write("3600,0.5,0,0\n7200,1,0,0\n")
        device.closeInput()
        #expect(try await device.waitForEnd() == .exited(0))
        #expect(device.lines().contains("pitch: 57°  roll: 0°  yaw: 0°"))
    }
}
