import MessagingHTTPCore
import MessagingWire

/// Certificates or a key, in a file or in memory: PEM, or certificates and PKCS #12 containers as they are (DER).
public struct PEMSource: Sendable, Hashable {
    enum Kind: Hashable {
        // Two paths of canonically equivalent characters may be two files.
        case file(ByteKey)
        case text(ByteKey)
        case bytes([UInt8])
    }
    let kind: Kind

    /// The path of a file, read for each connection. A relative one starts from the working directory at the moment of this call.
    public static func file(_ path: String) -> PEMSource {
        PEMSource(kind: .file(ByteKey(FileSystem.absolute(path))))
    }
    /// The text itself, from `-----BEGIN` on.
    public static func text(_ text: String) -> PEMSource { PEMSource(kind: .text(ByteKey(text))) }
    /// What a file would hold.
    public static func bytes(_ bytes: [UInt8]) -> PEMSource { PEMSource(kind: .bytes(bytes)) }
}

extension PEMSource: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The file's name; never the content, which may be a private key.
    public var description: String {
        switch kind {
        case .file(let path): "'\(path)'"
        case .text: "the PEM text"
        case .bytes(let bytes): "the \(bytes.count) bytes given"
        }
    }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: []) }
}

extension TransportError {
    /// A file that the TLS options name cannot be used; `code` is the system's reason. A shortage is no mistake in the options,
    /// and a later attempt may succeed.
    ///
    /// - Parameter advice: what to do unless it is a shortage.
    static func ofTLSFile(_ failure: String, _ code: Int32, advice: String = "") -> TransportError {
        System.isShortage(code)
            ? shortage(failure, code)
            : TransportError(.tlsConfiguration, "\(failure): \(System.describe(code)).\(advice)", errno: code)
    }
}

extension PEMSource {
    var isFile: Bool { if case .file = kind { true } else { false } }

    private static let maximumSize = 8 << 20

    /// The content.
    ///
    /// - Parameter purpose: what it is for, as in "private key".
    /// - Throws: `tlsConfiguration`; `systemLimit` when the process may open no other file.
    func read(_ purpose: String) throws(TransportError) -> [UInt8] {
        let bytes: [UInt8]
        switch kind {
        case .text(let text): bytes = Array(text.text.utf8)
        case .bytes(let given): bytes = given
        case .file(let path): bytes = try contents(of: path.text, purpose)
        }
        guard bytes.count <= Self.maximumSize else { throw tooLarge }
        return bytes
    }

