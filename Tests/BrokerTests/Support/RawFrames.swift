import TestSupport

extension RawConnection {
    /// The next STOMP frame as text, without the line ends before it; for bodies without a NUL.
    func receiveFrame(timeout: Duration = .patience) async throws -> String {
        let bytes = try await receive(through: 0, timeout: timeout)
        return String(decoding: bytes.drop { $0 == UInt8(ascii: "\n") }, as: UTF8.self)
    }
}
