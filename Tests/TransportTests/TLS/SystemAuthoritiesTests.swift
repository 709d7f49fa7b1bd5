import Foundation
import TestSupport
import Testing

@testable import Transport

/// Where the authorities of a system are, and what is missing there.
@Suite(.turns)
struct SystemAuthoritiesTests {
    /// Files of one certificate with a description behind it, and names that OpenSSL 3 does not look for.
    @Test func `authorities are read from the first folder that has any, as on Android`() async throws {
        let certificates = Certificates()
        let scratch = try ScratchDirectory("authorities")
        for folder in ["empty", "apex", "system"] {
            try FileManager.default.createDirectory(atPath: scratch.file(folder), withIntermediateDirectories: false)
        }
        let authority = try String(contentsOfFile: certificates.authority.certificate, encoding: .utf8)
        try scratch.write(authority + "\nCertificate:\n    Data:\n        Version: 3 (0x2)\n", to: "apex/5ed36f99.0")
        try scratch.write("not a certificate", to: "apex/00c089f2.0")
        try scratch.write(authority, to: "system/5ed36f99.0")
        // A context of its own, which no other test's client shares.
        let other = scratch.file("other.pem")
        try FileManager.default.copyItem(atPath: certificates.otherAuthority.certificate, toPath: other)
        var options = TLSOptions()
        options.trust = .authorities([.file(other)])
        options.implementation = .openSSL
        let contexts = TLSContexts(client: options)
        let server = try TLSTestServer.start(certificates.server)
        func connect() async throws(TransportError) {
            let stream = try await connectTLS(port: server.port, contexts: contexts).stream
            EventLoop.shared.execute { stream.close() }
        }
        await #expect { try await connect() } throws: { ($0 as? TransportError)?.code == .certificateUntrusted }
        let context = try contexts.context().context
        context.addAuthorities(inFirstOf: ["absent", "empty"].map(scratch.file))
        await #expect { try await connect() } throws: { ($0 as? TransportError)?.code == .certificateUntrusted }
        let files = SystemAuthorities.files(inFirstOf: ["absent", "empty", "apex", "system"].map(scratch.file))
        #expect(Set(files) == [scratch.file("apex/5ed36f99.0"), scratch.file("apex/00c089f2.0")])
        context.addAuthorities(inFirstOf: ["absent", "empty", "apex", "system"].map(scratch.file))
        try await connect()
    }

    @Test func `authorities are missing without their file and with nothing in their folders`() throws {
        let scratch = try ScratchDirectory("authorities")
        let (file, folder) = (scratch.file("cert.pem"), scratch.file("certs"))
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
        let missing = SystemAuthorities.missing(file: file, folders: "\(folder):/nowhere")
        #expect(missing == "there is no \(file), and nothing in \(folder) and /nowhere")
        try scratch.write("x", to: "certs/5ed36f99.0")
        #expect(SystemAuthorities.missing(file: file, folders: "/nowhere:\(folder)") == nil)
        try scratch.write("x", to: "cert.pem")
        #expect(SystemAuthorities.missing(file: file, folders: "/nowhere") == nil)
    }
}
