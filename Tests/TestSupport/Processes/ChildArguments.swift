import Foundation

/// What an exit test passes to the body that runs in its child: until Swift 6.3 such a body captures nothing.
public struct ChildArguments {
    private let path: String

    /// In the parent: sets the arguments for a child, until ``remove()``.
    ///
    /// - Parameter name: tells exit tests apart that run at the same time.
    public init(_ arguments: [String], for name: String) throws {
        path = Self.path(name, parent: getpid())
        try Data(arguments.joined(separator: "\n").utf8).write(to: URL(fileURLWithPath: path))
    }

    public func remove() { try? FileManager.default.removeItem(atPath: path) }

    /// In the child: the arguments that its parent has set.
    public static func received(for name: String) throws -> [String] {
        let bytes = try Data(contentsOf: URL(fileURLWithPath: path(name, parent: getppid())))
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n", omittingEmptySubsequences: false).map(
            String.init)
    }

    private static func path(_ name: String, parent: pid_t) -> String {
        FileManager.default.temporaryDirectory.appendingPathComponent("\(name)-\(parent)").path
    }
}
