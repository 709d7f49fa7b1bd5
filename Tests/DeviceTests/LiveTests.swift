import Foundation
import TestSupport
import Testing

@testable import MessagingDeviceSupport

@Suite(.turns)
struct LiveTests {
    /// A pipe and the file at its reading end.
    private func pipe() throws -> (write: FileHandle, read: InputFile, keep: Pipe) {
        let pipe = Pipe()
        let path = "/dev/fd/\(pipe.fileHandleForReading.fileDescriptor)"
        return (pipe.fileHandleForWriting, try InputFile(path: path), pipe)
    }

    @Test func rowsArriveAsTheyAreWritten() async throws {
        let (write, read, pipe) = try pipe()
        let source = LiveSource.locations(read) { Issue.record("\($0)") }
        try write.write(contentsOf: Data("lat,lng\n1,2\n3,".utf8))
        #expect(try await source.next()?.longitude == 2)
        try write.write(contentsOf: Data("4\n5,6".utf8))
        #expect(try await source.next()?.longitude == 4)
        try write.close()
        #expect(try await source.next()?.longitude == 6)
        #expect(try await source.next() == nil)
        #expect(try await source.next() == nil)
        withExtendedLifetime(pipe) {}
    }

    @Test func aLiveFixWithoutATimeHasTheTimeWhenItWasRead() async throws {
        let (write, read, pipe) = try pipe()
        let source = LiveSource.locations(read) { Issue.record("\($0)") }
        let before = Timestamp.now()
        try write.write(contentsOf: Data("1,2\n1,2,2014-03-13T17:19:05+01:00\n".utf8))
        let fix = try #require(try await source.next())
        let age = try #require(fix.time).age(at: before)
        // It has whole seconds.
        #expect((-60_000_000_000..<1_000_000_000).contains(age))
        #expect(try await source.next()?.time?.description == "2014-03-13T17:19:05+01:00")
        withExtendedLifetime(pipe) {}
    }

    private final class Notes: Sendable {
        let lines = Watched<[String]>([])
        func add(_ line: String) { lines.change { $0.append(line) } }
    }

    /// What a source of fixes brings and reports.
    private func fixes(_ text: some Sequence<UInt8>) async throws -> (values: [Fix], notes: [String]) {
        let (write, read, pipe) = try pipe()
        let notes = Notes()
        let source = LiveSource.locations(read, report: notes.add)
        try write.write(contentsOf: Data(text))
        try write.close()
        var values: [Fix] = []
        while let fix = try await source.next() { values.append(fix) }
        withExtendedLifetime(pipe) {}
        return (values, notes.lines.value)
    }

    @Test func `a bad row is left out, and told before the next one arrives`() async throws {
        let (write, read, pipe) = try pipe()
        let notes = Notes()
        let source = LiveSource.motions(read, report: notes.add)
        try write.write(contentsOf: Data("1,2,3\nx,y,z\n4,5,6\n".utf8))
        #expect(try await source.next() == Attitude(pitch: 1, roll: 2, yaw: 3))
        #expect(try await source.next() == Attitude(pitch: 4, roll: 5, yaw: 6))
        #expect(notes.lines.value == ["Left out: 1 row, line 2: the pitch 'x' is not a number."])
        withExtendedLifetime(pipe) {}
    }

