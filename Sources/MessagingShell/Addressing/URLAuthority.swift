import Transport

/// The part of a URL between its slashes and its path: `[user[:password]@]host[:port]`.
struct URLAuthority {
    /// What is wrong with it, as the end of a sentence.
    struct Flaw: Error {
        let reason: String
    }

    let credentials: Credentials?
    /// A name, or an address without brackets.
    let host: String
    let port: UInt16?

    init(_ text: ArraySlice<UInt8>) throws(Flaw) {
        var rest = text
        if let at = text.lastIndex(of: UInt8(ascii: "@")) {
            let info = text[..<at]
            rest = text[(at + 1)...]
            let split = info.firstIndex(of: UInt8(ascii: ":"))
            let password = split.map { info[($0 + 1)...] }
            guard let user = PercentEncoding.decoded(info[..<(split ?? info.endIndex)]),
                password == nil || password.flatMap(PercentEncoding.decoded) != nil
            else {
                throw Flaw(reason: "its user name or password is not percent-encoded UTF-8")
            }
            credentials = Credentials(userName: user, password: password.flatMap(PercentEncoding.decoded))
        } else {
            credentials = nil
        }
        var name = rest
        var number: ArraySlice<UInt8>?
        if rest.first == UInt8(ascii: "[") {
            guard let close = rest.firstIndex(of: UInt8(ascii: "]")) else {
                throw Flaw(reason: "an IPv6 address must end with ']'")
            }
            name = rest[(rest.startIndex + 1)..<close]
            let after = rest[(close + 1)...]
            if !after.isEmpty {
                guard after.first == UInt8(ascii: ":") else { throw Flaw(reason: "only a port may follow ']'") }
                number = after.dropFirst()
            }
        } else if let colon = rest.lastIndex(of: UInt8(ascii: ":")) {
            name = rest[..<colon]
            number = rest[(colon + 1)...]
            guard !name.contains(UInt8(ascii: ":")) else {
                throw Flaw(reason: "an IPv6 address must stand in brackets: [::1]")
            }
        }
        if rest.first == UInt8(ascii: "["), let zone = Self.unescapedZone(name) {
            throw Flaw(reason: "the % before the interface of its address must be written as %25: [\(zone)]")
        }
        guard !name.isEmpty else { throw Flaw(reason: "it names no host") }
        guard let host = PercentEncoding.decoded(name) else {
            throw Flaw(reason: "its host '\(Self.string(name))' is not percent-encoded UTF-8")
        }
        guard host.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw Flaw(reason: "its host '\(host)' contains a blank or a control character")
        }
        self.host = host
        guard let number, !number.isEmpty else {
            port = nil
            return
        }
        guard let port = UInt16(Self.string(number)), port > 0 else {
            throw Flaw(reason: "'\(Self.string(number))' is not a port from 1 to 65535")
        }
        self.port = port
    }

    /// An IPv6 address with an interface, as it must be written (RFC 6874), if it was not.
    private static func unescapedZone(_ name: ArraySlice<UInt8>) -> String? {
        guard let percent = name.firstIndex(of: UInt8(ascii: "%")) else { return nil }
        let zone = name[(percent + 1)...]
        if zone.starts(with: "25".utf8), zone.count > 2 { return nil }
        return string(name[..<percent]) + "%25" + string(zone)
    }

    static func string(_ bytes: ArraySlice<UInt8>) -> String {
        // The bytes are cut out of a valid string at ASCII characters, so that nothing is repaired here.
        String(decoding: bytes, as: UTF8.self)
    }
}
