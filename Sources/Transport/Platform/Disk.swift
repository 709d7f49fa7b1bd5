/// Where files are: the disk of this machine, or that of a simulation. The calls may block.
package protocol Disk: Sendable {
    /// Makes a directory unless it exists; its parent has to exist. Returns whether it was made.
    func makeDirectory(_ path: String) throws(FileError) -> Bool
    /// Removes an empty directory, if it can be removed.
    func removeDirectory(_ path: String)
    func openDirectory(_ path: String) throws(FileError) -> any OpenDirectory
}

/// An open directory, in which files have names and no paths: it stays the same when the process changes its working
/// directory. It is opened before its names change, so that a limit on open files cannot keep the change from being forced to
/// the disk.
package protocol OpenDirectory: AnyObject {
    /// The path by which it was opened, for errors.
    var path: String { get }
    /// The whole content, or nil if the file does not exist.
    func contents(of name: String) throws(FileError) -> [UInt8]?
    func rename(_ from: String, to name: String) throws(FileError)
    func remove(_ name: String) throws(FileError)
    /// Opens or makes a file that is written at its end; what follows after so many bytes is cut off first.
    func openFile(_ name: String, truncatedTo size: Int) throws(FileError) -> any AppendedFile
    /// Locks a file for this process and this owner in it, for as long as the returned object lives; nil if another owner
    /// has the lock.
    func lock(_ name: String) throws(FileError) -> AnyObject?
    /// Makes the names in the directory survive a loss of power.
    func sync() throws(FileError)
}

/// A file that is written at its end.
package protocol AppendedFile: AnyObject {
    func append(_ bytes: [UInt8]) throws(FileError)
    /// Cuts off what follows after so many bytes.
    func truncate(to size: Int) throws(FileError)
    /// Returns when what was written survives a loss of power, as far as the device keeps its word.
    func sync() throws(FileError)
}