    @Test func `a good fix with a time that cannot be read has the time when it was read`() async throws {
        let before = Timestamp.now()
        let (values, notes) = try await fixes("lat,lng,ts\n1,2,noon\n3,4,24:61\n".utf8)
        #expect(values.map(\.latitude) == [1, 3])
        for fix in values { #expect(try #require(fix.time).age(at: before) < 1_000_000_000) }
        #expect(notes.last?.hasPrefix("Left out: 2 times, first line 2: 'noon' is not ") == true, "\(notes)")
    }

    @Test func `a receiver without a fix is told of with ever more rows, and all of them at the end`() async throws {
        let (values, notes) = try await fixes(("1,2\n" + String(repeating: ",\n", count: 100) + "3,4\n").utf8)
        #expect(values.map(\.latitude) == [1, 3])
        let counts = notes.map { $0.split(separator: " ")[2] }
        #expect(counts == ["1", "2", "4", "8", "16", "32", "64", "100"], "\(notes)")
        #expect(notes.last == "Left out: 100 rows, first line 2: the latitude '' is not a number.")
    }

    @Test func `a row that is too long and one in another encoding do not end the source either`() async throws {
        let long = String(repeating: "x", count: 200_000)
        let (values, notes) = try await fixes(
            "lat,lng,name\n1,2,\(long)\n3,4,Zürich\n".unicodeScalars.map { UInt8($0.value) })
        #expect(values.map(\.latitude) == [3])
        #expect(notes == ["Left out: 1 row, line 2: longer than 65536 bytes."])
    }

    @Test(arguments: [",4", "2020-12-18T06:21:48Z", "T06:21:48Z", "Z", "e-5", "\",\"2\""])
    func `a program that is attached in the middle of a row leaves its end out`(end: String) async throws {
        let (values, notes) = try await fixes((end + "\n1,2\n").utf8)
        #expect(values.map(\.latitude) == [1])
        #expect(notes.count == 1 && notes.first?.hasPrefix("Left out: 1 row, line 1: ") == true, "\(notes)")
    }

    @Test func `the columns of a header that was not read to the end are not guessed`() async throws {
        for end in ["x,y", "x,y,z", "X,Y,Z", "x,y,", "g,lat", "at", "acc1,acc2"] {
            let message = "standard input, line 1: neither lat,lng[,ts] nor a header with the columns lat and lng"
            await #expect(throws: DeviceFailure(.dataError, message)) { try await fixes((end + "\n1,2\n").utf8) }
        }
    }

    /// Input that comes live never ends, so that nobody would learn at its end that it cannot be read.
    @Test func `only the first line may be the end of a row`() async throws {
        let message = "standard input, line 2: neither lat,lng[,ts] nor a header with the columns lat and lng"
        await #expect(throws: DeviceFailure(.dataError, message)) {
            try await fixes("47.37;8.54\n47.38;8.55\n47.39;8.56\n".utf8)
        }
    }

    @Test func `what brings no value at all is an error`() async throws {
        for (text, message) in [
            ("name,place\n1,2\n", "line 1: neither lat,lng[,ts] nor a header with the columns lat and lng"),
            ("lat,lng\nx,1\n,\n", "line 2: the latitude 'x' is not a number"),
        ] {
            await #expect(throws: DeviceFailure(.dataError, "standard input, \(message)")) {
                try await fixes(text.utf8)
            }
        }
        let message = "standard input is UTF-16: convert it first, with iconv -f UTF-16 -t UTF-8"
        await #expect(throws: DeviceFailure(.dataError, message)) { try await fixes([0xFF, 0xFE, 0x31, 0]) }
        #expect(try await fixes("lat,lng\n".utf8).values == [])
    }

    @Test func cancellingEndsAWait() async throws {
        let source = LiveSource<Int>()
        let task = Task { try await source.next() }
        try await Task.sleep(for: .milliseconds(20))
        task.cancel()
        #expect(try await task.value == nil)
        // What comes later is not lost to the wait that was given up.
        source.send(1)
        #expect(try await source.next() == 1)
    }

    @Test func aSourceMayBeDroppedWithValuesUnread() {
        weak var dropped: LiveSource<Int>?
        do {
            let source = LiveSource<Int>(capacity: 4)
            for value in 0..<3 { source.send(value) }
            dropped = source
        }
        #expect(dropped == nil)
    }

    @Test func aFullSourceHoldsItsWriterBack() async throws {
        let source = LiveSource<Int>(capacity: 4)
        let thread = Thread {
            for value in 0..<1000 { source.send(value) }
            source.finish()
        }
        thread.start()
        var values: [Int] = []
        while let value = try await source.next() { values.append(value) }
        #expect(values == Array(0..<1000))
    }
}
