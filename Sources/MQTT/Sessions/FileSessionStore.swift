public import MQTTCore
import Synchronization
import Transport
import Wire

/// A session store in a directory: a log that is only ever written at its end, each record with a checksum, and made
/// small again when most of it is history.
///
/// What a process killed at any moment leaves behind is read back up to the last whole record: a torn end is what was
/// never promised. Bytes that changed on the disk are noticed; what stands before them is recovered, the file as it was
/// is kept beside as `session.damaged`, and ``MQTTEvent/storeDamaged(_:)`` tells of it. One process at a time has the
/// directory.
public final class FileSessionStore: SessionStore {
    /// When what was written is forced to the disk. Whatever the choice, a killed process loses nothing: the system has
    /// the bytes. It is about a loss of power.
    public struct SyncPolicy: Sendable, Equatable {
        enum Kind: Equatable { case always, never }
        let kind: Kind

        /// Before anything is promised; one wait serves everything that came in during the last.
        public static let always = SyncPolicy(kind: .always)
        /// When the system likes: fast, and safe against everything but a loss of power.
        public static let never = SyncPolicy(kind: .never)
    }

    /// Changes records on their way to the disk and back, to encrypt them. Both closures are called on the store's
    /// thread.
    public struct Transform: Sendable {
        public var seal: @Sendable ([UInt8]) throws -> [UInt8]
        public var open: @Sendable ([UInt8]) throws -> [UInt8]

        public init(
            seal: @escaping @Sendable ([UInt8]) throws -> [UInt8], open: @escaping @Sendable ([UInt8]) throws -> [UInt8]
        ) {
            self.seal = seal
            self.open = open
        }
    }

    public struct Options: Sendable {
        public var limits = SessionStoreLimits()
        public var sync = SyncPolicy.always
        public var transform: Transform?
        /// The log is rewritten when it is larger than this and more than twice as large as what is still needed.
        public var compactionSize = 1 << 20

        public init() {}
    }

    private struct State: ~Copyable {
        var lock: FileLock?
        var file: AppendFile?
        var size = 0
        /// The size that the log had when it was last written anew.
        var compactSize = 0
        var clientID: String?
        var image = MQTTSessionImage()
        /// Empty; the memory of the last records' bytes, for the next ones.
        var spare: [UInt8] = []
    }

    /// The directory, made when the store is opened unless it is there.
    public let directory: String
    private let options: Options
    private let state = Lock(State())

    public init(directory: String, options: Options = Options()) {
        self.directory = directory
        self.options = options
    }

    public var limits: SessionStoreLimits { options.limits }

    private var logPath: String { directory + "/session.log" }
    private var newPath: String { directory + "/session.new" }

    // MARK: SessionStore

    public func open() throws -> StoredSession {
        try state.withLock { state in
            try FileSystem.makeDirectory(directory)
            guard state.lock == nil, let lock = try FileLock(directory + "/lock") else {
                throw SessionStoreError(
                    "another client or process uses the session store in \(directory): give each its own directory")
            }
            // A half-written successor of the log is nothing that anybody relied on.
            try FileSystem.remove(newPath)
            let bytes = try FileSystem.contents(of: logPath) ?? []
            let log = try SessionLog.read(bytes, open: options.transform?.open)
            state.image = MQTTSessionImage()
            for record in log.records { state.image.apply(record) }
            state.clientID = log.clientID
            if let damage = log.damage, damage.bytesLost > 0, !log.isTorn {
                // Kept for whoever wants to look at it.
                let copy = try AppendFile(directory + "/session.damaged", truncatedTo: 0)
                try copy.append(bytes)
            }
            state.file = try AppendFile(logPath, truncatedTo: log.validSize)
            state.size = log.validSize
            state.compactSize = log.validSize
            if state.size == 0 {
                try write(SessionLog.header, &state)
                try FileSystem.syncDirectory(directory)
            }
            state.lock = lock
            return StoredSession(
                clientID: log.clientID, records: state.image.records, damage: log.isTorn ? nil : log.damage)
        }
    }

    public func setClientID(_ clientID: String) throws {
        try state.withLock { state in
            guard state.clientID.map({ !$0.hasSameBytes(as: clientID) }) ?? true else { return }
            try write(SessionLog.frame(clientID: clientID, seal: options.transform?.seal), &state)
            state.clientID = clientID
        }
    }

    public func append(_ records: [MQTTStoreRecord]) throws {
        try state.withLock { state in
            var bytes: [UInt8] = []
            swap(&bytes, &state.spare)
            for record in records { try SessionLog.append(record, to: &bytes, seal: options.transform?.seal) }
            try write(bytes, &state)
            // Only what is in the log: the next log is written from the image, and the caller was told of a failure.
            for record in records { state.image.apply(record) }
            if bytes.capacity <= Self.spareLimit {
                bytes.removeAll(keepingCapacity: true)
                swap(&bytes, &state.spare)
            }
            // What is still needed is at least this much: a log that only grows is not written anew for nothing.
            let needed = state.image.byteCount + state.image.messageCount * SessionLog.leastMessageSize
            if state.size > options.compactionSize, state.size > max(state.compactSize, needed) * 2 {
                do {
                    try compact(&state)
                } catch {
                    // The records are stored all the same. A full disk may have room when the log has doubled.
                    state.compactSize = state.size
                }
            }
        }
    }

    public func removeAll() throws {
        try state.withLock { state in
            let (image, clientID) = (state.image, state.clientID)
            (state.image, state.clientID) = (MQTTSessionImage(), nil)
            do {
                try compact(&state)
            } catch {
                (state.image, state.clientID) = (image, clientID)
                throw error
            }
        }
    }

    public func close() {
        state.withLock { state in
            state.file = nil
            state.lock = nil
        }
    }

    // MARK: Writing

    /// What a store that has nothing to do holds on to at most.
    private static let spareLimit = 1 << 16

    private func write(_ bytes: [UInt8], _ state: inout State) throws {
        guard let file = state.file else { throw SessionStoreError("the session store in \(directory) is not open") }
        do {
            try file.append(bytes)
            if options.sync == .always { try file.sync() }
        } catch {
            // Half a record in the middle would hide what is written after it.
            try? file.truncate(to: state.size)
            throw error
        }
        state.size += bytes.count
    }

    /// Writes what is still needed into a new file, which takes the place of the log at once or not at all.
    private func compact(_ state: inout State) throws {
        try FileSystem.remove(newPath)
        let file = try AppendFile(newPath, truncatedTo: 0)
        var bytes = SessionLog.header
        if let clientID = state.clientID {
            bytes += try SessionLog.frame(clientID: clientID, seal: options.transform?.seal)
        }
        for record in state.image.records {
            try SessionLog.append(record, to: &bytes, seal: options.transform?.seal)
        }
        do {
            try file.append(bytes)
            // The new name must not reach the disk before the bytes do.
            try file.sync()
            try FileSystem.rename(newPath, to: logPath)
        } catch {
            // On a full disk its part takes the room that the log needs.
            try? FileSystem.remove(newPath)
            throw error
        }
        if options.sync == .always { try FileSystem.syncDirectory(directory) }
        state.file = file
        state.size = bytes.count
        state.compactSize = max(bytes.count, options.compactionSize / 2)
    }
}
