public import MQTTCore
import MessagingWire
import Synchronization
package import Transport

/// A session store in a directory: a log to which records are appended, each with a checksum, and which is rewritten when
/// most of it is no longer needed.
///
/// The log of a process that was killed is read up to the last complete record; no caller relied on an incomplete one.
/// Damage on the disk is detected: everything before it is recovered, the damaged file is copied to `session.damaged` if the
/// disk has room for it, and ``MQTTEvent/storeDamaged(_:)`` reports it. ``removeAll()`` deletes the copy too. A log that was
/// written by a newer version of the library, with a transform that is missing, or by another program, stays as it is, and
/// ``open()`` throws. Only one process at a time can use the directory: a file in it is locked from ``open()`` to
/// ``close()``, which `disconnect()` calls.
///
/// On Apple's systems the directory belongs in the app's own container, such as Application Support, and not in the shared
/// container of an App Group: iOS ends an app that is suspended while it holds a lock on a file there (`0xdead10cc`).
public final class FileSessionStore: SessionStore {
    /// When written records are forced to the disk. This matters for a loss of power only: the records of a killed process
    /// are in the system's hands and are not lost.
    public struct SyncPolicy: Sendable, Equatable {
        enum Kind: Equatable { case always, never }
        let kind: Kind

        /// Before any caller is answered; one wait serves all records that arrived during the last one.
        public static let always = SyncPolicy(kind: .always)
        /// When the system does it: fast, and safe against everything but a loss of power.
        public static let never = SyncPolicy(kind: .never)
    }

    /// Encrypts records on their way to the disk and decrypts them on the way back. Both closures are called on the
    /// store's thread.
    public struct Transform: Sendable {
        /// Encrypts one record.
        public var seal: @Sendable ([UInt8]) throws -> [UInt8]
        /// Decrypts what `seal` returned.
        public var open: @Sendable ([UInt8]) throws -> [UInt8]

        /// Makes a transform of two functions, each the inverse of the other.
        public init(
            seal: @escaping @Sendable ([UInt8]) throws -> [UInt8], open: @escaping @Sendable ([UInt8]) throws -> [UInt8]
        ) {
            self.seal = seal
            self.open = open
        }
    }

    /// The bounds of a store, how safely it writes, and how it encrypts.
    public struct Options: Sendable {
        /// The bounds of what waits to be sent. Default: 10,000 messages and 16 MiB.
        public var limits = SessionStoreLimits()
        /// When records are forced to the disk. Default: always.
        public var sync = SyncPolicy.always
        /// The encryption of the records. Default: none.
        public var transform: Transform?
        /// The log is rewritten when it is larger than this, in bytes, and more than twice as large as what is still needed.
        /// Default: 1,048,576 bytes (1 MiB).
        public var compactionSize = 1 << 20

        /// Makes the default options.
        public init() {}
    }

    private struct State: ~Copyable {
        var lock: AnyObject?
        /// Where its files are, from the first time that the store is opened until it is closed.
        var directory: (any OpenDirectory)?
        /// Whether the log has a name that may not survive a loss of power.
        var nameIsUnsafe = false
        var file: (any AppendedFile)?
        var size = 0
        /// The size of the log after it was last rewritten; 0 if that was not since it was opened.
        var compactSize = 0
        var clientID: String?
        var image = MQTTSessionImage()
        /// Empty: memory that was used for the bytes of the last records and is reused for the next ones.
        var spare: [UInt8] = []
    }

    /// The directory. A relative one starts from the working directory at the moment when the store is made, and this is its
    /// path from the root on. It is created when the store is opened, together with its parents.
    public let directory: String
    private let options: Options
    private let state = Lock(State())
    private let sync: @Sendable (any OpenDirectory) throws -> Void

    /// Makes a store; the directory is not touched before ``open()``.
    public convenience init(directory: String, options: Options = Options()) {
        self.init(directory: directory, options: options) { try $0.sync() }
    }

    /// - Parameter sync: makes the names in a directory survive a loss of power; a test may let it fail.
    package init(
        directory: String, options: Options = Options(),
        syncingDirectories sync: @escaping @Sendable (any OpenDirectory) throws -> Void
    ) {
        self.directory = FileSystem.absolute(directory)
        self.options = options
        self.sync = sync
    }

    public var limits: SessionStoreLimits { options.limits }

    private static let (log, rewrittenLog, damagedLog) = ("session.log", "session.new", "session.damaged")

    // MARK: SessionStore

