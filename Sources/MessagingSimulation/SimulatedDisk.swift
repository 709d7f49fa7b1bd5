import Synchronization
package import Transport

/// The disk of a simulation: it may be full or broken, and it loses what was not synced when the power fails.
package final class SimulatedDisk: Disk {
    /// What is wrong with a disk.
    package enum Fault: Sendable {
        /// Nothing more can be written.
        case full
        /// Every access fails.
        case broken

        var errno: Int32 { self == .full ? ENOSPC : EIO }
    }

    private struct File {
        var bytes: [UInt8] = []
        /// What survives a loss of power.
        var synced: [UInt8] = []
    }

    private struct State {
        var random: SplitMix
        var files: [Int: File] = [:]
        var names: [String: Int] = [:]
        var syncedNames: [String: Int] = [:]
        var directories = roots
        var syncedDirectories = roots
        var lastFile = 0
        /// The owner of a lock.
        var owners: [String: ObjectIdentifier] = [:]
        var fault: Fault?
        /// How many processes have used a directory and ended.
        var ends: [String: Int] = [:]
    }

    private let state: Lock<State>

    /// What nobody has to make: the working directory among them, from which a store with a relative path starts.
    private static var roots: Set<String> { ["", "/", ".", Directory.parent(of: FileSystem.absolute("store"))] }

    init(random: SplitMix) { state = Lock(State(random: random)) }

    package func setFault(_ fault: Fault?) { state.withLock { $0.fault = fault } }

    /// Bytes of the files in a directory.
    package func size(of directory: String) -> Int {
        state.withLock { state in
            state.names.reduce(0) { sum, name in
                Directory.parent(of: name.key) == directory ? sum + (state.files[name.value]?.bytes.count ?? 0) : sum
            }
        }
    }

    /// The process ends that uses a directory: what it has open there writes nothing any more, and its locks are free.
    ///
    /// - Parameter losingPower: whether what was not synced is lost, but for a part.
    package func endProcess(using directory: String, losingPower: Bool) {
        state.withLock { state in
            state.ends[directory, default: 0] += 1
            state.owners = state.owners.filter { Directory.parent(of: $0.key) != directory }
            guard losingPower else { return }
            let names = Set(state.names.keys).union(state.syncedNames.keys)
                .filter { Directory.parent(of: $0) == directory }
            for name in names.sorted() where state.names[name] != state.syncedNames[name] {
                if state.random.below(2) == 0 { state.names[name] = state.syncedNames[name] }
            }
            if !state.syncedDirectories.contains(directory) {
                for name in names { state.names[name] = nil }
                state.directories.remove(directory)
            }
            for name in names.sorted() {
                guard let number = state.names[name], let file = state.files[number] else { continue }
                var left = file.synced
                if file.bytes.starts(with: left) {
                    // The added bytes have arrived up to some byte.
                    let added = file.bytes.count - left.count
                    if added > 0 { left += file.bytes[left.count...].prefix(state.random.below(added + 1)) }
                } else if state.random.below(2) == 0 {
                    left = file.bytes
                }
                state.files[number] = File(bytes: left, synced: left)
                state.syncedNames[name] = number
            }
        }
    }

    // MARK: Disk

    /// Counts the processes that have used a directory: what an earlier one has open there is void.
    private func life(of directory: String) -> Int { state.withLock { $0.ends[directory, default: 0] } }

    private static func failure(_ call: String, _ path: String, _ code: Int32) -> FileError {
        FileError(call: call, path: path, errno: code)
    }

    package func makeDirectory(_ path: String) throws(FileError) -> Bool {
        let (made, code) = state.withLock { state -> (Bool, Int32) in
            if let fault = state.fault { return (false, state.directories.contains(path) ? 0 : fault.errno) }
            return (state.directories.insert(path).inserted, 0)
        }
        if code != 0 { throw Self.failure("mkdir", path, code) }
        return made
    }

    package func removeDirectory(_ path: String) {
        state.withLock { state in
            let isUsed = state.names.keys.contains { Directory.parent(of: $0) == path }
            if !isUsed { state.directories.remove(path) }
        }
    }

    package func openDirectory(_ path: String) throws(FileError) -> any OpenDirectory {
        guard state.withLock({ $0.directories.contains(path) && $0.fault != .broken }) else {
            throw Self.failure("open", path, EIO)
        }
        return SimulatedDirectory(path, self, life: life(of: path))
    }

    fileprivate func contents(of path: String) throws(FileError) -> [UInt8]? {
        let (bytes, isBroken) = state.withLock { state in
            (state.names[path].flatMap { state.files[$0]?.bytes }, state.fault == .broken)
        }
        if isBroken { throw Self.failure("read", path, EIO) }
        return bytes
    }

    fileprivate func rename(_ from: String, to path: String) throws(FileError) {
        let code = state.withLock { state -> Int32 in
            if state.fault == .broken { return EIO }
            guard let number = state.names.removeValue(forKey: from) else { return ENOENT }
            state.names[path] = number
            return 0
        }
        if code != 0 { throw Self.failure("rename", from, code) }
    }

    fileprivate func remove(_ path: String) throws(FileError) {
        let isBroken = state.withLock { state in
            if state.fault != .broken { state.names[path] = nil }
            return state.fault == .broken
        }
        if isBroken { throw Self.failure("unlink", path, EIO) }
    }

    fileprivate func openFile(_ path: String, truncatedTo size: Int) throws(FileError) -> any AppendedFile {
        let (number, code) = state.withLock { state -> (Int, Int32) in
            guard state.directories.contains(Directory.parent(of: path)) else { return (0, ENOENT) }
            if let fault = state.fault, fault == .broken || state.names[path] == nil { return (0, fault.errno) }
            if let number = state.names[path] { return (number, 0) }
            state.lastFile += 1
            state.files[state.lastFile] = File()
            state.names[path] = state.lastFile
            return (state.lastFile, 0)
        }
        if code != 0 { throw Self.failure("open", path, code) }
        let file = SimulatedFile(path, number: number, self, life: life(of: Directory.parent(of: path)))
        try file.truncate(to: size)
        return file
    }

    fileprivate func lock(_ path: String) throws(FileError) -> AnyObject? {
        let lock = SimulatedLock(path, self)
        let isFree = state.withLock { state in
            guard state.owners[path] == nil else { return false }
            state.owners[path] = ObjectIdentifier(lock)
            return true
        }
        return isFree ? lock : nil
    }

    // MARK: What is open

    fileprivate func unlock(_ path: String, _ owner: ObjectIdentifier) {
        state.withLock { if $0.owners[path] == owner { $0.owners[path] = nil } }
    }

    fileprivate func syncNames(in path: String, life: Int) throws(FileError) {
        let code = state.withLock { state -> Int32 in
            if state.ends[path, default: 0] != life || state.fault == .broken { return EIO }
            state.syncedNames = state.syncedNames.filter { Directory.parent(of: $0.key) != path }
            for (name, number) in state.names where Directory.parent(of: name) == path {
                state.syncedNames[name] = number
            }
            for directory in state.directories where Directory.parent(of: directory) == path {
                state.syncedDirectories.insert(directory)
            }
            return 0
        }
        if code != 0 { throw Self.failure("fsync", path, code) }
    }

    /// Changes a file, unless its process has ended or the disk is broken.
    fileprivate func change(
        _ call: String, _ file: SimulatedFile, _ body: (inout [UInt8], inout [UInt8], Fault?, inout SplitMix) -> Int32
    ) throws(FileError) {
        let code = state.withLock { state -> Int32 in
            guard state.ends[Directory.parent(of: file.path), default: 0] == file.life, state.fault != .broken else {
                return EIO
            }
            var (bytes, synced) = (state.files[file.number]?.bytes ?? [], state.files[file.number]?.synced ?? [])
            defer { state.files[file.number] = File(bytes: bytes, synced: synced) }
            return body(&bytes, &synced, state.fault, &state.random)
        }
        if code != 0 { throw Self.failure(call, file.path, code) }
    }
}

