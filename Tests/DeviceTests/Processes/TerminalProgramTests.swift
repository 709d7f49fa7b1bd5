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
        #expect(device.text().contains("progress: 100%, "))
    }

    @Test func `the status line shows the page's address, the connection, counts and time left`() async throws {
        let device = try await DeviceProgram.locations.start(["--device-id", "T", "--loop"], terminal: terminal)
        let address = try await device.waitForLine(containing: "headquarters page: ").text
            .drop { $0 != "/" }.prefix { $0 != "\u{1B}" }
        let status = /connected\S*  \d+ sent  \d+ acknowledged  \S*\d+ unconfirmed/
        #expect(await eventually { device.text().contains(status) }, "\(device.report)")
        #expect(await eventually { device.text().contains(/\s\d+\.\d\/s\s/) }, "\(device.report)")
        let isWhole = await eventually {
            let lines = device.text().split(separator: "\r\u{1B}[K")
            return lines.contains { $0.contains(address) && $0.contains("% ") && $0.contains(" left") }
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
