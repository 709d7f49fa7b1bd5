/// The socket that listening on a path made, told apart from one that somebody else puts there later.
struct SocketFile: Equatable {
    private let path: String
    private let device: dev_t
    private let number: ino_t

    /// Nil when no socket stands there.
    init?(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else { return nil }
        self.path = path
        device = status.st_dev
        number = status.st_ino
    }

    /// Removes it, unless it is not there any more.
    func remove() {
        if SocketFile(path) == self { unlink(path) }
    }

    /// Removes what a process left behind that was killed: a socket that refuses connections, because nobody listens.
    static func removeStale(_ path: String, _ address: SocketAddress) {
        guard let file = SocketFile(path) else { return }
        let descriptor = System.makeStreamSocket(family: address.family)
        guard descriptor >= 0 else { return }
        defer { _ = closeDescriptor(descriptor) }
        // Does not wait, so a listener whose queue is full answers too, with EAGAIN.
        let isRefused = address.withPointer { connect(descriptor, $0, $1) } != 0 && errno == ECONNREFUSED
        if isRefused { file.remove() }
    }
}
