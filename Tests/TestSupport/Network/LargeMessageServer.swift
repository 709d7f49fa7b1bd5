import Foundation

/// A server of one connection that sends a large message without holding it in memory, and the memory of the process that
/// receives it.
public enum LargeMessageServer {
    /// What the server writes in answer to a read.
    public typealias Answer = @Sendable (_ request: [UInt8]) -> [UInt8]

    /// Starts to listen on a loopback port, which it returns. Each read of the connection is answered by the next of
    /// `answers`; then come `count` zeros and what `end` makes of the last read, and the connection stays open until the
    /// peer closes it.
    public static func start(answers: [Answer], count: Int, end: @escaping Answer) throws -> Int {
        let port = FreePort.next()
        let address = SocketAddress.loopback(UInt16(port))
        let listener = address.makeSocket()
        guard address.withPointer({ bind(listener, $0, $1) }) == 0, listen(listener, 1) == 0 else {
            throw SystemCallError("listening on \(port)")
        }
        // A thread of its own, because it blocks.
        Thread.detachNewThread {
            let connection = accept(listener, nil, nil)
            close(listener)
            var request: [UInt8] = []
            for answer in answers {
                request = receive(connection)
                send(answer(request), over: connection)
            }
            let part = [UInt8](repeating: 0, count: 256 << 10)
            for _ in 0..<(count / part.count) { send(part, over: connection) }
            send(end(request), over: connection)
            while !receive(connection).isEmpty {}
            close(connection)
        }
        return port
    }

    private static func receive(_ connection: Int32) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 4096)
        let count = recv(connection, &bytes, bytes.count, 0)
        return Array(bytes[..<max(0, count)])
    }

    private static func send(_ bytes: [UInt8], over connection: Int32) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { write(connection, $0.baseAddress, $0.count) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    /// By how many bytes the process had more in memory during `body` than before it, at its peak. Meaningful only in a
    /// process that does nothing else; Linux only.
    public static func peak(during body: () async throws -> Void) async rethrows -> Int {
        try? "5".write(toFile: "/proc/self/clear_refs", atomically: false, encoding: .utf8)
        let before = status("VmRSS:")
        try await body()
        return status("VmHWM:") - before
    }

    private static func status(_ name: String) -> Int {
        let lines = (try? String(contentsOfFile: "/proc/self/status", encoding: .utf8))?.split(separator: "\n") ?? []
        let words = lines.first { $0.hasPrefix(name) }?.split(whereSeparator: \.isWhitespace) ?? []
        return words.count > 1 ? (Int(words[1]) ?? 0) * 1024 : 0
    }
}
