import Foundation
import TestSupport
import Testing

@testable import Transport

/// PEM as editors and scripts leave it, read by OpenSSL and by ``PEMBlock``.
@Suite("PEM")
struct PEMSourceTests {
    private let certificates = Certificates()

    private func text(_ path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

    /// How many certificates each of the two readers finds.
    private func counts(_ text: String) throws -> [Int] {
        let openSSL = try OpenSSL.load(path: nil)
        let found = try PEMReader(openSSL: openSSL).certificates(.text(text), "trusted authorities")
        defer { openSSL.free(found) }
        return [found.count, try PEMSource.text(text).certificates("trusted authorities").count]
    }

    private static let forms: [@Sendable (String) -> String] = [
        { $0 }, { "\u{FEFF}" + $0 }, { $0.replacing("-----BEGIN", with: "\u{FEFF}-----BEGIN") },
        { $0.replacing("-----BEGIN", with: "  -----BEGIN") }, { $0.replacing("-----END", with: "\t-----END") },
        { "\u{FEFF}" + $0.replacing("\n", with: "\r\n") }, { "    " + $0.replacing("\n", with: "\n    ") },
        { "A note.\n\n  -----\n" + $0 + "\n-----BEGIN\n" },
    ]

    @Test(arguments: forms) func `a byte order mark and blanks before lines lose no certificate and no key`(
        form: @Sendable (String) -> String
    ) throws {
        let both = try text(certificates.authority.certificate) + text(certificates.otherAuthority.certificate)
        #expect(try counts(form(both)) == [2, 2])
        let openSSL = try OpenSSL.load(path: nil)
        for (path, passphrase) in [
            (certificates.client.key, nil), (certificates.encryptedClientKey, certificates.passphrase),
        ] {
            let key = try PEMReader(openSSL: openSSL).key(.text(form(text(path))), passphrase: passphrase)
            openSSL.keyFree(key)
        }
    }

    @Test func `a block without its last line is an error with the line where it begins`() throws {
        let (one, other) = (
            try text(certificates.authority.certificate), try text(certificates.otherAuthority.certificate)
        )
        let end = "-----END CERTIFICATE-----\n"
        let later = one.count { $0 == "\n" } + 1
        for (text, line) in [
            (one.replacing(end, with: "") + other, 1), (one + other.replacing(end, with: ""), later),
            (one + String(other.prefix(200)), later), (one + "-----BEGIN CERTIFICATE-----", later),
        ] {
            let words = "'-----BEGIN CERTIFICATE-----' in line \(line) has no '-----END CERTIFICATE-----'"
            for read in [{ _ = try counts(text) }, { _ = try PEMSource.text(text).certificates("certificate") }] {
                let error = #expect(throws: TransportError.self) { try read() }
                #expect(error?.code == .tlsConfiguration && error?.message.contains(words) == true, "\(error as Any)")
            }
        }
        let key = try text(certificates.client.key).split(separator: "\n").dropLast().joined(separator: "\n")
        let error = #expect(throws: TransportError.self) {
            _ = try PEMReader(openSSL: OpenSSL.load(path: nil)).key(.text(key), passphrase: nil)
        }
        #expect(error?.message.contains("in line 1 has no '-----END") == true, "\(error as Any)")
    }

    /// In a process of its own, since all threads share the working directory.
    @Test func `files with relative paths stay the same when the process changes its working directory`() async {
        await #expect(processExitsWith: .success) {
            let scratch = try ScratchDirectory("pem")
            let files = FileManager.default
            for name in ["a", "b"] { try scratch.makeDirectory(name) }
            try files.copyItem(
                atPath: Certificates().authority.certificate, toPath: scratch.file("a/authority.pem"))
            guard files.changeCurrentDirectoryPath(scratch.file("a")) else { exit(2) }
            var options = TLSOptions()
            options.implementation = .openSSL
            options.trust = .authorities([.file("authority.pem")])
            #if DEBUG
                options.keyLogFile = "keys.log"
            #endif
            guard files.changeCurrentDirectoryPath(scratch.file("b")) else { exit(3) }
            try options.check()
            #if DEBUG
                guard files.fileExists(atPath: scratch.file("a/keys.log")) else { exit(4) }
            #endif
            guard try files.contentsOfDirectory(atPath: scratch.file("b")) == [] else { exit(5) }
            exit(0)
        }
    }
}