    private func contents(of path: String, _ purpose: String) throws(TransportError) -> [UInt8] {
        guard !path.utf8.contains(0), let file = unsafe fopen(path, "rbe") else {
            throw unreadable(purpose, errno)
        }
        defer { unsafe fclose(file) }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 64 * 1024)
        while true {
            let count = unsafe fread(&chunk, 1, chunk.count, file)
            guard count > 0 else { break }
            bytes.append(contentsOf: chunk[..<count])
            guard bytes.count <= Self.maximumSize else { throw tooLarge }
        }
        guard unsafe ferror(file) == 0 else { throw unreadable(purpose, errno) }
        return bytes
    }

    func unreadable(_ purpose: String, _ number: Int32) -> TransportError {
        TransportError.ofTLSFile("Cannot read \(self) (\(purpose))", number)
    }

    private var tooLarge: TransportError {
        TransportError(.tlsConfiguration, "\(self) is larger than \(Self.maximumSize) bytes. Is it the right file?")
    }

    private static let begin = "-----BEGIN "

    /// The lines of a text in PEM without the byte order marks and blanks before them, behind which OpenSSL and
    /// ``PEMBlock`` find no block.
    ///
    /// - Throws: `tlsConfiguration` for a block without its last line: OpenSSL and ``PEMBlock`` would leave it out, or the next.
    func lines(of bytes: [UInt8], _ purpose: String) throws(TransportError) -> [UInt8] {
        let end = bytes.contains(UInt8(ascii: "\n")) ? UInt8(ascii: "\n") : UInt8(ascii: "\r")
        let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
        var text: [UInt8] = []
        text.reserveCapacity(bytes.count + 1)
        var open: ArraySlice<UInt8>?
        for line in bytes.split(separator: end, omittingEmptySubsequences: false) {
            let line = line.drop { $0 <= UInt8(ascii: " ") || mark.contains($0) }
            let begins = line.starts(with: Self.begin.utf8)
            if begins, let open { throw unfinished(open, in: bytes, end, purpose) }
            if begins || line.starts(with: "-----END ".utf8) { open = begins ? line : nil }
            text += line
            text.append(UInt8(ascii: "\n"))
        }
        if let open { throw unfinished(open, in: bytes, end, purpose) }
        return text
    }

    private func unfinished(_ begin: ArraySlice<UInt8>, in bytes: [UInt8], _ end: UInt8, _ purpose: String)
        -> TransportError
    {
        let label = String(
            decoding: begin.dropFirst(Self.begin.utf8.count).prefix { $0 != UInt8(ascii: "-") }, as: UTF8.self)
        let line = 1 + bytes[..<begin.startIndex].count { $0 == end }
        return TransportError(
            .tlsConfiguration,
            "\(self) (\(purpose)): '-----BEGIN \(label)-----' in line \(line) has no '-----END \(label)-----' in a line of its own. Was the file cut off?"
        )
    }

    /// All certificates, each in DER.
    ///
    /// - Throws: `tlsConfiguration` without a certificate, or if the text between the lines of PEM is not Base64.
    func certificates(_ purpose: String) throws(TransportError) -> [[UInt8]] {
        let bytes = try read(purpose)
        // A file that is not text is one certificate: a SEQUENCE.
        if bytes.first == 0x30 { return [bytes] }
        guard let blocks = PEMBlock.all(in: try lines(of: bytes, purpose), label: { $0 == "CERTIFICATE" }) else {
            throw damagedCertificate(purpose)
        }
        let certificates = blocks.map(\.bytes)
        guard !certificates.isEmpty else { throw noCertificate(purpose) }
        return certificates
    }

    func noCertificate(_ purpose: String) -> TransportError {
        TransportError(
            .tlsConfiguration,
            "\(self) (\(purpose)) contains no certificate. It has to be PEM, beginning with '-----BEGIN CERTIFICATE-----', or DER."
        )
    }

    /// - Parameter reason: of the library that tried.
    func damagedCertificate(_ purpose: String, _ reason: String? = nil) -> TransportError {
        TransportError(
            .tlsConfiguration, "\(self) (\(purpose)) holds a damaged certificate\(reason.map { ": \($0)" } ?? "").")
    }

    /// Why the private key in it cannot be used.
    ///
    /// - Parameter reason: of the library that tried.
    func unusableKey(passphrase: String?, _ reason: String) -> TransportError {
        let words: String
        let text = String(decoding: (try? read("private key")) ?? [], as: UTF8.self)
        if !text.contains("PRIVATE KEY-----") {
            words = "contains no private key. It has to be PEM, beginning with '-----BEGIN PRIVATE KEY-----'"
        } else if passphrase == nil, text.contains("ENCRYPTED") {
            words = "is encrypted. Set the identity's passphrase"
        } else if text.contains("ENCRYPTED"), reason.contains("unsupported") {
            // RC2, DES and others, whatever the passphrase is.
            words =
                "uses a cipher that the TLS library does not have (\(reason)). Convert it: openssl pkcs8 -provider legacy -provider default -in OLD | openssl pkcs8 -topk8 -out NEW"
        } else if passphrase != nil {
            words = "cannot be opened: the passphrase is wrong, or the key is damaged (\(reason))"
        } else {
            words = "holds a damaged private key: \(reason)"
        }
        return TransportError(.tlsConfiguration, "\(self) \(words).")
    }
}

/// One part of a text in PEM (RFC 7468).
struct PEMBlock {
    let label: String
    /// Whether lines with names stand in front of the Base64, as in OpenSSL's old format of encrypted keys.
    let hasHeaders: Bool
    let bytes: [UInt8]

    /// The blocks whose label is wanted, in their order; nil if the Base64 of one is damaged.
    ///
    /// - Parameter text: what ``PEMSource/lines(of:_:)`` returns.
    static func all(in text: [UInt8], label isWanted: (String) -> Bool) -> [PEMBlock]? {
        let (begin, dashes) = ("-----BEGIN ", "-----")
        var blocks: [PEMBlock] = []
        var (label, body, hasHeaders) = (String?.none, "", false)
        for line in String(decoding: text, as: UTF8.self).split(whereSeparator: \.isNewline) {
            if line.hasPrefix(begin) {
                let name = line.dropFirst(begin.count).prefix { $0 != "-" }
                (label, body, hasHeaders) = (isWanted(String(name)) ? String(name) : nil, "", false)
            } else if line.hasPrefix(dashes) {
                if let label {
                    guard let bytes = Base64.decode(body) else { return nil }
                    blocks.append(PEMBlock(label: label, hasHeaders: hasHeaders, bytes: bytes))
                }
                label = nil
            } else if label != nil {
                if line.contains(":") {
                    hasHeaders = true
                } else {
                    body.append(contentsOf: line.filter { !$0.isWhitespace })
                }
            }
        }
        return blocks
    }
}
