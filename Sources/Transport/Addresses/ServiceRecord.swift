import MessagingWire

/// A server of a service of a domain, as DNS names it (SRV, RFC 2782).
package struct ServiceRecord: Sendable, Hashable {
    package var priority: UInt16
    package var weight: UInt16
    package var port: UInt16
    package var target: String

    package init(priority: UInt16, weight: UInt16, port: UInt16, target: String) {
        self.priority = priority
        self.weight = weight
        self.port = port
        self.target = target
    }

    /// Asks DNS, on a thread of its own, since that blocks. A cancelled task does not wait for the answer.
    ///
    /// - Parameters:
    ///   - name: such as `_mqtt._tcp.example.com`.
    ///   - ask: asks the name servers; the system's way unless a test has another.
    /// - Returns: the records in the order of the answer; at least one.
    package static func lookUp(
        _ name: String, ask: @escaping @Sendable (String) -> [UInt8]? = { ask($0) }
    ) async throws(TransportError) -> [ServiceRecord] {
        guard !name.utf8.contains(0) else {
            // The C library would see the part before it.
            throw TransportError(.unknownHost, "The domain contains a NUL character. Remove it.")
        }
        let call = PendingCall<Result<[ServiceRecord], TransportError>>()
        do {
            try startThread(named: "messaging-names") { call.end(records(of: name, ask(name))) }
        } catch {
            call.end(.failure(error))
        }
        return try await call.answer(
            ifCancelled: .failure(TransportError(.cancelled, "The look-up of '\(name)' was cancelled."))
        ).get()
    }

    /// Asks the name servers of this machine, and blocks for as long as they may take.
    ///
    /// - Returns: the message of DNS that came last, possibly cut off, or zeros if none came; nil if this system cannot ask.
    package static func ask(_ name: String) -> [UInt8]? {
        guard let query = unsafe ResolverLibrary.query else { return nil }
        var answer = [UInt8](repeating: 0, count: 65_536)
        // Class IN, type SRV. The library writes at most as many bytes as the array has.
        let count = unsafe query(name, 1, Int32(type), &answer, Int32(answer.count))
        // It reports an answer without records as a failure, whose head shows what it was.
        return Array(answer.prefix(count < 0 ? headSize : Int(count)))
    }

    private static let headSize = 12

    private static func records(of name: String, _ answer: [UInt8]?) -> Result<[ServiceRecord], TransportError> {
        guard let answer else {
            return .failure(TransportError(.unknownHost, "This system has no res_query. Name the servers by URLs."))
        }
        let records = parse(answer[...])
        return records.isEmpty
            ? .failure(TransportError(.unknownHost, reason(answer.prefix(headSize), name))) : .success(records)
    }

    /// Why a message without servers has none, by its head (RFC 1035 4.1.1).
    private static func reason(_ head: ArraySlice<UInt8>, _ name: String) -> String {
        guard head.count == headSize, head[2] & 0x80 != 0 else {
            return "DNS did not answer for '\(name)'. Check the name servers of this machine."
        }
        switch head[3] & 0x0F {
        case 0, 3:
            return "DNS has no server under '\(name)'. Check the domain and its SRV records."
        case let code:
            let meaning = [2: "SERVFAIL", 5: "REFUSED"][code] ?? "error \(code)"
            return
                "DNS could not answer for '\(name)': \(meaning). Check the domain and the name servers of this machine."
        }
    }

    /// In the order in which to try them: by priority, and among equals at random in proportion to their weights.
    package static func ordered(
        _ records: [ServiceRecord], using random: inout some RandomNumberGenerator
    ) -> [ServiceRecord] {
        var ordered: [ServiceRecord] = []
        for (_, group) in Dictionary(grouping: records, by: \.priority).sorted(by: { $0.key < $1.key }) {
            var left = group
            while !left.isEmpty {
                // A record without a weight has a small chance.
                var place = Int.random(in: 0..<left.reduce(0) { $0 + Int($1.weight) + 1 }, using: &random)
                let chosen = left.firstIndex { record in
                    place -= Int(record.weight) + 1
                    return place < 0
                }
                ordered.append(left.remove(at: chosen ?? 0))
            }
        }
        return ordered
    }

    // MARK: Parsing

    private static let type: UInt16 = 33

    /// The records of a message of DNS (RFC 1035 4); those that make no sense are left out.
    package static func parse(_ message: ArraySlice<UInt8>) -> [ServiceRecord] {
        var reader = MessageReader(bytes: Array(message))
        guard reader.skip(4), let questions = reader.number(), let answers = reader.number(), reader.skip(4) else {
            return []
        }
        for _ in 0..<questions { guard reader.name() != nil, reader.skip(4) else { return [] } }
        var records: [ServiceRecord] = []
        for _ in 0..<answers {
            guard reader.name() != nil, let type = reader.number(), let family = reader.number(), reader.skip(4),
                let count = reader.number()
            else { return records }
            let end = reader.place + Int(count)
            if type == Self.type, family == 1, let priority = reader.number(), let weight = reader.number(),
                let port = reader.number(), port != 0, let target = reader.name(), !target.isEmpty,
                reader.place == end
            {
                records.append(ServiceRecord(priority: priority, weight: weight, port: port, target: target))
            }
            reader.place = end
        }
        return records
    }

    private struct MessageReader {
        let bytes: [UInt8]
        var place = 0

        mutating func skip(_ count: Int) -> Bool {
            place += count
            return place <= bytes.count
        }

        mutating func number() -> UInt16? {
            guard place + 2 <= bytes.count else { return nil }
            defer { place += 2 }
            return UInt16(bytes[place]) << 8 | UInt16(bytes[place + 1])
        }

        /// A name (RFC 1035 3.1, 4.1.4). A pointer has to lead back, so that a name ends.
        mutating func name() -> String? {
            var labels: [String] = []
            var (at, end, size, bound) = (place, Int?.none, 0, place)
            while at < bytes.count {
                let count = Int(bytes[at])
                if count >= 0xC0 {
                    guard at + 1 < bytes.count else { return nil }
                    end = end ?? at + 2
                    at = (count & 0x3F) << 8 | Int(bytes[at + 1])
                    guard at < bound else { return nil }
                    bound = at
                    continue
                }
                size += count + 1
                guard count < 0x40, at + 1 + count <= bytes.count, size <= 255 else { return nil }
                if count == 0 {
                    place = end ?? at + 1
                    return labels.joined(separator: ".")
                }
                // Names of hosts alone: what else a label may hold would mean something in a URL.
                let label = bytes[(at + 1)...(at + count)]
                guard label.allSatisfy(Self.isOfHosts) else { return nil }
                labels.append(String(decoding: label, as: UTF8.self))
                at += 1 + count
            }
            return nil
        }

        private static func isOfHosts(_ byte: UInt8) -> Bool {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
    }
}

/// The system's resolver, found when it is first used: it is in the C library or beside it.
private enum ResolverLibrary {
    typealias Query =
        @convention(c) (UnsafePointer<CChar>, Int32, Int32, UnsafeMutablePointer<UInt8>, Int32) -> Int32

    /// Its signature is that of the manual page, res_query(3).
    static let query: Query? = {
        for library in [nil, "libresolv.so.2", "/usr/lib/libresolv.9.dylib"] {
            guard let handle = unsafe dlopen(library, RTLD_LAZY) else { continue }
            for name in ["res_query", "__res_query", "res_9_query"] {
                // Safe: a function of this name has this signature, and the library is never closed.
                if let symbol = unsafe dlsym(handle, name) { return unsafe unsafeBitCast(symbol, to: Query.self) }
            }
        }
        return nil
    }()
}
