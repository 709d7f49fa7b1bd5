import Foundation
import MQTT
import Synchronization
import TestSupport
import Testing

/// Writes that fail: a full disk, a transform that throws, a log that cannot be written anew.
@Suite("Session store: writes that fail", .turns)
struct FailingDiskTests {
    struct SealFailed: Error {}

    private func message(_ number: UInt64) -> MQTTStoreRecord {
        .message(
            .init(
                sequence: number, packetID: UInt16(truncatingIfNeeded: number), topic: "t", payload: [1, 2, 3],
                qos: .atLeastOnce, retain: false, properties: []))
    }

    private func store(
        _ scratch: ScratchDirectory, compactionSize: Int = 1 << 20, sealFails: (@Sendable () -> Bool)? = nil
    ) -> FileSessionStore {
        var options = FileSessionStore.Options()
        options.compactionSize = compactionSize
        if let sealFails {
            options.transform = FileSessionStore.Transform(
                seal: { if sealFails() { throw SealFailed() } else { $0 } }, open: { $0 })
        }
        return FileSessionStore(directory: scratch.file("session"), options: options)
    }

    @Test func `records whose writing failed are not there when the log has been written anew`() throws {
        let scratch = try ScratchDirectory()
        let calls = Atomic(0)
        // The second of the first two fails.
        let first = store(scratch, compactionSize: 300) { calls.add(1, ordering: .relaxed).newValue == 2 }
        _ = try first.open()
        #expect(throws: SealFailed.self) { try first.append([message(1), message(2)]) }
        // Written anew in between, since all but the last is done.
        for number in 3..<60 as Range<UInt64> { try first.append([message(number), .finished(sequence: number)]) }
        try first.append([message(99)])
        first.close()
        #expect(try store(scratch).open().records == [message(99)])
    }

    @Test func `a client identifier whose writing failed is written the next time`() throws {
        let scratch = try ScratchDirectory()
        let calls = Atomic(0)
        let first = store(scratch) { calls.add(1, ordering: .relaxed).newValue == 1 }
        _ = try first.open()
        #expect(throws: SealFailed.self) { try first.setClientID("me") }
        try first.setClientID("me")
        first.close()
        #expect(try store(scratch).open().clientID == "me")
    }

    @Test func `records are stored although the log cannot be written anew`() throws {
        let scratch = try ScratchDirectory()
        let first = store(scratch, compactionSize: 300)
        _ = try first.open()
        // In the way of the new log.
        let obstacle = scratch.file("session/session.new")
        try FileManager.default.createDirectory(atPath: obstacle, withIntermediateDirectories: false)
        try Data().write(to: URL(fileURLWithPath: obstacle + "/x"))
        for number in 1..<60 as Range<UInt64> { try first.append([message(number), .finished(sequence: number)]) }
        try first.append([message(99)])
        #expect(throws: (any Error).self) { try first.removeAll() }
        first.close()
        try FileManager.default.removeItem(atPath: obstacle)
        #expect(try store(scratch).open().records == [message(99)])
    }

    @Test func `on a full disk nothing accepted is lost, and nothing refused comes back`() async throws {
        let scratch = try ScratchDirectory()
        // The largest file, in units of 512 bytes, stands for the disk. Without the trap the signal would end the process.
        let result = try await Tool.run(
            "sh",
            ["-c", "trap '' XFSZ; ulimit -f 40; exec \"$0\" \"$@\"", BuiltProgram.path("session-store-writer")]
                + [scratch.file("session"), "full", "1", "0"]
        ).requireSuccess()
        let lines = result.text.split(separator: "\n")
        func numbers(_ mark: String) -> Set<UInt64> {
            Set(lines.filter { $0.hasPrefix(mark) }.compactMap { UInt64($0.dropFirst(mark.count)) })
        }
        let (accepted, refused) = (numbers("a "), numbers("x "))
        #expect(accepted.count > 10 && refused.count > 10, "\(result.text.suffix(200))")
        let stored = try store(scratch).open()
        #expect(stored.damage == nil)
        let found = stored.records.compactMap { record -> UInt64? in
            if case .message(let message) = record { message.sequence } else { nil }
        }
        #expect(Set(found) == accepted.subtracting(numbers("f ")))
        #expect(found.count == Set(found).count)
    }
}
