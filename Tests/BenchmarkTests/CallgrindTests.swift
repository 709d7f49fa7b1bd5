import Foundation
import TestSupport
import Testing

/// What a tool says of itself is told from what it says of a program.
@Suite(.turns)
struct CallgrindTests {
    @Test func aCountIsRead() {
        let lines = ["==7== Events    : Ir", "==7== Collected : 91822", "==7== "]
        #expect(Callgrind.Outcome(.exited(0), errors: lines) == .counted(91_822))
    }

    @Test(arguments: [
        ["valgrind: the 'impossible' happened:", "   Killed by fatal signal", "==7== Collected : 5"],
        ["valgrind: m_debuginfo/readdwarf.c:1: failed", "please report this bug to: www.valgrind.org"],
    ])
    func aToolThatGivesUpSaysNothingOfTheProgram(_ lines: [String]) {
        #expect(Callgrind.Outcome(.exited(1), errors: lines) == .gaveUp(lines.joined(separator: "\n")))
    }

    @Test func aProgramThatFailsIsNotTheToolsFault() {
        let lines = (1...60).map { "line \($0)" }
        let tail = lines.suffix(40).joined(separator: "\n")
        for status in [TestSupport.ExitStatus.exited(70), .exited(0)] {
            #expect(Callgrind.Outcome(status, errors: lines) == .failed("\(status)\n\(tail)"))
        }
        #expect(
            Callgrind.Outcome(.exited(70), errors: ["==7== Collected : 5"])
                == .failed("\(TestSupport.ExitStatus.exited(70))\n==7== Collected : 5"))
    }

    @Test(.requires(program: "valgrind"))
    func aProgramIsCounted() async throws {
        let valgrind = try #require(Command.path(of: "valgrind"))
        let callgrind = try await Callgrind("/bin/true", valgrind: valgrind)
        guard let instructions = try await callgrind.instructions([]) else { return }
        #expect(instructions > 1000)
    }

    @Test func aProgramThatFailsBelowItIsToldOf() async throws {
        let scratch = try ScratchDirectory()
        let tool = try scratch.write("#!/bin/sh\necho 'the last word' >&2\nexit 3\n", to: "valgrind")
        chmod(tool, 0o755)
        let callgrind = try await Callgrind("/bin/true", valgrind: tool)
        let error = await #expect(throws: BenchmarkTable.Failure.self) { try await callgrind.instructions([]) }
        #expect(error?.description.contains("the last word") == true)
    }

    @Test func aToolThatGivesUpIsNoFailure() async throws {
        let scratch = try ScratchDirectory()
        let says = "If that doesn't help, please report this bug to: www.valgrind.org"
        let tool = try scratch.write("#!/bin/sh\necho \"\(says)\" >&2\nexit 1\n", to: "valgrind")
        chmod(tool, 0o755)
        let callgrind = try await Callgrind("/bin/true", valgrind: tool)
        #expect(try await callgrind.run([]) == .gaveUp(says))
    }
}