    public func open() throws -> StoredSession {
        try state.withLock { state in
            let disk = FileSystem.current
            try makeDirectory(directory, on: disk)
            let folder = try disk.openDirectory(directory)
            guard state.lock == nil, let lock = try folder.lock("lock") else {
                throw SessionStoreError(
                    "Another client or process uses the session store in \(directory). Disconnect that client, or give each a directory of its own."
                )
            }
            // A rewritten log that is incomplete never replaced the log.
            try folder.remove(Self.rewrittenLog)
            let bytes = try folder.contents(of: Self.log) ?? []
            let log = try SessionLog.read(bytes, open: options.transform?.open)
            state.image = MQTTSessionImage()
            for record in log.records { state.image.apply(record) }
            state.clientID = log.clientID
            var damage = log.isTorn ? nil : log.damage
            if damage != nil {
                do {
                    try folder.openFile(Self.damagedLog, truncatedTo: 0).append(bytes)
                } catch {
                    // The copy is for an examination of the damage only. A full disk must not keep the client from what
                    // precedes the damage, and has no room for a part of the copy.
                    try? folder.remove(Self.damagedLog)
                    damage?.reason += "; the damaged file was not copied to session.damaged (\(error))"
                }
            }
            state.directory = folder
            state.file = try folder.openFile(Self.log, truncatedTo: log.validSize)
            state.size = log.validSize
            // This run has not rewritten the log: all that earlier runs left in it counts as no longer needed.
            state.compactSize = 0
            // The process that made it may have ended before its name was safe.
            state.nameIsUnsafe = true
            if state.size == 0 { try write(SessionLog.header, &state) }
            state.lock = lock
            return StoredSession(clientID: log.clientID, records: state.image.records, damage: damage)
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
            // Only after the write has succeeded: the log is rewritten from the image, and must not contain records whose
            // writing was reported as failed.
            for record in records { state.image.apply(record) }
            if bytes.capacity <= Self.spareLimit {
                bytes.removeAll(keepingCapacity: true)
                swap(&bytes, &state.spare)
            }
            // The least that is still needed: a log that only grows is not rewritten in vain.
            let needed = state.image.byteCount + state.image.messageCount * SessionLog.leastMessageSize
            if state.size > options.compactionSize, state.size > max(state.compactSize, needed) * 2 {
                do {
                    try compact(&state)
                    try secureName(&state)
                } catch {
                    // The records are stored all the same. A full disk may have room when the log has doubled.
                    state.compactSize = state.size
                }
            }
        }
    }

    public func removeAll() throws {
        try state.withLock { state in
            // First: on a full disk it takes the space that the new log needs.
            try folder(state).remove(Self.damagedLog)
            let (image, clientID) = (state.image, state.clientID)
            (state.image, state.clientID) = (MQTTSessionImage(), nil)
            do {
                try compact(&state)
            } catch {
                (state.image, state.clientID) = (image, clientID)
                throw error
            }
            // Only after the store agrees with the new log, which is in place.
            try secureName(&state)
        }
    }

    public func close() {
        state.withLock { state in
            state.file = nil
            state.directory = nil
            state.lock = nil
        }
    }

    // MARK: Writing

    /// The most bytes of memory that an idle store keeps for reuse.
    private static let spareLimit = 1 << 16

    private var isNotOpen: SessionStoreError {
        SessionStoreError("The session store in \(directory) is not open. Let a client open it.")
    }

    private func folder(_ state: borrowing State) throws -> any OpenDirectory {
        guard let directory = state.directory else { throw isNotOpen }
        return directory
    }

    private func write(_ bytes: [UInt8], _ state: inout State) throws {
        guard let file = state.file else { throw isNotOpen }
        do {
            try secureName(&state)
            try file.append(bytes)
            if options.sync == .always { try file.sync() }
        } catch {
            // An incomplete record would hide the records after it.
            try? file.truncate(to: state.size)
            throw error
        }
        state.size += bytes.count
    }

    /// Makes the name of a new log survive a loss of power, before anything is accepted that depends on it.
    private func secureName(_ state: inout State) throws {
        guard state.nameIsUnsafe, let directory = state.directory else { return }
        if options.sync == .always { try sync(directory) }
        state.nameIsUnsafe = false
    }

    /// Makes a directory and those that it is in unless they exist, so that they survive a loss of power.
    private func makeDirectory(_ path: String, on disk: any Disk) throws {
        let parent = Directory.parent(of: path)
        let isNew: Bool
        do throws(FileError) {
            isNew = try disk.makeDirectory(path)
        } catch {
            guard error.isMissing, parent != path else { throw error }
            try makeDirectory(parent, on: disk)
            isNew = try disk.makeDirectory(path)
        }
        guard isNew, options.sync == .always else { return }
        do {
            try sync(disk.openDirectory(parent))
        } catch {
            // Remove it, so that the next attempt creates it again instead of relying on a name that may not survive.
            disk.removeDirectory(path)
            throw error
        }
    }

    /// Writes what is still needed into a new file, which replaces the log completely or not at all.
    private func compact(_ state: inout State) throws {
        let folder = try folder(state)
        try folder.remove(Self.rewrittenLog)
        let file = try folder.openFile(Self.rewrittenLog, truncatedTo: 0)
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
            try folder.rename(Self.rewrittenLog, to: Self.log)
        } catch {
            // On a full disk it takes the space that the log needs.
            try? folder.remove(Self.rewrittenLog)
            throw error
        }
        // From here on the old log has no name: what is written to it would be lost.
        state.nameIsUnsafe = true
        state.file = file
        state.size = bytes.count
        state.compactSize = max(bytes.count, options.compactionSize / 2)
    }
}
