/// A file that could not be used: the call, the path, and the system's number.
package struct FileError: Error, CustomStringConvertible {
    package let call: String
    package let path: String
    package let errno: Int32

    package init(call: String, path: String, errno: Int32) {
        (self.call, self.path, self.errno) = (call, path, errno)
    }

    /// Whether nothing has this path, or a directory in it is missing.
    package var isMissing: Bool { errno == ENOENT }

    package var description: String { unsafe "\(call) \(path): \(String(cString: strerror(errno)))" }
}

/// The disk of this machine.
package struct FileSystem: Disk {
    package init() {}

    /// The disk that files of the calling thread are on: in a simulation, the simulation's.
    package static var current: any Disk { WorldThreads.current?.files ?? FileSystem() }

    package func makeDirectory(_ path: String) throws(FileError) -> Bool {
        if unsafe mkdir(path, 0o700) == 0 { return true }
        if errno != EEXIST { throw FileError(call: "mkdir", path: path, errno: errno) }
        return false
    }

    package func removeDirectory(_ path: String) {
        _ = unsafe rmdir(path)
    }

    package func openDirectory(_ path: String) throws(FileError) -> any OpenDirectory { try Directory(path) }
}

/// An open directory of the system.
package final class Directory: OpenDirectory {
    package let path: String
    private let descriptor: Int32

    package init(_ path: String) throws(FileError) {
        self.path = path
        // The method of this name opens a file in it.
        descriptor = FileSystem.uninterrupted { unsafe openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) }
        guard descriptor >= 0 else { throw FileError(call: "open", path: path, errno: errno) }
    }

    deinit {
        if descriptor >= 0 { close(descriptor) }
    }

    /// A file in this directory, whatever the working directory of the process has become.
    private func open(_ name: String, _ flags: Int32) throws(FileError) -> Int32 {
        let file = FileSystem.uninterrupted { unsafe openat(descriptor, name, flags | O_CLOEXEC, 0o600) }
        guard file >= 0 else { throw FileError(call: "open", path: path(of: name), errno: errno) }
        return file
    }

    private func path(of name: String) -> String { path + "/" + name }

    package func contents(of name: String) throws(FileError) -> [UInt8]? {
        let file: Int32
        do throws(FileError) {
            file = try open(name, O_RDONLY)
        } catch {
            guard error.isMissing else { throw error }
            return nil
        }
        defer { close(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = unsafe read(file, &chunk, chunk.count)
            if count > 0 {
                bytes.append(contentsOf: chunk[..<count])
            } else if count == 0 {
                return bytes
            } else if errno != EINTR {
                throw FileError(call: "read", path: path(of: name), errno: errno)
            }
        }
    }

    package func rename(_ from: String, to name: String) throws(FileError) {
        if unsafe renameat(descriptor, from, descriptor, name) != 0 {
            throw FileError(call: "rename", path: path(of: from), errno: errno)
        }
    }

    package func remove(_ name: String) throws(FileError) {
        if unsafe unlinkat(descriptor, name, 0) != 0 && errno != ENOENT {
            throw FileError(call: "unlink", path: path(of: name), errno: errno)
        }
    }

    package func openFile(_ name: String, truncatedTo size: Int) throws(FileError) -> any AppendedFile {
        let file = AppendFile(path(of: name), try open(name, O_WRONLY | O_CREAT | O_APPEND))
        try file.truncate(to: size)
        return file
    }

    package func lock(_ name: String) throws(FileError) -> AnyObject? {
        try FileLock(path(of: name), open(name, O_RDWR | O_CREAT))
    }

    /// The path of the directory that has this path's last name.
    package static func parent(of path: String) -> String {
        var path = path[...]
        while path.utf8.count > 1, path.utf8.last == UInt8(ascii: "/") { path.removeLast() }
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    package func sync() throws(FileError) { try sync(by: { fsync($0) }) }

    func sync(by system: (Int32) -> Int32) throws(FileError) {
        do throws(FileError) {
            try FileSystem.sync(descriptor, path, system)
        } catch {
            // The answer of file systems that cannot force a directory to the disk.
            guard error.errno == EINVAL else { throw error }
        }
    }
}

extension FileSystem {
    /// The names in a folder that do not begin with a dot; none if it cannot be read.
    static func names(in folder: String) -> [String] {
        guard let directory = unsafe opendir(folder) else { return [] }
        defer { _ = unsafe closedir(directory) }
        var names: [String] = []
        while let entry = unsafe readdir(directory) {
            // Safe: a text with its end in an entry that lives until the next call. The entry may be shorter than its type, which is
            // why the name is not copied out of it as a whole.
            let start = unsafe UnsafeRawPointer(entry) + (MemoryLayout<dirent>.offset(of: \.d_name) ?? 0)
            let name = unsafe String(cString: start.assumingMemoryBound(to: CChar.self))
            if !name.hasPrefix(".") { names.append(name) }
        }
        return names
    }

    /// The path from the root on, which stays the same when the process changes its working directory. An empty path stays empty.
    package static func absolute(_ path: String) -> String {
        guard let first = path.utf8.first, first != UInt8(ascii: "/"), let folder = unsafe getcwd(nil, 0) else {
            return path
        }
        // Safe: a text with its end, which belongs to this call. A name that is not UTF-8 has no place in a String.
        defer { unsafe free(folder) }
        return unsafe String(validatingCString: folder).map { "\($0)/\(path)" } ?? path
    }

    /// Calls the system again as long as a signal interrupts the call.
    static func uninterrupted(_ call: () -> Int32) -> Int32 {
        while true {
            let result = call()
            if result >= 0 || errno != EINTR { return result }
        }
    }

    /// Makes what was written to an open file or directory survive a loss of power.
    ///
    /// - Parameter system: the system's call for that, where it reaches the drive.
    fileprivate static func sync(
        _ descriptor: Int32, _ path: String, _ system: (Int32) -> Int32
    ) throws(FileError) {
        #if canImport(Darwin)
            // fsync alone leaves it in the drive's cache there.
            let isFlushed = uninterrupted { fcntl(descriptor, F_FULLFSYNC) } == 0
            let code = isFlushed ? 0 : uninterrupted { system(descriptor) }
        #else
            let code = uninterrupted { system(descriptor) }
        #endif
        if code != 0 { throw FileError(call: "fsync", path: path, errno: errno) }
    }
}

/// A file of the system that is written at its end.
final class AppendFile: AppendedFile {
    private let path: String
    private let descriptor: Int32

    /// - Parameter descriptor: the open file, which belongs to this value from now on.
    init(_ path: String, _ descriptor: Int32) { (self.path, self.descriptor) = (path, descriptor) }

    deinit { close(descriptor) }

    func append(_ bytes: [UInt8]) throws(FileError) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = unsafe rest.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
            if count > 0 {
                rest = rest.dropFirst(count)
            } else if count < 0 && errno != EINTR {
                throw FileError(call: "write", path: path, errno: errno)
            }
        }
    }

    func truncate(to size: Int) throws(FileError) {
        let code = FileSystem.uninterrupted { ftruncate(descriptor, off_t(size)) }
        if code != 0 { throw FileError(call: "ftruncate", path: path, errno: errno) }
    }

    func sync() throws(FileError) {
        #if canImport(Darwin)
            try FileSystem.sync(descriptor, path) { fsync($0) }
        #else
            try FileSystem.sync(descriptor, path) { fdatasync($0) }
        #endif
    }
}

/// A lock on a file for one process and one owner in it, for as long as this value lives. The system releases it when
/// the process ends, however it ends.
final class FileLock {
    private let descriptor: Int32

    /// Returns nil if another owner has it.
    ///
    /// - Parameter descriptor: the open file, which belongs to this value from now on.
    init?(_ path: String, _ descriptor: Int32) throws(FileError) {
        self.descriptor = descriptor
        if FileSystem.uninterrupted({ flock(descriptor, LOCK_EX | LOCK_NB) }) != 0 {
            if errno == EWOULDBLOCK { return nil }
            throw FileError(call: "flock", path: path, errno: errno)
        }
    }

    deinit {
        // Closing alone is not enough: a child that is just being started has a copy until it becomes its program.
        flock(descriptor, LOCK_UN)
        close(descriptor)
    }
}
