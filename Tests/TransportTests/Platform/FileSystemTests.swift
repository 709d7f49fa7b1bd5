import Foundation
import TestSupport
import Testing

@testable import Transport

@Suite("File system")
struct FileSystemTests {
    /// Fails with some errors, one after the other, before it succeeds.
    private final class FailingCall {
        var errors: [Int32]
        init(_ errors: [Int32]) { self.errors = errors }

        func run() -> Int32 {
            guard !errors.isEmpty else { return 0 }
            errno = errors.removeFirst()
            return -1
        }
    }

    @Test func `a call that a signal interrupts is made again`() throws {
        let call = FailingCall([EINTR, EINTR, EIO, EINTR])
        #expect(FileSystem.uninterrupted { call.run() } == -1)
        #expect(call.errors == [EINTR])
        #expect(FileSystem.uninterrupted { call.run() } == 0)
    }

    /// Some file systems, such as those of network shares, have no such call.
    @Test func `a directory that cannot be forced to the disk is as safe as its file system makes it`() throws {
        let scratch = try ScratchDirectory()
        let directory = try Directory(scratch.file("."))
        try directory.sync()
        let call = FailingCall([EINTR, EINVAL, EIO])
        try directory.sync(by: { _ in call.run() })
        #expect(throws: FileError.self) { try directory.sync(by: { _ in call.run() }) }
        #expect(call.errors == [])
    }
}