private final class SimulatedDirectory: OpenDirectory {
    let path: String
    private let disk: SimulatedDisk
    private let life: Int

    init(_ path: String, _ disk: SimulatedDisk, life: Int) {
        (self.path, self.disk, self.life) = (path, disk, life)
    }

    func sync() throws(FileError) { try disk.syncNames(in: path, life: life) }

    private func path(of name: String) -> String { path + "/" + name }

    func contents(of name: String) throws(FileError) -> [UInt8]? { try disk.contents(of: path(of: name)) }
    func rename(_ from: String, to name: String) throws(FileError) {
        try disk.rename(path(of: from), to: path(of: name))
    }
    func remove(_ name: String) throws(FileError) { try disk.remove(path(of: name)) }
    func openFile(_ name: String, truncatedTo size: Int) throws(FileError) -> any AppendedFile {
        try disk.openFile(path(of: name), truncatedTo: size)
    }
    func lock(_ name: String) throws(FileError) -> AnyObject? { try disk.lock(path(of: name)) }
}

private final class SimulatedFile: AppendedFile {
    let path: String
    let number: Int
    let life: Int
    private let disk: SimulatedDisk

    init(_ path: String, number: Int, _ disk: SimulatedDisk, life: Int) {
        (self.path, self.number, self.disk, self.life) = (path, number, disk, life)
    }

    func append(_ added: [UInt8]) throws(FileError) {
        try disk.change("write", self) { bytes, _, fault, random in
            guard fault == .full, !added.isEmpty else {
                bytes += added
                return 0
            }
            bytes += added.prefix(random.below(added.count))
            return ENOSPC
        }
    }

    func truncate(to size: Int) throws(FileError) {
        try disk.change("ftruncate", self) { bytes, _, _, _ in
            if size < bytes.count { bytes.removeLast(bytes.count - size) }
            return 0
        }
    }

    func sync() throws(FileError) {
        try disk.change("fsync", self) { bytes, synced, _, _ in
            synced = bytes
            return 0
        }
    }
}

private final class SimulatedLock {
    private let path: String
    private let disk: SimulatedDisk

    init(_ path: String, _ disk: SimulatedDisk) { (self.path, self.disk) = (path, disk) }

    deinit { disk.unlock(path, ObjectIdentifier(self)) }
}
