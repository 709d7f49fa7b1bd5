/// The broker's URL as it was given, with the user information taken out so that it can be shown.
package struct BrokerAddress: Sendable, Equatable {
    /// Without user information; what is printed and what clients get.
    package let url: String
    package let scheme: String
    package let user: String?
    package let password: String?

    package var isEncrypted: Bool { ["stomps", "mqtts", "wss"].contains(scheme) }

    /// - Throws: `.usage` that says what is wrong, without the credentials in it.
    init(_ text: String, for device: Device) throws(DeviceFailure) {
        guard text.utf8.count <= 4096, text.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw .usage("the URL of --broker holds blanks or control characters, or is longer than 4096 bytes")
        }
        let bytes = Array(text.utf8)
        let colon = bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.count
        let written = String(decoding: bytes[..<colon], as: UTF8.self).lowercased()
        // WebSocket begins as HTTP: an address that was copied from a browser or a cloud's console is taken as meant.
        scheme = written == "http" ? "ws" : written == "https" ? "wss" : written
        guard device.schemes.contains(scheme) else {
            throw Self.wrongScheme(bytes, scheme, for: device)
        }
        let rest = bytes[(colon + 1)...]
        if scheme == "unix" {
            guard rest.contains(where: { $0 != UInt8(ascii: "/") }) else {
                throw .usage("--broker unix: needs the path of a socket, as in unix:/run/broker.sock")
            }
            (url, user, password) = (text, nil, nil)
            return
        }
        guard rest.starts(with: "//".utf8) else {
            throw .usage("the URL of --broker needs two slashes after \(scheme):, as in \(scheme)://localhost")
        }
        let afterSlashes = rest.dropFirst(2)
        let end = afterSlashes.firstIndex { "/?#".utf8.contains($0) } ?? afterSlashes.endIndex
        let authority = afterSlashes[..<end]
        let at = authority.lastIndex(of: UInt8(ascii: "@"))
        let host = authority[(at.map { $0 + 1 } ?? authority.startIndex)...]
        try Self.check(host)
        url = "\(scheme)://" + String(decoding: host, as: UTF8.self) + String(decoding: bytes[end...], as: UTF8.self)
        guard let at else {
            (user, password) = (nil, nil)
            return
        }
        let parts = authority[..<at].split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
        user = try Self.decode(parts[0])
        password = parts.count > 1 ? try Self.decode(parts[1]) : nil
    }

    private static func wrongScheme(_ bytes: [UInt8], _ scheme: String, for device: Device) -> DeviceFailure {
        let schemes = device.schemes.map { $0 == "unix" ? "unix:" : "\($0)://" }.joined(separator: ", ")
        // In user:password@host without a scheme, the text before the first colon is a secret.
        let isScheme = String(decoding: bytes, as: UTF8.self).utf8.starts(with: (scheme + "://").utf8)
        let example = device.schemes.first.map { ", as in \($0)://localhost" } ?? ""
        let owner = Device.allCases.first { $0.schemes.contains(scheme) }.map { ", which \($0.programName) does" } ?? ""
        let what =
            isScheme ? "does not speak '\(scheme.printable)://'\(owner)" : "needs a URL with a scheme\(example)"
        return .usage("--broker \(what); use one of \(schemes)")
    }

    private static func check(_ host: ArraySlice<UInt8>) throws(DeviceFailure) {
        var port: ArraySlice<UInt8>?
        if host.first == UInt8(ascii: "[") {
            guard let close = host.firstIndex(of: UInt8(ascii: "]")), close > host.startIndex + 1 else {
                throw .usage("the IPv6 address in the URL of --broker lacks its closing bracket")
            }
            let after = host[(close + 1)...]
            guard after.isEmpty || after.first == UInt8(ascii: ":") else {
                throw .usage("the URL of --broker has more than a port after the IPv6 address")
            }
            port = after.isEmpty ? nil : after.dropFirst()
        } else {
            let colon = host.firstIndex(of: UInt8(ascii: ":"))
            guard colon ?? host.endIndex > host.startIndex else {
                throw .usage("the URL of --broker names no host")
            }
            port = colon.map { host[($0 + 1)...] }
        }
        guard let port else { return }
        guard port.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int(String(decoding: port, as: UTF8.self)),
            (1...65535).contains(number)
        else {
            throw .usage("the port in the URL of --broker is not a number from 1 to 65535 (IPv6 goes in brackets)")
        }
    }

    private static func decode(_ bytes: ArraySlice<UInt8>) throws(DeviceFailure) -> String {
        var result: [UInt8] = []
        var rest = bytes
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                result.append(byte)
                continue
            }
            let digits = rest.prefix(2).compactMap { Character(Unicode.Scalar($0)).hexDigitValue }
            guard digits.count == 2 else {
                throw .usage("the user information in the URL of --broker has a % without two hexadecimal digits")
            }
            result.append(UInt8(digits[0] * 16 + digits[1]))
            rest.removeFirst(2)
        }
        guard let text = String(validating: result, as: UTF8.self), !text.utf8.contains(0) else {
            throw .usage("the user information in the URL of --broker is not UTF-8 text")
        }
        return text
    }
}
