import Foundation
import TestSupport
import Testing

/// What every test that starts a program relies on.
@Suite(.turns)
struct ChildProcessTests {
    @Test func capturesBothStreamsAndTheExitStatus() async throws {
        let child = try await ChildProcess.start(Command("sh", ["-c", "echo one; echo two >&2; printf three; exit 7"]))
        #expect(try await child.waitForEnd() == .exited(7))
        #expect(child.lines() == ["one", "three"])
        #expect(child.lines(.errors) == ["two"])
        #expect(child.bytes() == Array("one\nthree".utf8))
    }

    @Test func findsEachLineInTurn() async throws {
        let child = try await ChildProcess.start(Command("cat", input: .pipe))
        try await child.write("same\nsame\n")
        let first = try await child.waitForLine(containing: "am")
        let second = try await child.waitForLine(containing: "am", after: first)
        #expect(first.number == 0 && second.number == 1)
        await #expect(throws: TimeoutError.self) {
            try await child.waitForLine(containing: "am", after: second, timeout: .milliseconds(50))
        }
        child.closeInput()
        #expect(try await child.waitForExit() == .exited(0))
        await #expect(throws: SystemCallError.self) { try await child.write("late") }
    }

    @Test func writingToAProgramThatHasGoneThrowsInsteadOfKillingUs() async throws {
        let child = try await ChildProcess.start(Command("true", input: .pipe))
        _ = try await child.waitForExit()
        await #expect(throws: SystemCallError.self) { try await child.write("nobody reads this") }
    }

    @Test func passesMoreThanAPipeHolds() async throws {
        let bytes = [UInt8](repeating: 0x61, count: 700_000)
        let result = try await Tool.run("cat", input: bytes)
        #expect(result.output == bytes)
    }

    @Test func keepsOnlyTheLastBytes() async throws {
        let child = try await ChildProcess.start(Command("seq", ["1", "200000"], outputLimit: 1000))
        #expect(try await child.waitForEnd() == .exited(0))
        #expect(child.bytes().count == 1000)
        #expect(child.lines().last == "200000")
        #expect(child.lines().count < 500)
    }

    @Test func endsTheWholeProcessGroupWithItsLastReference() async throws {
        var child: ChildProcess? = try await ChildProcess.start(Command("sh", ["-c", "sleep 1000 & echo $!; wait"]))
        let line = try await child?.nextLine()
        let inner = try #require(line.flatMap { pid_t($0.text) })
        #expect(kill(inner, 0) == 0)
        child = nil
        // It may stay a zombie for as long as the system's first process likes.
        #expect(
            await eventually {
                let status = (try? String(contentsOfFile: "/proc/\(inner)/status", encoding: .utf8)) ?? ""
                return kill(inner, 0) != 0 || status.contains("State:\tZ")
            })
    }

    @Test func stopsGentlyAndKillsWhatDoesNotListen() async throws {
        let gentle = try await ChildProcess.start(Command("sleep", ["1000"]))
        #expect(await gentle.stop() == .signalled(SIGTERM))
        let deaf = try await ChildProcess.start(
            Command("sh", ["-c", "trap '' TERM; echo up; while :; do sleep 1; done"]))
        try await deaf.waitForLine(containing: "up")
        #expect(await deaf.stop(grace: .milliseconds(100)) == .signalled(SIGKILL))
    }

    @Test func usesATerminalOnlyWhenAsked() async throws {
        let script = "test -t 1 && stty size || echo none"
        let plain = try await ChildProcess.start(Command("sh", ["-c", script]))
        #expect(try await plain.nextLine().text == "none")
        let terminal = try await ChildProcess.start(
            Command("sh", ["-c", script], terminal: .init(columns: 100, rows: 30)))
        #expect(try await terminal.nextLine().text == "30 100")
        let interrupted = try await ChildProcess.start(Command("cat", terminal: .init()))
        try await interrupted.write("echo\n")
        try await interrupted.waitForLine(containing: "echo")
        try await interrupted.write("\u{3}")
        #expect(try await interrupted.waitForExit() == .signalled(SIGINT))
    }

    @Test func startsInItsDirectoryWithItsEnvironment() async throws {
        let scratch = try ScratchDirectory()
        let child = try await ChildProcess.start(
            Command("sh", ["-c", "pwd; echo $GREETING"], environment: ["GREETING": "hi"], directory: scratch.path))
        _ = try await child.waitForEnd()
        let name = URL(fileURLWithPath: scratch.path).lastPathComponent
        #expect(child.lines().first?.hasSuffix(name) == true)
        #expect(child.lines().last == "hi")
    }

    @Test func missingProgramsAreNamed() async throws {
        await #expect(throws: ProgramNotFound.self) { try await ChildProcess.start(Command("no-such-program")) }
    }

    @Test func handsOutPortsOnlyOnce() {
        let ports = (0..<200).map { _ in FreePort.next() }
        #expect(Set(ports).count == ports.count)
        #expect(ports.allSatisfy { $0 < 32768 })
    }
}
