import Foundation
import Synchronization

/// A directory of one test's own, removed with its last reference or when the test process exits.
public final class ScratchDirectory: Sendable {
    public let path: String
    private static let live = Mutex<Set<String>>([])

    /// Makes the directory below the system's temporary one; everybody may look into it, so that a broker that runs
    /// as a user of its own reaches what is given to it.
    public init(_ name: String = "scratch") throws {
        let temporary = FileManager.default.temporaryDirectory.path
        // The path of a socket in it may have 103 bytes on some systems.
        let folder = temporary.utf8.count > 60 ? "/tmp" : temporary
        var template = Array((folder + "/swift-messaging-\(name)-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else {
            throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EIO)
        }
        path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        chmod(path, 0o755)
        Self.live.withLock { _ = $0.insert(path) }
        ExitHandler.install()
    }

    deinit {
        Self.live.withLock { _ = $0.remove(path) }
        try? FileManager.default.removeItem(atPath: path)
    }

    /// The absolute path of `name` inside the directory.
    public func file(_ name: String) -> String { path + "/" + name }

    /// Writes a text file and makes the directories on its way.
    @discardableResult
    public func write(_ text: String, to name: String) throws -> String {
        let target = file(name)
        let parent = URL(fileURLWithPath: target).deletingLastPathComponent().path
        try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
        try text.write(toFile: target, atomically: true, encoding: .utf8)
        return target
    }

    /// Writes the certificate and the key to `client.pem` and `client.key`, or replaces them.
    public func install(_ pair: Certificates.Pair) throws {
        for (source, name) in [(pair.certificate, "client.pem"), (pair.key, "client.key")] {
            try write(String(contentsOfFile: source, encoding: .utf8), to: name)
        }
    }

    /// Makes a directory inside.
    @discardableResult
    public func makeDirectory(_ name: String) throws -> String {
        try FileManager.default.createDirectory(atPath: file(name), withIntermediateDirectories: true)
        return file(name)
    }

    /// Gives the directory and all in it to `user`, when we are root and may; otherwise does nothing.
    public func giveTo(user: String?) throws {
        guard let user, geteuid() == 0, let entry = getpwnam(user) else { return }
        let (uid, gid) = (entry.pointee.pw_uid, entry.pointee.pw_gid)
        chown(path, uid, gid)
        for name in FileManager.default.enumerator(atPath: path)?.compactMap({ $0 as? String }) ?? [] {
            chown(file(name), uid, gid)
        }
    }

    static func removeAll() {
        for path in live.withLock({ $0 }) { try? FileManager.default.removeItem(atPath: path) }
    }
}

/// What is left to do when the test process exits in the ordinary way.
enum ExitHandler {
    private static let installed: Void = {
        atexit {
            LiveProcesses.killAll()
            ScratchDirectory.removeAll()
        }
    }()

    static func install() { installed }
}
