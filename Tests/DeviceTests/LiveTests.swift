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
        let source = LiveSource.locations(read)
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
        let source = LiveSource.locations(read)
        let before = Timestamp.now()
        try write.write(contentsOf: Data("1,2\n1,2,2014-03-13T17:19:05+01:00\n".utf8))
        let fix = try #require(try await source.next())
        let age = try #require(fix.time).age(at: before)
        // It has whole seconds.
        #expect((-60_000_000_000..<1_000_000_000).contains(age))
        #expect(try await source.next()?.time?.description == "2014-03-13T17:19:05+01:00")
        withExtendedLifetime(pipe) {}
    }

    @Test func aMalformedRowEndsTheSourceAfterTheRowsBeforeIt() async throws {
        let (write, read, pipe) = try pipe()
        let source = LiveSource.motions(read)
        try write.write(contentsOf: Data("1,2,3\nx,y,z\n".utf8))
        #expect(try await source.next() == Attitude(pitch: 1, roll: 2, yaw: 3))
        await #expect(throws: DeviceFailure(.dataError, "standard input, line 2: the pitch 'x' is not a number")) {
            try await source.next()
        }
        withExtendedLifetime(pipe) {}
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
