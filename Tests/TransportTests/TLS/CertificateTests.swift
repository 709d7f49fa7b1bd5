import Foundation
import TestSupport
import Testing

/// The certificates that tests use. That each is refused for its own reason is what ``TLSRefusalTests`` show.
@Suite struct CertificateTests {
    private let certificates = Certificates()

    @Test func `none expires within a year, except the one that has`() throws {
        let pairs = certificates.servers + [certificates.authority, certificates.otherAuthority, certificates.client]
        let expired = certificates.expired.certificate
        let oneYear: TimeInterval = 366 * 24 * 3600
        for path in pairs.map(\.certificate) where path != expired {
            let end = try CertificateFile(path).notAfter
            #expect(
                end.timeIntervalSinceNow > oneYear,
                "\(path) expires on \(end). Run Tests/TestSupport/Certificates/renew and commit.")
        }
        #expect(try CertificateFile(expired).notAfter < Date())
    }

    /// https://support.apple.com/103769, "Requirements for trusted certificates in iOS 13 and macOS 10.15"
    @Test func `those of servers have what Apple's systems demand`() throws {
        let july2019 = CertificateFile.date(year: 2019, month: 7, day: 1)
        for path in certificates.servers.map(\.certificate) {
            let certificate = try CertificateFile(path)
            let validity = certificate.notAfter.timeIntervalSince(certificate.notBefore)
            #expect(certificate.notBefore < july2019 || validity <= 825 * 24 * 3600, "\(path) is valid for too long")
            #expect(certificate.extendedKeyUsages.contains(CertificateFile.serverAuth), "\(path) lacks serverAuth")
        }
    }
}

/// What a certificate says of its use, read without OpenSSL, which does not exist everywhere (RFC 5280 section 4.1).
private struct CertificateFile {
    struct Unreadable: Error {}

    /// id-kp-serverAuth
    static let serverAuth: [UInt8] = [0x2B, 6, 1, 5, 5, 7, 3, 1]
    private static let extendedKeyUsage: [UInt8] = [0x55, 0x1D, 0x25]
    private enum Tag {
        static let boolean: UInt8 = 0x01, utcTime: UInt8 = 0x17, version: UInt8 = 0xA0, extensions: UInt8 = 0xA3
    }

    let notBefore: Date
    let notAfter: Date
    private(set) var extendedKeyUsages: [[UInt8]] = []

    init(_ path: String) throws {
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
        let base64 = lines.drop { $0 != "-----BEGIN CERTIFICATE-----" }.dropFirst().prefix { !$0.hasPrefix("-") }
        guard let der = Data(base64Encoded: base64.joined()) else { throw Unreadable() }
        let certificate = try Element.all(in: Array(der)[...])
        let signed = try certificate[0].elements[0].elements
        // Version, serial number, algorithm, issuer, validity.
        let validity = try signed.filter { $0.tag != Tag.version }[3].elements
        notBefore = try Self.date(validity[0])
        notAfter = try Self.date(validity[1])
        for list in signed where list.tag == Tag.extensions {
            for one in try list.elements[0].elements {
                let parts = try one.elements.filter { $0.tag != Tag.boolean }
                guard Array(parts[0].content) == Self.extendedKeyUsage else { continue }
                extendedKeyUsages = try Element.all(in: parts[1].content)[0].elements.map { Array($0.content) }
            }
        }
    }

    /// UTCTime has two digits of the year, GeneralizedTime four; both end in Z.
    private static func date(_ element: Element) throws -> Date {
        var digits = String(decoding: element.content, as: UTF8.self)
        if element.tag == Tag.utcTime { digits = (digits < "5" ? "20" : "19") + digits }
        guard digits.count >= 8, let number = Int32(digits.prefix(8)) else { throw Unreadable() }
        return date(year: number / 10_000, month: number / 100 % 100, day: number % 100)
    }

    /// The beginning of a day in UTC.
    static func date(year: Int32, month: Int32, day: Int32) -> Date {
        var parts = tm()
        parts.tm_year = year - 1900
        parts.tm_mon = month - 1
        parts.tm_mday = day
        return Date(timeIntervalSince1970: TimeInterval(timegm(&parts)))
    }

    /// One element of DER.
    private struct Element {
        let tag: UInt8
        let content: ArraySlice<UInt8>

        var elements: [Element] { get throws { try Self.all(in: content) } }

        static func all(in bytes: ArraySlice<UInt8>) throws -> [Element] {
            var (rest, elements) = (bytes, [Element]())
            while let tag = rest.popFirst() {
                guard var count = rest.popFirst().map({ Int($0) }) else { throw Unreadable() }
                if count >= 0x80 {
                    // The length is in as many bytes as the first one says.
                    let length = rest.prefix(count - 0x80)
                    rest = rest.dropFirst(length.count)
                    count = length.reduce(0) { $0 << 8 | Int($1) }
                }
                guard count <= rest.count else { throw Unreadable() }
                elements.append(Element(tag: tag, content: rest.prefix(count)))
                rest = rest.dropFirst(count)
            }
            return elements
        }
    }
}
