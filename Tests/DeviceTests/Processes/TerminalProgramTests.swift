import Foundation
import TestSupport
import Testing

/// The programs on a terminal, as people start them first.
@Suite(.turns)
struct TerminalProgramTests {
    private let terminal = Command.TerminalSize(columns: 140, rows: 30)

    @Test(arguments: DeviceProgram.allCases)
    func `on a terminal with a page the replay starts over until it is stopped`(program: DeviceProgram) async throws {
        let device = try await program.start(
            ["--device-id", "T", "--speed", "200", "--interval", "0.1"], terminal: terminal)
        try await device.waitForLine(containing: "the replay starts over at its end, until Ctrl-C")
        try await device.waitForLine(containing: "the replay starts over: run 2")
        #expect(device.exitStatus == nil)
        #expect(try await device.end(by: SIGINT) == .exited(0))
        // On a busy machine the last lines are read a moment after the end is known.
        #expect(await eventually { device.lines().last?.contains("summary: ") == true }, "\(device.report)")
    }

    @Test(arguments: DeviceProgram.allCases, [["--once"], ["--no-page"]])
    func `once, or without a page, the replay ends by itself`(program: DeviceProgram, option: [String]) async throws {
        let device = try await program.start(
            ["--speed", "500", "--interval", "0.1"] + option, terminal: terminal)
        #expect(try await device.waitForEnd() == .exited(0))
        #expect(!device.text().contains("starts over"))
        // The end is said once.
        #expect(await eventually { device.lines().last?.contains("summary: ") == true }, "\(device.report)")
        #expect(!device.text().contains("progress: "))
    }

    /// What a terminal of 80 columns and 24 rows shows of a program so far.
    private func screen(of device: ChildProcess) -> TerminalScreen {
        var screen = TerminalScreen(columns: 80, rows: 24)
        screen.write(device.text())
        return screen
    }

