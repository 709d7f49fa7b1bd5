import Foundation
import TestSupport
import Testing

/// Valgrind's counter of instructions.
struct Callgrind {
    /// What became of a program that ran below it.
    enum Outcome: Equatable {
        case counted(Double)
        /// Valgrind itself gave up, which says nothing of the program; with what it said.
        case gaveUp(String)
        /// The program ended in another way than it should; with what was said.
        case failed(String)

        init(_ status: TestSupport.ExitStatus, errors: [String]) {
            let tail = errors.suffix(40).joined(separator: "\n")
            let line = errors.first { $0.contains("Collected :") }
            if let first = errors.firstIndex(where: Self.isOfValgrindItself) {
                // Why stands just before that, and where at the end.
                let lines = errors.dropFirst(max(0, first - 10)).prefix(30) + ["…"] + errors.suffix(10)
                self = .gaveUp(errors.count <= 50 ? errors.joined(separator: "\n") : lines.joined(separator: "\n"))
            } else if status == .exited(0), let line,
                let count = line.components(separatedBy: " : ").last.flatMap(Double.init)
            {
                self = .counted(count)
            } else {
                self = .failed("\(status)\n\(tail)")
            }
        }

        /// What it says of its own assertions, crashes and limits, not of a program's.
        private static func isOfValgrindItself(_ line: String) -> Bool {
            ["the 'impossible' happened", "please report this bug to"].contains { line.contains($0) }
        }
    }

    let valgrind: String
    /// A copy without debug information, of which older versions of Valgrind do not know every form.
    private let program: String
    private let scratch: ScratchDirectory

    init(_ program: String, valgrind: String) async throws {
        self.valgrind = valgrind
        scratch = try ScratchDirectory("callgrind")
        let copy = scratch.file("program")
        if Command.path(of: "strip") != nil {
            try await Tool.run("strip", ["-o", copy, program]).requireSuccess()
            self.program = copy
        } else {
            self.program = program
        }
    }

    /// The instructions of a whole run. A Valgrind that does not work on this machine is noted, with what it says, and is
    /// no failure of ours: the answer is nil.
    func instructions(_ arguments: [String], environment: [String: String] = [:]) async throws -> Double? {
        switch try await run(arguments, environment: environment) {
        case .counted(let count): return count
        case .failed(let text):
            throw BenchmarkTable.Failure(description: "below callgrind the program ended with \(text)")
        case .gaveUp(let text):
            withKnownIssue("\(text)", isIntermittent: true) { Issue.record("Valgrind does not work here") }
            return nil
        }
    }

    func run(_ arguments: [String], environment: [String: String] = [:]) async throws -> Outcome {
        let process = try await ChildProcess.start(
            Command(
                valgrind,
                ["--tool=callgrind", "--callgrind-out-file=/dev/null", "--vgdb=no", program] + arguments,
                environment: environment, directory: scratch.path))
        let status = try await process.waitForEnd()
        return Outcome(status, errors: process.lines(.errors))
    }
}
