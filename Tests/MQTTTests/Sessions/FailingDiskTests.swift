import Foundation
import MessagingShell
import Synchronization
import TestSupport
import Testing
import Transport

@testable import MQTT

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

    /// A store whose directories cannot be forced to the disk while `fails` is true.
    private func store(
        _ scratch: ScratchDirectory, compactionSize: Int = 300, sync: FileSessionStore.SyncPolicy = .always,
        _ failing: DirectoryFaults
    ) -> FileSessionStore {
        var options = FileSessionStore.Options()
        options.compactionSize = compactionSize
        options.sync = sync
        return FileSessionStore(directory: scratch.file("session"), options: options) { try failing.sync($0) }
    }

    @Test(arguments: [FileSessionStore.SyncPolicy.always, .never])
    func `no accepted record is lost when the directory of a rewritten log cannot be forced to the disk`(
        sync: FileSessionStore.SyncPolicy
    ) throws {
        let scratch = try ScratchDirectory()
        let faults = DirectoryFaults()
        let first = store(scratch, sync: sync, faults)
        _ = try first.open()
        faults.areOn = true
        var accepted: [MQTTStoreRecord] = []
        var refused = 0
        // All but the last of each ten are done, so that the log is rewritten several times.
        for number in 1..<200 as Range<UInt64> {
            if number == 100 { faults.areOn = false }
            do {
                try first.append([message(number)])
                if number % 10 == 0 {
                    accepted.append(message(number))
                } else {
                    try first.append([.finished(sequence: number)])
                }
            } catch {
                refused += 1
                // Done all the same, if it was stored.
                try? first.append([.finished(sequence: number)])
            }
        }
        #expect(faults.count > 0 || sync == .never)
        if sync == .always { #expect(refused > 0, "what may not survive a loss of power is not accepted") }
        if sync == .never { #expect(refused == 0) }
        first.close()
        let stored = try store(scratch, faults).open()
        let found = stored.records
        #expect(stored.damage == nil)
        #expect(accepted.allSatisfy { found.contains($0) })
        #expect(accepted.count >= 9)
    }

    @Test func `what is accepted after an emptied store's directory cannot be forced to the disk is found again`()
        throws
    {
        let scratch = try ScratchDirectory()
        let faults = DirectoryFaults()
        let first = store(scratch, faults)
        _ = try first.open()
        try first.append([message(1)])
        faults.areOn = true
        #expect(throws: (any Error).self) { try first.removeAll() }
        faults.areOn = false
        try first.append([message(2)])
        // Rewritten several times from what this object takes for its contents.
        for number in 3..<60 as Range<UInt64> { try first.append([message(number), .finished(sequence: number)]) }
        first.close()
        let second = store(scratch, faults)
        // The log is empty or as it was: the first message is there for this object and for the next one, or for neither.
        let found = try second.open().records
        #expect(found == [message(2)])
        second.close()
    }

    @Test func `after a full disk has room again, connect() makes the store work as its error says`() async throws {
        let bench = try await Bench()
        let disk = FillingStore()
        let client = bench.client("full") { $0.sessionStore = disk }
        let receiver = try await bench.connected()
        let messages = try await receiver.subscribe(to: "a", qos: .atLeastOnce)
        try await client.connect()
        try await client.enqueue(MQTTOutgoingMessage("before", to: "a"))
        #expect(try await messages.first(1).map(\.text) == ["before"])
        // Otherwise it would be sent once more.
        #expect(await eventually { disk.base.messageCount == 0 })
        disk.isFull = true
        await #expect { try await client.enqueue(MQTTOutgoingMessage("refused", to: "a")) } throws: { error in
            let error = error as? MQTTError
            return error?.code == .storeFailed && error?.message.contains("call connect() again") == true
        }
        #expect(await eventually { if case .disconnected = client.state { true } else { false } })
        // As long as the disk is full, the error is that of the disk.
        await #expect { try await client.enqueue(MQTTOutgoingMessage("refused", to: "a")) } throws: {
            ($0 as? MQTTError)?.code == .storeFailed
        }
        disk.isFull = false
        try await client.connect()
        try await client.enqueue(MQTTOutgoingMessage("after", to: "a"))
        try await client.publish("published", to: "a", qos: .atLeastOnce)
        #expect(try await messages.first(2).map(\.text) == ["after", "published"])
        await client.disconnect()
        #expect(disk.base.messageCount == 0)
        await receiver.disconnect()
        await bench.stop()
    }

    @Test func `what the store accepted before the disk was full is sent after it has room again`() async throws {
        let bench = try await Bench()
        let disk = FillingStore()
        let client = bench.client("full") { $0.sessionStore = disk }
        let receiver = try await bench.connected()
        let messages = try await receiver.subscribe(to: "a", qos: .atLeastOnce)
        for number in 1...3 { try await client.enqueue(MQTTOutgoingMessage("\(number)", to: "a")) }
        disk.isFull = true
        await #expect { try await client.enqueue(MQTTOutgoingMessage("refused", to: "a")) } throws: {
            ($0 as? MQTTError)?.code == .storeFailed
        }
        disk.isFull = false
        try await client.connect()
        try await client.enqueue(MQTTOutgoingMessage("4", to: "a"))
        #expect(try await messages.first(4).map(\.text) == ["1", "2", "3", "4"])
        await client.disconnect()
        await receiver.disconnect()
        await bench.stop()
    }

    @Test func `a message cannot be taken back after the store has failed`() async throws {
        let disk = FillingStore()
        let client = ScriptedServer { _ in }.client { $0.sessionStore = disk }
        let message = try await client.enqueue(MQTTOutgoingMessage("1", to: "a"))
        disk.isFull = true
        await expectStoreFailed { try await client.enqueue(MQTTOutgoingMessage("refused", to: "a")) }
        #expect(!message.withdraw(), "the store still has it")
        #expect(disk.base.messageCount == 1)
        await client.disconnect()
    }

    /// What the client finds in the store replaces its session, and with it the messages that were not stored.
    @Test(arguments: [false, true])
    func `a message that is published before a failed store is open again is refused`(inArray: Bool) async throws {
        let disk = FillingStore()
        let server = ScriptedServer { step in
            if case .connectReceived = step.event { step.accept() }
        }
        let client = server.client { $0.sessionStore = disk }
        disk.isFull = true
        await expectStoreFailed { try await client.enqueue(MQTTOutgoingMessage("refused", to: "a")) }
        disk.isFull = false
        let message = MQTTOutgoingMessage("early", to: "a", qos: .atLeastOnce)
        await expectStoreFailed {
            try await withTimeout(.patience, "a message of a client whose store failed") {
                // On the loop's thread, where the attempt gets to the store after this.
                try await withTaskExecutorPreference(client.core.loop) {
                    async let starting: Void = client.start()
                    for await state in client.states { if case .connecting = state { break } }
                    if inArray {
                        try await client.publish([message]).check()
                    } else {
                        try await client.publish(message)
                    }
                    await starting
                }
            }
        }
        #expect(await eventually { client.state.isConnected })
        await client.disconnect()
    }

    @Test func `a message that the full disk refused leaves the queue, and is not reported later`() async throws {
        let clock = try ManualClock()
        let disk = FillingStore()
        let client = ScriptedServer(clock: clock) { _ in }.client { $0.sessionStore = disk }
        let undelivered = Undelivered(client)
        disk.isFull = true
        var message = MQTTOutgoingMessage("refused", to: "a")
        message.timeToLive = .seconds(1)
        await expectStoreFailed { [message] in try await client.enqueue(message) }
        #expect(client.backlog.queuedMessages == 0)
        await clock.advance(by: .seconds(2))
        await client.disconnect()
        #expect(await undelivered.codes == [])
    }

    /// How a client ends while its disk is full.
    enum End: CaseIterable { case failure, disconnect }

    @Test(arguments: End.allCases)
    func `a publish that fails because of a full disk is not sent after it has room again`(end: End) async throws {
        let bench = try await Bench()
        let disk = FillingStore()
        let client = bench.client("full") { $0.sessionStore = disk }
        let receiver = try await bench.connected()
        let messages = try await receiver.subscribe(to: "a", qos: .exactlyOnce)
        try await refuse("failed", of: client, bench, disk, end)
        disk.isFull = false
        try await client.connect()
        try await client.publish("last", to: "a", qos: .exactlyOnce)
        #expect(try await messages.first(1).map(\.text) == ["last"])
        await client.disconnect()
        #expect(disk.base.messageCount == 0)
        await receiver.disconnect()
        await bench.stop()
    }

    /// The store fails on its thread, and the callers are notified on the loop's: an attempt begins in between.
    @Test func `an attempt that begins while the store fails does not send a publish that fails`() async throws {
        let bench = try await Bench()
        let disk = FillingStore()
        let client = bench.client("full") {
            $0.sessionStore = disk
            // The test alone begins attempts.
            $0.reconnect.initialDelay = .seconds(3600)
            $0.reconnect.maximumDelay = .seconds(3600)
        }
        let core = client.core
        let receiver = try await bench.connected()
        let messages = try await receiver.subscribe(to: "a", qos: .exactlyOnce)
        bench.setNetwork(up: false)
        await client.start()
        for await state in client.states { if case .waiting = state { break } }
        let withdrawn = try await client.enqueue(MQTTOutgoingMessage("withdrawn", to: "a"))
        let publishing = Task { try await client.publish("failed", to: "a", qos: .exactlyOnce) }
        #expect(await eventually { disk.base.messageCount == 2 })
        disk.isFull = true
        let reconnecting = await reconnect(client) {
            // After the attempt's first step, and before the callers are notified: an attempt must not open the store again.
            core.loop.execute {
                while let journal = core.persistence?.journal, journal.failure != nil, isConnecting(client) {
                    Thread.sleep(forTimeInterval: 0.001)
                }
            }
            #expect(withdrawn.withdraw())
            while core.persistence?.journal?.failure == nil { Thread.sleep(forTimeInterval: 0.001) }
        }
        await expectStoreFailed { _ = try await publishing.value(within: .patience, "a publish whose store failed") }
        await expectStoreFailed { try await reconnecting.value(within: .patience, "an attempt whose store failed") }
        bench.setNetwork(up: true)
        disk.isFull = false
        try await client.connect()
        try await client.publish("last", to: "a", qos: .exactlyOnce)
        #expect(try await messages.first(1).map(\.text) == ["last"])
        await client.disconnect()
        #expect(disk.base.messageCount == 0)
        await receiver.disconnect()
        await bench.stop()
    }

    /// Lets a client reconnect, and runs `body` on the loop's thread when the attempt has begun, before what the attempt's task
    /// hands to the loop.
    private func reconnect(
        _ client: MQTTClient, _ body: @escaping @Sendable () -> Void
    ) async -> Task<Void, any Error> {
        let ended = PendingCall<Void>()
        // Once in each round of the loop.
        @Sendable func ask() {
            guard isConnecting(client) else { return client.core.loop.execute(ask) }
            body()
            ended.end(())
        }
        // First, because the attempt may have ended before this thread runs again.
        client.core.loop.execute(ask)
        let reconnecting = Task(executorPreference: client.core.loop) { try await client.reconnect() }
        await ended.answer()
        return reconnecting
    }

    /// Publishes a message that waits for a connection and is stored, and that fails with the end of the client.
    private func refuse(
        _ text: String, of client: MQTTClient, _ bench: Bench, _ disk: FillingStore, _ end: End
    ) async throws {
        bench.setNetwork(up: false)
        await client.start()
        let publishing = Task { try await client.publish(text, to: "a", qos: .exactlyOnce) }
        #expect(await eventually { disk.base.messageCount == 1 })
        disk.isFull = true
        if end == .disconnect { await client.disconnect() }
        await expectStoreFailed { try await client.enqueue(MQTTOutgoingMessage("refused", to: "a")) }
        let error = await #expect(throws: MQTTError.self) {
            try await withTimeout(.patience, "a message of a client whose store failed") {
                _ = try await publishing.value
            }
        }
        #expect(error?.code == (end == .failure ? .storeFailed : .disconnected), "\(error as Any)")
        bench.setNetwork(up: true)
    }

    @Test func `a store that another client has used meanwhile loses none of its messages`() async throws {
        let bench = try await Bench()
        let disk = FillingStore()
        let client = bench.client("full") { $0.sessionStore = disk }
        let receiver = try await bench.connected()
        let messages = try await receiver.subscribe(to: "a", qos: .exactlyOnce)
        try await refuse("sent by the other", of: client, bench, disk, .disconnect)
        await client.disconnect()
        disk.isFull = false
        let other = bench.client("full") { $0.sessionStore = disk }
        try await other.connect()
        #expect(try await messages.first(1).map(\.text) == ["sent by the other"])
        #expect(await eventually { disk.base.messageCount == 0 })
        await other.disconnect()
        try await other.enqueue(MQTTOutgoingMessage("of the other", to: "a", qos: .exactlyOnce))
        await other.disconnect()
        try await client.connect()
        try await client.publish("last", to: "a", qos: .exactlyOnce)
        #expect(try await messages.first(2).map(\.text) == ["of the other", "last"])
        await client.disconnect()
        await receiver.disconnect()
        await bench.stop()
    }

    @Test func `the session can be discarded on a full disk, and what comes after it is sent`() async throws {
        let bench = try await Bench()
        let disk = FillingStore()
        let client = bench.client("full") { $0.sessionStore = disk }
        let receiver = try await bench.connected()
        let messages = try await receiver.subscribe(to: "a", qos: .exactlyOnce)
        try await refuse("discarded", of: client, bench, disk, .disconnect)
        await client.disconnect()
        disk.canBeEmptied = true
        try await client.discardSession()
        disk.isFull = false
        try await client.enqueue(MQTTOutgoingMessage("next", to: "a", qos: .exactlyOnce))
        try await client.connect()
        try await client.publish("last", to: "a", qos: .exactlyOnce)
        #expect(try await messages.first(2).map(\.text) == ["next", "last"])
        await client.disconnect()
        await receiver.disconnect()
        await bench.stop()
    }

    @Test func `a message that expires while the disk is full is reported once`() async throws {
        let clock = try ManualClock()
        let disk = FillingStore()
        let server = ScriptedServer(clock: clock) { step in
            if case .connectReceived = step.event { step.accept() }
        }
        let client = server.client { $0.sessionStore = disk }
        let undelivered = Undelivered(client)
        var message = MQTTOutgoingMessage("old", to: "a")
        message.timeToLive = .seconds(30)
        try await client.enqueue(message)
        disk.isFull = true
        await expectStoreFailed { try await client.enqueue(MQTTOutgoingMessage("refused", to: "a")) }
        await clock.advance(by: .seconds(31))
        disk.isFull = false
        try await client.connect()
        try await client.publish("last", to: "a", qos: .atLeastOnce)
        await client.disconnect()
        #expect(await undelivered.codes == [.expired])
        #expect(disk.base.messageCount == 0)
    }

    @Test func `a message that was acknowledged while the disk is full does not come again`() async throws {
        let bench = try await Bench()
        let disk = FillingStore()
        let client = bench.client("full") {
            $0.version = .v5_0
            $0.cleanStart = false
            $0.sessionExpiry = .seconds(60)
            $0.sessionStore = disk
        }
        let sender = try await bench.jobWaits(for: client)
        // Stored after it.
        try await client.publish("x", to: "b", qos: .atLeastOnce)
        disk.isFull = true
        await expectStoreFailed { try await client.enqueue(MQTTOutgoingMessage("refused", to: "b")) }
        #expect(await eventually { if case .disconnected = client.state { true } else { false } })
        let jobs = client.subscription(to: "a", qos: .exactlyOnce, acknowledgement: .manual)
        let job = try await jobs.first(1)
        #expect(job.map(\.text) == ["job"])
        job[0].acknowledge()
        disk.isFull = false
        try await client.connect()
        try await sender.publish("end", to: "a", qos: .exactlyOnce)
        #expect(try await jobs.first(1).map(\.text) == ["end"])
        await client.disconnect()
        await sender.disconnect()
        await bench.stop()
    }

    private func expectStoreFailed(_ body: () async throws -> Void) async {
        let error = await #expect(throws: MQTTError.self) { try await body() }
        #expect(error?.code == .storeFailed, "\(error as Any)")
    }

    @Test func `a store that fails while a connection ends stops the client, whatever ends the connection`()
        async throws
    {
        let (near, far) = MemoryPair.make()
        let disk = FillingStore()
        var configuration = MQTTConfiguration(clientID: "full")
        configuration.version = .v5_0
        configuration.sessionStore = disk
        configuration.reconnect.initialDelay = .milliseconds(10)
        let client = MQTTClient(["mqtt://full"], configuration: configuration, loop: .shared) {
            () throws(TransportError) in OpenedStream(stream: near)
        }
        let server = PacketReader(far, version: .v5_0)
        async let connected: Void = client.connect()
        #expect(await eventually { server.read().contains { $0.type == .connect } })
        server.write([0x20, 3, 0, 0, 0])
        try await connected
        var events = client.events.makeAsyncIterator()
        // What is in the outbox does not leave, so that the connection takes some time to end.
        near.changeFaults { $0.capacity = 0 }
        try await client.publish("stays", to: "a")
        // DISCONNECT: the server shuts down.
        server.write([0xE0, 2, 0x8B, 0])
        while let event = await events.next() { if case .disconnectedByServer = event { break } }
        disk.isFull = true
        let publishing = Task {
            try await withTimeout(.patience, "a message that was not stored") {
                try await client.publish("lost", to: "a", qos: .atLeastOnce)
            }
        }
        let error = await #expect(throws: MQTTError.self) { _ = try await publishing.value }
        #expect(error?.code == .storeFailed, "\(error as Any)")
        guard case .disconnected(let failure?) = client.state, failure.code == .storeFailed else {
            Issue.record("\(client.state)")
            return await client.disconnect()
        }
    }

    @Test func `the parent of a new directory is forced to the disk before anything is accepted`() throws {
        let scratch = try ScratchDirectory()
        let faults = DirectoryFaults()
        faults.areOn = true
        let first = store(scratch, faults)
        #expect(throws: (any Error).self) { _ = try first.open() }
        faults.areOn = false
        _ = try first.open()
        let parent = URL(fileURLWithPath: scratch.file("session")).deletingLastPathComponent().path
        #expect(Set(faults.synced) == [parent, scratch.file("session")])
        first.close()
        _ = try first.open()
        #expect(faults.synced.filter { $0 == parent }.count == 1, "once is enough")
        first.close()
    }

    @Test func `on a full disk nothing accepted is lost, and nothing refused comes back`() async throws {
        let scratch = try ScratchDirectory()
        let arguments = try ChildArguments([scratch.file("session")], for: "full-disk")
        defer { arguments.remove() }
        let result = try #require(
            await #expect(processExitsWith: .success, observing: [\.standardOutputContent]) {
                // The largest file stands for the disk. Otherwise the signal would end the process.
                signal(SIGXFSZ, SIG_IGN)
                var limit = rlimit(rlim_cur: 20_480, rlim_max: 20_480)
                #if canImport(Glibc)
                    setrlimit(__rlimit_resource_t(RLIMIT_FSIZE.rawValue), &limit)
                #else
                    setrlimit(RLIMIT_FSIZE, &limit)
                #endif
                try StoreWriter.writeUntilFull(ChildArguments.received(for: "full-disk")[0])
            })
        let text = String(decoding: result.standardOutputContent, as: UTF8.self)
        let lines = text.split(separator: "\n")
        func numbers(_ mark: String) -> Set<UInt64> {
            Set(lines.filter { $0.hasPrefix(mark) }.compactMap { UInt64($0.dropFirst(mark.count)) })
        }
        let (accepted, refused) = (numbers("a "), numbers("x "))
        #expect(accepted.count > 10 && refused.count > 10, "\(text.suffix(200))")
        let stored = try store(scratch).open()
        #expect(stored.damage == nil)
        let found = stored.records.compactMap { record -> UInt64? in
            if case .message(let message) = record { message.sequence } else { nil }
        }
        #expect(Set(found) == accepted.subtracting(numbers("f ")))
        #expect(found.count == Set(found).count)
    }
}

