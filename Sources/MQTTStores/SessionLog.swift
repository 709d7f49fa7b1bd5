import MQTTCore

/// The format of a session's log: a header, then frames. On the store's thread.
///
/// A frame is a length, the CRC-32C of the length, the CRC-32C of the rest (four bytes each, big-endian), and that number
/// of bytes: a record, sealed if the store has a transform. The length has a checksum of its own: a correct length that
/// exceeds the file means an incomplete write, a wrong one means damage.
enum SessionLog {
    /// "MQTTLOG" and the version of the format.
    static let header = Array("MQTTLOG\u{1}".utf8)
    /// The first byte of the record with the client identifier; records of the session begin with other bytes.
    private static let clientTag: UInt8 = 0x80

    struct Contents {
        var clientID: String?
        var records: [MQTTStoreRecord] = []
        /// The number of bytes that are valid.
        var validSize = 0
        var damage: StoredSession.Damage?
        /// The last record is incomplete, as after the end of a process: no caller relied on it.
        var isTorn = false
    }

    static func append(
        _ record: MQTTStoreRecord, to bytes: inout [UInt8], seal: (([UInt8]) throws -> [UInt8])?
    ) throws {
        try append(to: &bytes) { bytes in
            guard let seal else { return try record.encode(into: &bytes) }
            var payload: [UInt8] = []
            try record.encode(into: &payload)
            bytes += try seal(payload)
        }
    }

    static func frame(clientID: String, seal: (([UInt8]) throws -> [UInt8])?) throws -> [UInt8] {
        let payload = [clientTag] + Array(clientID.utf8)
        var bytes: [UInt8] = []
        try append(to: &bytes) { $0 += try seal?(payload) ?? payload }
        return bytes
    }

    /// Appends a frame, whose head is filled in after its bytes.
    private static func append(to bytes: inout [UInt8], _ body: (inout [UInt8]) throws -> Void) throws {
        let start = bytes.count
        bytes.append(contentsOf: repeatElement(0, count: headCount))
        try body(&bytes)
        let frame = start + headCount
        set(UInt32(bytes.count - frame), in: &bytes, at: start)
        set(CRC32C.checksum(bytes[start..<(start + 4)]), in: &bytes, at: start + 4)
        set(CRC32C.checksum(bytes[frame...]), in: &bytes, at: start + 8)
    }

    /// Reads up to the first invalid byte.
    ///
    /// - Throws: ``SessionStoreError`` for a complete record that cannot be opened or decoded: it needs another key, or
    ///   another version of the library; and for a file that begins like no log of this format.
    static func read(_ bytes: [UInt8], open: (([UInt8]) throws -> [UInt8])?) throws -> Contents {
        var contents = Contents()
        guard bytes.starts(with: header) else {
            try checkForeign(bytes.prefix(header.count))
            if !bytes.isEmpty {
                contents.isTorn = header.starts(with: bytes)
                contents.damage = StoredSession.Damage(
                    offset: 0, bytesLost: bytes.count, reason: "the file does not begin like a session's log")
            }
            return contents
        }
        var offset = header.count
        contents.validSize = offset
        while offset < bytes.count {
            var reason: String?
            let start = offset + headCount
            var end = start
            if start > bytes.count {
                contents.isTorn = true
            } else if CRC32C.checksum(bytes[offset..<(offset + 4)]) != integer(bytes, at: offset + 4) {
                reason = "the checksum of the length is wrong"
            } else {
                end = start + Int(integer(bytes, at: offset))
                if end > bytes.count {
                    contents.isTorn = true
                } else if CRC32C.checksum(bytes[start..<end]) != integer(bytes, at: offset + 8) {
                    reason = "the checksum is wrong"
                } else {
                    try take(Array(bytes[start..<end]), open, into: &contents)
                }
            }
            if contents.isTorn { reason = "the last record is incomplete" }
            if let reason {
                contents.damage = StoredSession.Damage(
                    offset: offset, bytesLost: bytes.count - offset, reason: reason)
                return contents
            }
            offset = end
            contents.validSize = offset
        }
        return contents
    }

    /// Throws if a file is not a session's log of this format: it is not ours to empty. A loss of power may leave an incomplete
    /// header, or zeros.
    private static func checkForeign(_ start: ArraySlice<UInt8>) throws {
        guard start.count == header.count, start.contains(where: { $0 != 0 }) else { return }
        if let format = start.last, start.dropLast() == header.dropLast() {
            throw SessionStoreError(
                "The session store has format \(format), and this version of the library reads format \(header[header.count - 1]). Open it with the version that wrote it, or choose another directory. To give the session up, remove the directory."
            )
        }
        throw SessionStoreError(
            "The file session.log in the session store's directory is not a session's log. Choose another directory, or remove the file if nothing needs it."
        )
    }

    private static let headCount = 12
    /// The size of the frame of a message without its topic and payload: the record's own fields, and a fixed header of two
    /// bytes, the length of the topic, an identifier and the length of no properties in PUBLISH.
    static let leastMessageSize = headCount + 11 + 7

    /// Adds the contents of a frame.
    private static func take(
        _ payload: [UInt8], _ open: (([UInt8]) throws -> [UInt8])?, into contents: inout Contents
    ) throws {
        let plain: [UInt8]
        do {
            plain = try open?(payload) ?? payload
        } catch {
            // The bytes are as they were written, so nothing is lost: the application can try another key.
            throw SessionStoreError(
                "The session store cannot be opened with this transform: \(error). Use the transform that it was written with."
            )
        }
        if plain.first == clientTag, let name = String(validating: plain.dropFirst(), as: UTF8.self) {
            contents.clientID = name
            return
        }
        guard let record = MQTTStoreRecord(decoding: plain) else {
            // The bytes are as they were written, so nothing is lost here either.
            throw SessionStoreError(
                open == nil
                    ? "The session store holds a record that is complete but cannot be read. It was written with a transform, or by a newer version of this library: open it with that. To give the session up, remove the directory."
                    : "The session store holds a record that is complete but cannot be read through this transform. Open it with the transform or the version of this library that it was written with. To give the session up, remove the directory."
            )
        }
        contents.records.append(record)
    }

    private static func set(_ value: UInt32, in bytes: inout [UInt8], at offset: Int) {
        for index in 0..<4 { bytes[offset + index] = UInt8(truncatingIfNeeded: value >> UInt32(24 - 8 * index)) }
    }

    private static func integer(_ bytes: [UInt8], at offset: Int) -> UInt32 {
        bytes[offset..<(offset + 4)].reduce(0) { $0 << 8 | UInt32($1) }
    }
}
