import Foundation
import TestSupport
import Testing

@testable import benchmarks

/// What the benchmark starts ends, with all that it started itself.
@Suite(.turns)
struct ChildTests {
    private func isRunning(_ id: Int32) -> Bool {
        // A process that has ended and that nobody has asked for is there too.
        guard kill(id, 0) == 0 else { return false }
        let status = try? String(contentsOfFile: "/proc/\(id)/stat", encoding: .utf8)
        return status?.contains(") Z ") != true
    }

    @Test func anEndWithinItsTimeGivesWhatWasPrinted() throws {
        #expect(try Shell.run("/bin/sh", ["-c", "echo one; echo two"]) == "one\ntwo\n")
        #expect { try Shell.run("/bin/sh", ["-c", "exit 3"]) } throws: { "\($0)".contains("status 3") }
    }

    @Test func whatTakesTooLongIsKilledWithItsWholeGroup() async throws {
        let scratch = try ScratchDirectory()
        let file = scratch.file("ids")
        let script = "sleep 600 & echo $$ $! > \(file); wait"
        var ids: [Substring] = []
        // A busy machine may need longer until the script has written them.
        for limit in [3, 30, 150] where ids.count < 2 {
            #expect {
                try Shell.run("/bin/sh", ["-c", script], timeLimit: .seconds(limit))
            } throws: {
                "\($0)".contains("killed")
            }
            let text = (try? String(contentsOfFile: file, encoding: .utf8)) ?? ""
            ids = text.split(whereSeparator: \.isWhitespace)
        }
        #expect(ids.count == 2)
        for id in ids.compactMap({ Int32($0) }) { #expect(await eventually { !isRunning(id) }) }
    }

    @Test func whatAProgramLeavesBehindEndsWithIt() async throws {
        let output = try Shell.run("/bin/sh", ["-c", "sleep 600 > /dev/null & echo $!"])
        let id = try #require(Int32(output.dropLast()))
        #expect(await eventually { !isRunning(id) })
    }
}