    /// The number of the run that the status line names; 0 without one. A busy machine may miss any of them.
    private func run(on screen: TerminalScreen) -> Int {
        screen.text.firstMatch(of: #/  run (\d+)  /#).flatMap { Int($0.1) } ?? 0
    }

    /// Whether the screen comes to show this. Asked seldom, because each time the whole output is read again.
    private func shows(_ device: ChildProcess, _ condition: (TerminalScreen) -> Bool) async -> Bool {
        await eventually(every: .milliseconds(250)) { condition(screen(of: device)) }
    }

    private func stompPort(of device: ChildProcess) throws -> Int {
        // Lines of addresses are bold, so that what follows the number is no digit.
        let found = try #require(device.text().firstMatch(of: #/embedded broker: stomp://127\.0\.0\.1:(\d+)/#))
        return try #require(Int(found.1))
    }

    @Test func `the first command is one screen, on which texts from the page stay`() async throws {
        let device = try await DeviceProgram.locations.start(
            ["--fleet", "5", "--speed", "25", "--recorded-time"],
            terminal: Command.TerminalSize(columns: 80, rows: 24))
        let prefix = "headquarters page: "
        #expect(await shows(device) { $0.text.contains("5 of 5 connected") }, "\(device.report)")
        let session = try await RawConnection.open(port: stompPort(of: device))
        try await session.send("CONNECT\n\n\0")
        _ = try await session.receive(through: 0)
        try await session.send("SEND\ndestination:/queue/device.van-2.text\n\nTake the next exit\0")
        #expect(await shows(device) { $0.text.contains("van-2: text: Take the next exit") })
        // Three runs of five vans later, everything is still there.
        #expect(await shows(device) { run(on: $0) >= 4 }, "\(device.report)")
        let shown = screen(of: device)
        #expect(shown.scrolledLines == 0, "\(shown.text)")
        let lines = shown.text.split(separator: "\n")
        #expect(lines.contains("van-2: text: Take the next exit"), "\(shown.text)")
        #expect(!lines.contains { $0.contains("φ:") })
        #expect(lines.contains("5 devices: van-1 to van-5; --verbose prints what each of them does"))
        // The address with its token: where it was printed, and among the lines that renew themselves.
        let address = try #require(lines.first { $0.hasPrefix(prefix) }).dropFirst(prefix.count)
        #expect(address.contains(#/:\d+\/[0-9A-Za-z_-]{20}\/$/#))
        #expect(lines.contains(address))
        #expect(lines.contains { $0.contains(#/^5 of 5 connected  \d+ sent  \d+ unconfirmed  \d+\/s  run \d+ /#) })
        #expect(try await device.end(by: SIGINT) == .exited(0))
        #expect(await shows(device) { $0.text.hasSuffix(" elapsed") }, "\(device.report)")
        #expect(screen(of: device).scrolledLines == 0)
        #expect(screen(of: device).text.contains("\nsummary: 5 devices, "))
    }

    @Test(arguments: [[], ["--no-page"]])
    func `one device prints its fixes; addresses, the name and the newest text stay among the status lines`(
        options: [String]
    ) async throws {
        let device = try await DeviceProgram.locations.start(
            ["--device-id", "T", "--speed", "25", "--loop"] + options,
            terminal: Command.TerminalSize(columns: 80, rows: 24))
        #expect(await shows(device) { $0.text.contains("φ:") })
        let session = try await RawConnection.open(port: stompPort(of: device))
        try await session.send("CONNECT\n\n\0")
        _ = try await session.receive(through: 0)
        try await session.send("SEND\ndestination:/queue/device.T.text\n\nOù es-tu?\0")
        #expect(await shows(device) { $0.text.contains("text: Où es-tu?") })
        let before = screen(of: device).scrolledLines
        #expect(await shows(device) { $0.scrolledLines > before + 30 })
        #expect(await shows(device) { $0.text.hasSuffix("\ntext: Où es-tu?") }, "\(screen(of: device).text)")
        let lines = screen(of: device).text.split(separator: "\n")
        let brokers = #/stomp://127\.0\.0\.1:\d+  mqtt://127\.0\.0\.1:\d+  ws://127\.0\.0\.1:\d+/#
        #expect(lines.contains { $0.wholeMatch(of: brokers) != nil }, "\(lines)")
        #expect(lines.contains("device: T"))
        #expect(lines.contains { $0.contains(#/^http:\/\/127\.0\.0\.1:\d+\/[0-9A-Za-z_-]{20}\/$/#) } == options.isEmpty)
        #expect(try await device.end(by: SIGINT) == .exited(0))
    }

    @Test func `a fleet prints everything when that is asked for`() async throws {
        let device = try await DeviceProgram.motions.start(
            ["--fleet", "3", "--verbose", "--interval", "0.2"], terminal: terminal)
        try await device.waitForLine(containing: "device: phone-3")
        try await device.waitForLine(containing: "3: subscribed to /mwm/phone-3/alert")
        try await device.waitForLine(containing: "3: pitch: ")
        #expect(try await device.end(by: SIGINT) == .exited(0))
    }

    @Test func `the status lines show the page's address, the connection, counts and time left`() async throws {
        let device = try await DeviceProgram.locations.start(["--device-id", "T", "--loop"], terminal: terminal)
        let address = try await device.waitForLine(containing: "headquarters page: ").text
            .drop { $0 != "/" }.prefix { $0 != "\u{1B}" }
        let status = /connected\S*  \d+ sent  \d+ acknowledged  \S*\d+ unconfirmed/
        #expect(await eventually { device.text().contains(status) }, "\(device.report)")
        #expect(await eventually { device.text().contains(/\s\d+\.\d\/s\s/) }, "\(device.report)")
        let isWhole = await eventually {
            let lines = device.text().split(whereSeparator: \.isNewline)
            return lines.contains { $0.contains(address) && !$0.contains("page:") }
                && lines.contains { $0.contains("connected") && $0.contains("% ") && $0.contains(" left") }
        }
        #expect(isWhole, "\(device.report)")
        #expect(try await device.end() == .exited(0))
    }

    @Test func `the page is opened in the browser`() async throws {
        let scratch = try ScratchDirectory("browser")
        let opened = scratch.file("opened")
        for opener in ["xdg-open", "open"] {
            let path = try scratch.write("#!/bin/sh\necho \"$1\" > '\(opened)'\n", to: opener)
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
        }
        let path = Campaign.environment("PATH") ?? "/usr/bin:/bin"
        let device = try await DeviceProgram.motions.start(
            ["--open", "--loop"], environment: ["PATH": "\(scratch.path):\(path)"])
        let line = try await device.waitForLine(containing: "headquarters page: ").text
        let address = String(line.dropFirst("headquarters page: ".count))
        #expect(await eventually { (try? String(contentsOfFile: opened, encoding: .utf8)) == address + "\n" })
        #expect(try await device.end() == .exited(0))
        // Without a browser the program runs all the same.
        let alone = try await DeviceProgram.motions.start(["--open", "--loop"], environment: ["PATH": "/nonexistent"])
        try await alone.waitForLine(containing: "cannot open a browser: ")
        try await alone.waitForLine(containing: "pitch: ")
        #expect(try await alone.end() == .exited(0))
    }
}
