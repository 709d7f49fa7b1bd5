import Foundation
import MQTT
import Synchronization
import TestSupport
import Testing
import Transport

@Suite("Session store: files", .turns)
struct FileSessionStoreTests {
    private func message(_ number: UInt64, size: Int = 10) -> MQTTStoreRecord {
        .message(
            .init(
                sequence: number, packetID: UInt16(truncatingIfNeeded: number), topic: "t/\(number)",
                payload: [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: size), qos: .exactlyOnce,
                retain: number % 2 == 0, properties: []))
    }

    private func store(
        _ scratch: ScratchDirectory, _ change: (inout FileSessionStore.Options) -> Void = { _ in }
    ) -> FileSessionStore {
        var options = FileSessionStore.Options()
        change(&options)
        return FileSessionStore(directory: scratch.file("session"), options: options)
    }

    private func log(_ scratch: ScratchDirectory) throws -> [UInt8] {
        Array(try Data(contentsOf: URL(fileURLWithPath: scratch.file("session/session.log"))))
    }

    private func setLog(_ scratch: ScratchDirectory, _ bytes: [UInt8]) throws {
        try Data(bytes).write(to: URL(fileURLWithPath: scratch.file("session/session.log")))
    }

    @Test func `what was appended is there when it is opened again, in order`() throws {
        let scratch = try ScratchDirectory()
        let first = store(scratch)
        #expect(try first.open().records == [])
        try first.setClientID("me")
        let records: [MQTTStoreRecord] = [
            .established, message(1), message(2), message(3), .released(sequence: 2), .received(packetID: 9),
        ]
        try first.append(records)
        try first.append([.finished(sequence: 1), .received(packetID: 8), .receivedReleased(packetID: 8)])
        first.close()
        let stored = try store(scratch).open()
        #expect(stored.clientID == "me")
        #expect(
            stored.records == [
                .established, message(2), message(3), .released(sequence: 2), .received(packetID: 9),
            ])
        #expect(stored.damage == nil)
    }

    /// As versions wrote it that stored no topic filters.
    private static let oldLog = """
        4d5154544c4f470100000008c2be130829cec4e98070686f656e697800000001ba0cc8c4a016d05201000000167e986b\
        407867dcbf020000000000000001000135090003742f3100010001000000255d2bd105aad897650a0000000000000002\
        00020000018bcfe5680034100003742f320001072600016100016202000000167e986b409a6051f80200000000000000\
        03000032090003742f33000100030000000930d5900b8411da670400000000000000020000000bd1eee0fcefd1ebcd03\
        000000000000000300030000000930d5900b637fffdb050000000000000001000000035b37b833c9678ea10600090000\
        00035b37b8333b0c0da2060008000000035b37b8339e4d9fdc070008000000035b37b833b760cf300d00070000001ef4\
        41338f60e90d000b00000000000000040005000001a3185c500034090003742f34000100040000001ef441338faf4217\
        dc0b00000000000000050006000001a3185c500034090003742f35000100050000000930d5900be8a84c1b0c00000000\
        00000005
        """

    @Test func `an old log is read, goes on with topic filters, and keeps them when it is rewritten`() throws {
        let scratch = try ScratchDirectory()
        let writer = store(scratch)
        _ = try writer.open()
        writer.close()
        let bytes = stride(from: 0, to: Self.oldLog.count, by: 2).map { place in
            UInt8(Self.oldLog.dropFirst(place).prefix(2), radix: 16)!
        }
        try setLog(scratch, bytes)
        let first = store(scratch) { $0.compactionSize = 1_000 }
        let old = try first.open()
        #expect(old.clientID == "phoenix" && old.damage == nil)
        var expected: [MQTTStoreRecord] = [.established]
        func add(_ sequence: UInt64, _ id: UInt16, _ qos: QoS, _ properties: MQTTProperties = [], time: Int64 = 0) {
            expected.append(
                .message(
                    .init(
                        sequence: sequence, packetID: id, topic: "t/\(sequence)", payload: [UInt8(sequence)], qos: qos,
                        retain: false, properties: properties, time: time)))
        }
        add(2, 2, .exactlyOnce, [.userProperty("a", "b")], time: 1_700_000_000_000)
        add(3, 3, .atLeastOnce)
        expected += [
            .released(sequence: 2), .received(packetID: 5), .received(packetID: 6), .received(packetID: 9),
            .retired(packetID: 7),
            .kept(
                .init(
                    sequence: 4, packetID: 5, topic: "t/4", payload: [4], qos: .exactlyOnce, retain: false,
                    properties: [], time: 1_800_000_000_000)),
        ]
        #expect(old.records == expected)
        try first.append([.filterWanted("a"), .filterWanted("b/+"), .filterWanted("c")])
        try first.append([.filterEnded("b/+"), .filterForgotten("c")])
        expected += [.filterWanted("a"), .filterEnded("b/+")]
        // It is rewritten several times meanwhile, and does not grow.
        for number in 1...200 as ClosedRange<UInt64> {
            let filter = "d/\(number)"
            try first.append([.filterWanted(filter), .filterEnded(filter), .filterForgotten(filter)])
        }
        first.close()
        #expect(try log(scratch).count < 3_000)
        #expect(try store(scratch).open().records == expected)
    }

    /// In a process of its own, since all threads share the working directory.
    @Test func `a relative directory stays the same when the process changes its working directory`() async {
        await #expect(processExitsWith: .success) {
            let scratch = try ScratchDirectory()
            let files = FileManager.default
            for name in ["a", "b"] {
                try files.createDirectory(atPath: scratch.file(name), withIntermediateDirectories: true)
            }
            guard files.changeCurrentDirectoryPath(scratch.file("a")) else { exit(2) }
            var options = FileSessionStore.Options()
            options.compactionSize = 2_000
            let store = FileSessionStore(directory: "store", options: options)
            _ = try store.open()
            try store.setClientID("me")
            guard files.changeCurrentDirectoryPath(scratch.file("b")) else { exit(3) }
            for number in 1...200 as ClosedRange<UInt64> {
                try store.append([.received(packetID: UInt16(number))])
                try store.append([.receivedReleased(packetID: UInt16(number))])
            }
            func size() -> Int {
                (try? Data(contentsOf: URL(fileURLWithPath: scratch.file("a/store/session.log"))).count) ?? 0
            }
            // It was rewritten all the time.
            guard (1...4_000).contains(size()) else { exit(4) }
            try store.removeAll()
            guard (1...100).contains(size()), !files.fileExists(atPath: scratch.file("b/store")) else { exit(5) }
            exit(0)
        }
    }

    /// In a process of its own, since all threads share the working directory.
    @Test func `a store that is opened again is the same one, wherever the process is meanwhile`() async {
        await #expect(processExitsWith: .success) {
            let scratch = try ScratchDirectory()
            for name in ["a", "b"] { try scratch.makeDirectory(name) }
            let files = FileManager.default
            guard files.changeCurrentDirectoryPath(scratch.file("a")) else { exit(2) }
            let store = FileSessionStore(directory: "store")
            guard files.changeCurrentDirectoryPath(scratch.file("b")) else { exit(3) }
            _ = try store.open()
            try store.setClientID("me")
            store.close()
            guard files.changeCurrentDirectoryPath("/") else { exit(4) }
            guard try store.open().clientID == "me", files.fileExists(atPath: scratch.file("a/store/session.log")),
                !files.fileExists(atPath: scratch.file("b/store")), store.directory.hasSuffix("/a/store")
            else { exit(5) }
            exit(0)
        }
    }

    @Test func `the directories that the store is in are made too, and survive a loss of power`() throws {
        let scratch = try ScratchDirectory()
        let synced = Synced()
        let directory = scratch.file("app/support/session")
        let store = FileSessionStore(directory: directory) { directory in
            synced.paths.withLock { $0.append((directory as? Directory)?.path ?? "?") }
            try directory.sync()
        }
        _ = try store.open()
        try store.append([message(1)])
        let made = [scratch.file("app"), scratch.file("app/support"), directory]
        #expect(synced.paths.withLock { Set(made.map { Directory.parent(of: $0) }).isSubset(of: $0) })
        store.close()
        #expect(try FileSessionStore(directory: directory).open().records == [message(1)])
    }

    private final class Synced: Sendable {
        let paths = Lock<[String]>([])
    }

    /// Sealed by a transform that adds a constant to each byte.
    @Test func `records that cannot be read though they are complete are an error, and stay`() throws {
        let scratch = try ScratchDirectory()
        let sealed = store(scratch) {
            $0.transform = FileSessionStore.Transform(seal: { $0.map { $0 &+ 77 } }, open: { $0.map { $0 &- 77 } })
        }
        _ = try sealed.open()
        try sealed.append([message(1), message(2)])
        sealed.close()
        let before = try log(scratch)
        let error = #expect(throws: SessionStoreError.self) { try store(scratch).open() }
        #expect(error?.description.contains("written with a transform") == true)
        #expect(try log(scratch) == before)
        let again = store(scratch) {
            $0.transform = FileSessionStore.Transform(seal: { $0.map { $0 &+ 77 } }, open: { $0.map { $0 &- 77 } })
        }
        #expect(try again.open().records == [message(1), message(2)])
    }

    /// The first byte of what is sealed is that of a client identifier, as with one key in 256.
    @Test func `a sealed record that looks like a client identifier is an error too, and stays`() throws {
        let scratch = try ScratchDirectory()
        let sealed = store(scratch) {
            $0.transform = FileSessionStore.Transform(seal: { [0x80, 0xFF] + $0 }, open: { Array($0.dropFirst(2)) })
        }
        _ = try sealed.open()
        try sealed.append([message(1)])
        sealed.close()
        let before = try log(scratch)
        let error = #expect(throws: SessionStoreError.self) { try store(scratch).open() }
        #expect(error?.description.contains("written with a transform") == true)
        #expect(try log(scratch) == before)
    }

    @Test(arguments: [("MQTTLOG\u{2} and more", "format 2"), ("The captain's log", "not a session's log")])
    func `a log of another format, or of another program, is an error, and stays`(
        content: String, reason: String
    ) throws {
        let scratch = try ScratchDirectory()
        let writer = store(scratch)
        _ = try writer.open()
        writer.close()
        try setLog(scratch, Array(content.utf8))
        let error = #expect(throws: SessionStoreError.self) { try store(scratch).open() }
        #expect(error?.description.contains(reason) == true, "\(error as Any)")
        #expect(try log(scratch) == Array(content.utf8))
        #expect(!FileManager.default.fileExists(atPath: scratch.file("session/session.damaged")))
    }

    /// A file system that has lost power may have made the file longer before the bytes reached the disk.
    @Test func `a log that begins with zeros is damaged`() throws {
        let scratch = try ScratchDirectory()
        let writer = store(scratch)
        _ = try writer.open()
        writer.close()
        try setLog(scratch, [UInt8](repeating: 0, count: 100))
        let reader = store(scratch)
        let stored = try reader.open()
        #expect(stored.records == [] && stored.damage?.bytesLost == 100)
        try reader.append([message(1)])
        reader.close()
        #expect(try store(scratch).open().records == [message(1)])
    }

    @Test func `one owner at a time, until it closes or is gone`() throws {
        let scratch = try ScratchDirectory()
        var first: FileSessionStore? = store(scratch)
        _ = try first?.open()
        let second = store(scratch)
        #expect(throws: SessionStoreError.self) { try second.open() }
        first = nil
        _ = try second.open()
        #expect(throws: SessionStoreError.self) { try second.open() }
    }

    @Test func `a log cut at any byte gives every whole record before the cut, and goes on`() throws {
        let scratch = try ScratchDirectory()
        let writer = store(scratch)
        _ = try writer.open()
        var ends: [Int] = []
        for number in 1...8 {
            try writer.append([message(UInt64(number))])
            ends.append(try log(scratch).count)
        }
        writer.close()
        let whole = try log(scratch)
        for cut in 0..<whole.count {
            try setLog(scratch, Array(whole[..<cut]))
            let reader = store(scratch) { $0.sync = .never }
            let stored = try reader.open()
            #expect(stored.records.count == ends.count { $0 <= cut }, "cut at \(cut)")
            #expect(stored.damage == nil, "cut at \(cut)")
            try reader.append([message(99)])
            reader.close()
            let again = store(scratch)
            #expect(try again.open().records.last == message(99))
            again.close()
        }
    }

    @Test func `a flipped bit is reported, and everything before it is recovered`() throws {
        let scratch = try ScratchDirectory()
        let writer = store(scratch)
        _ = try writer.open()
        var ends: [Int] = []
        for number in 1...6 {
            try writer.append([message(UInt64(number))])
            ends.append(try log(scratch).count)
        }
        writer.close()
        let whole = try log(scratch)
        for bit in stride(from: 0, to: whole.count * 8, by: 3) {
            var bytes = whole
            bytes[bit / 8] ^= 1 << (bit % 8)
            try setLog(scratch, bytes)
            let reader = store(scratch) { $0.sync = .never }
            if bit / 8 < 8 {
                // Nothing shows that it was a session's log of this format.
                #expect(throws: SessionStoreError.self, "bit \(bit)") { try reader.open() }
                #expect(try log(scratch) == bytes)
                continue
            }
            let stored = try reader.open()
            let before = ends.count { $0 <= bit / 8 }
            #expect(stored.records == (UInt64(1)...6).prefix(before).map { message($0) }, "bit \(bit)")
            #expect(stored.damage?.offset == (before == 0 ? 8 : ends[before - 1]), "bit \(bit)")
            #expect(stored.damage.map { $0.offset + $0.bytesLost } == whole.count)
            reader.close()
            let kept = FileManager.default.contents(atPath: scratch.file("session/session.damaged"))
            #expect(kept.map(Array.init) == bytes)
        }
    }

    @Test func `the log stays in proportion to what is alive`() throws {
        let scratch = try ScratchDirectory()
        let writer = store(scratch) {
            $0.compactionSize = 10_000
            $0.sync = .never
        }
        _ = try writer.open()
        try writer.setClientID("me")
        for number in 1...5000 {
            try writer.append([message(UInt64(number), size: 100), .finished(sequence: UInt64(max(1, number - 5)))])
            if number % 500 == 0 { #expect(try log(scratch).count < 25_000) }
        }
        writer.close()
        let stored = try store(scratch).open()
        #expect(stored.clientID == "me")
        #expect(stored.records == (UInt64(4996)...5000).map { message($0, size: 100) })
    }

    /// Each run writes less than the log has already.
    @Test func `the log stays in proportion to what is alive over many short runs`() throws {
        let scratch = try ScratchDirectory()
        func run(_ numbers: ClosedRange<UInt64>, size: Int) throws {
            let writer = store(scratch) {
                $0.compactionSize = 10_000
                $0.sync = .never
            }
            _ = try writer.open()
            for number in numbers { try writer.append([message(number, size: size), .finished(sequence: number)]) }
            writer.close()
        }
        try run(1...50, size: 137)
        #expect((9_000...10_000).contains(try log(scratch).count), "not rewritten yet")
        for _ in 1...50 { try run(1...20, size: 137) }
        #expect(try log(scratch).count < 25_000)
    }

    @Test func `a log is not written anew while all of it is needed`() throws {
        let scratch = try ScratchDirectory()
        let writer = store(scratch) {
            $0.compactionSize = 10_000
            $0.sync = .never
        }
        _ = try writer.open()
        // What else has a descriptor on the file sees whether another one takes its place.
        let file = try #require(FileHandle(forReadingAtPath: scratch.file("session/session.log")))
        for start in stride(from: 1, to: 2000, by: 20) {
            try writer.append((start..<(start + 20)).map { message(UInt64($0), size: 100) })
        }
        let size = try log(scratch).count
        #expect(try file.seekToEnd() == UInt64(size))
        for start in stride(from: 1, to: 1900, by: 20) {
            try writer.append((start..<(start + 20)).map { .finished(sequence: UInt64($0)) })
        }
        #expect(try log(scratch).count < size * 3 / 4)
        #expect(try file.seekToEnd() > UInt64(size))
    }

    @Test func `a transform seals what is on the disk, and the wrong one opens nothing and destroys nothing`() throws {
        struct Wrong: Error {}
        func transform(_ key: UInt8) -> FileSessionStore.Transform {
            .init {
                [key] + $0.map { $0 ^ key }
            } open: { bytes in
                guard bytes.first == key else { throw Wrong() }
                return bytes.dropFirst().map { $0 ^ key }
            }
        }
        let scratch = try ScratchDirectory()
        let writer = store(scratch) { $0.transform = transform(0x5A) }
        _ = try writer.open()
        try writer.setClientID("me")
        try writer.append([message(1)])
        writer.close()
        let text = String(decoding: try log(scratch), as: UTF8.self)
        #expect(!text.contains("t/1") && !text.contains("me"))
        #expect(throws: SessionStoreError.self) { try store(scratch) { $0.transform = transform(0x33) }.open() }
        let reader = store(scratch) { $0.transform = transform(0x5A) }
        let stored = try reader.open()
        #expect(stored.records == [message(1)] && stored.clientID == "me")
    }

    @Test func `removing all leaves an empty store that works`() throws {
        let scratch = try ScratchDirectory()
        let writer = store(scratch)
        _ = try writer.open()
        try writer.setClientID("me")
        try writer.append([message(1)])
        try writer.removeAll()
        try writer.append([message(2)])
        writer.close()
        let stored = try store(scratch).open()
        #expect(stored.records == [message(2)] && stored.clientID == nil)
    }

    @Test func `removing all leaves no copy of a damaged log`() throws {
        let scratch = try ScratchDirectory()
        try damageLog(scratch)
        let writer = store(scratch)
        #expect(try writer.open().damage != nil)
        let copy = scratch.file("session/session.damaged")
        #expect(FileManager.default.fileExists(atPath: copy))
        try writer.removeAll()
        #expect(!FileManager.default.fileExists(atPath: copy))
        writer.close()
    }

    @Test func `what precedes damage is recovered although the damaged log cannot be copied`() throws {
        let scratch = try ScratchDirectory()
        try damageLog(scratch)
        // In the way of the copy, as a full disk is.
        try FileManager.default.createDirectory(
            atPath: scratch.file("session/session.damaged"), withIntermediateDirectories: false)
        let reader = store(scratch)
        let stored = try reader.open()
        #expect(stored.records == [message(1)])
        #expect(stored.damage?.bytesLost ?? 0 > 0)
        #expect(stored.damage?.reason.contains("not copied to session.damaged") == true, "\(stored.damage as Any)")
        try reader.append([message(3)])
        reader.close()
        #expect(try store(scratch).open().records == [message(1), message(3)])
    }

    /// Makes a log of two messages, the second of which is damaged.
    private func damageLog(_ scratch: ScratchDirectory) throws {
        let writer = store(scratch)
        _ = try writer.open()
        try writer.append([message(1), message(2)])
        writer.close()
        var bytes = try log(scratch)
        bytes[bytes.count - 1] ^= 1
        try setLog(scratch, bytes)
    }
}
