import TestSupport
import Testing

@testable import Transport

/// Which libraries of OpenSSL are found, and what those of another version lack.
struct OpenSSLLibraryTests {
    #if !canImport(Darwin)
        @Test func `OpenSSL 4 is found where there is no OpenSSL 3`() throws {
            let names = OpenSSLLibrary.usualNames
            let first = try #require(names.firstIndex { $0.hasSuffix("libssl.so.4") })
            let last = try #require(names.lastIndex { $0.hasSuffix("libssl.so.3") })
            #expect(last < first)
            // Each place is searched for both.
            let places = names[first...].map { $0.dropLast() }
            #expect(names[...last].map { $0.dropLast() } == places)
            #expect(names.contains("libssl.so.4"))
        }
    #endif
    #if os(Linux)
        /// OpenSSL 4 has no engines, and neither has the library of C.
        @Test func `a key of an engine has an error that names the other way where there are no engines`() throws {
            let library = try OpenSSLLibrary.open(["libc.so.6"])
            #expect(library.has("malloc") && !OpenSSLEngines.exist(in: library))
            let identity = TLSIdentity.stored(
                key: "org.openssl.engine:pkcs11:x", certificates: .file(Certificates().client.certificate))
            let error = #expect(throws: TransportError.self) { try OpenSSLEngines(library, for: identity) }
            #expect(error?.code == .tlsConfiguration)
            #expect(error?.message.contains("no engines") == true && error?.message.contains("'pkcs11:'") == true)
        }
    #endif
}
