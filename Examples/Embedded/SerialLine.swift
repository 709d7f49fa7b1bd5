import Board

/// The board's serial line with a bridge to the network at its other end.
///
/// Bytes travel in pieces: a count of 1 to 255, then as many bytes. A count of 0 asks the bridge for a new connection, or
/// reports that the connection has ended.
struct SerialLine {
    /// How many bytes of the current piece are still to come.
    private var missing = 0

    /// What came along the line.
    enum Input {
        case bytes([UInt8])
        case ended
    }

    /// Asks for a connection. What comes from now on belongs to it.
    func call() {
        board_write(0)
    }

    /// Writes bytes to the connection.
    func write(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let piece = rest.prefix(255)
            board_write(UInt8(piece.count))
            for byte in piece { board_write(byte) }
            rest = rest.dropFirst(piece.count)
        }
    }

    /// Waits until something comes; nil at the deadline.
    mutating func read(until deadline: Int64) -> Input? {
        var bytes: [UInt8] = []
        while bytes.count < 256 {
            let byte = board_read()
            if byte < 0 {
                if !bytes.isEmpty { break }
                if board_time() >= deadline { return nil }
                board_rest()
            } else if missing > 0 {
                bytes.append(UInt8(byte))
                missing -= 1
            } else if byte == 0 {
                return .ended
            } else {
                missing = Int(byte)
            }
        }
        return .bytes(bytes)
    }
}