/// Forces directories to the disk, unless it is told to fail.
private final class DirectoryFaults: Sendable {
    private let state = Mutex((areOn: false, count: 0, synced: [String]()))

    var areOn: Bool {
        get { state.withLock { $0.areOn } }
        set { state.withLock { $0.areOn = newValue } }
    }
    /// How often it failed.
    var count: Int { state.withLock { $0.count } }
    /// The directories that it forced to the disk.
    var synced: [String] { state.withLock { $0.synced } }

    func sync(_ directory: any OpenDirectory) throws {
        let fails = state.withLock { state in
            if state.areOn { state.count += 1 } else { state.synced.append(directory.path) }
            return state.areOn
        }
        if fails { throw FileError(call: "fsync", path: directory.path, errno: EIO) }
        try directory.sync()
    }
}

/// The messages that a client reports as undelivered.
private struct Undelivered {
    private let collecting: Task<[MQTTError.Code], Never>

    init(_ client: MQTTClient) {
        collecting = Task { [events = client.events] in
            var codes: [MQTTError.Code] = []
            for await event in events {
                if case .undelivered(let error) = event { codes.append(error.code) }
            }
            return codes
        }
    }

    /// Their errors up to now.
    var codes: [MQTTError.Code] {
        get async {
            collecting.cancel()
            return await collecting.value
        }
    }
}

/// A store on a disk that a test fills and empties.
private func isConnecting(_ client: MQTTClient) -> Bool {
    if case .connecting = client.state { true } else { false }
}

private final class FillingStore: SessionStore {
    struct DiskFull: Error {}

    let base = MemorySessionStore()
    private let state = Mutex((isFull: false, canBeEmptied: false))
    var isFull: Bool {
        get { state.withLock { $0.isFull } }
        set { state.withLock { $0.isFull = newValue } }
    }
    /// Whether all can be removed although the disk is full.
    var canBeEmptied: Bool {
        get { state.withLock { $0.canBeEmptied } }
        set { state.withLock { $0.canBeEmptied = newValue } }
    }
    var limits: SessionStoreLimits { base.limits }

    func open() throws -> StoredSession { try base.open() }
    func setClientID(_ clientID: String) throws { try write { try base.setClientID(clientID) } }
    func append(_ records: [MQTTStoreRecord]) throws { try write { try base.append(records) } }
    func removeAll() throws {
        if canBeEmptied { try base.removeAll() } else { try write { try base.removeAll() } }
    }
    func close() { base.close() }

    private func write(_ body: () throws -> Void) throws {
        if isFull { throw DiskFull() }
        try body()
    }
}
