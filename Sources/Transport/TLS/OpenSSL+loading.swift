import MessagingWire
import Synchronization

/// A libssl that `dlopen` has loaded; it stays for as long as the process lives.
// Safe to hold: the library is never unloaded.
@safe
package struct OpenSSLLibrary: @unchecked Sendable {
    // Sendable because it is a constant.
    private let handle: UnsafeMutableRawPointer
    private let name: String

    /// Whether there is a function of this name.
    func has(_ symbol: String) -> Bool { unsafe dlsym(handle, symbol) != nil }

    /// A function by its name in C; libcrypto's are found through libssl, which depends on it.
    package func function<Function>(_ symbol: String) throws(TransportError) -> Function {
        guard let address = unsafe dlsym(handle, symbol) else {
            throw OpenSSL.unavailable("\(name) has no \(symbol): it is not OpenSSL 3 or 4")
        }
        // The symbol has the C type that its caller names.
        return unsafe unsafeBitCast(address, to: Function.self)
    }

    /// Loads the first of `names` that can be loaded.
    package static func open(_ names: [String]) throws(TransportError) -> OpenSSLLibrary {
        var reason: String?
        for name in names {
            if let handle = unsafe dlopen(name, RTLD_NOW | RTLD_LOCAL) {
                return unsafe OpenSSLLibrary(handle: handle, name: name)
            }
            let error = unsafe dlerror().map { unsafe String(cString: $0) } ?? "\(name) cannot be loaded"
            // The first place is where most systems have it.
            reason = reason ?? error
        }
        throw OpenSSL.unavailable(reason ?? "this system has no place where it would be")
    }

    /// Where the system keeps it, OpenSSL 3 first: it is what the tests run with.
    package static var usualNames: [String] {
        #if os(macOS)
            // Absolute and versioned: the system's own unversioned stub ends the process that opens it.
            return [3, 4].flatMap { version in
                [
                    "/opt/homebrew/opt/openssl@\(version)/lib/libssl.\(version).dylib",
                    "/usr/local/opt/openssl@\(version)/lib/libssl.\(version).dylib",
                    "/opt/local/libexec/openssl\(version)/lib/libssl.\(version).dylib",
                ]
            }
        #elseif canImport(Darwin)
            return []
        #else
            let folders = ["/usr/lib64", "/usr/lib", "/lib", "/usr/local/lib64", "/usr/local/lib"]
            return ["libssl.so.3", "libssl.so.4"].flatMap { name in [name] + folders.map { "\($0)/\(name)" } }
        #endif
    }
}

extension OpenSSL {
    private static let loaded = Lock<[ByteKey: OpenSSL]>([:])

    /// The library, loaded with the first call that can: a failure is not remembered, since the library may be installed, or
    /// a file closed that took the last descriptor.
    ///
    /// - Parameter path: wins over `MESSAGING_LIBSSL`, which wins over the system's places.
    /// - Throws: `tlsUnavailable`; `systemLimit` if the process may open no other file.
    static func load(path: String?) throws(TransportError) -> OpenSSL {
        let wanted = unsafe path ?? getenv("MESSAGING_LIBSSL").map { unsafe String(cString: $0) } ?? ""
        let result = loaded.withLock { loaded in
            Result { () throws(TransportError) in
                if let known = loaded[ByteKey(wanted)] { return known }
                let made = try open(wanted.isEmpty ? OpenSSLLibrary.usualNames : [wanted])
                loaded[ByteKey(wanted)] = made
                return made
            }
        }
        return try result.get()
    }

    private static func open(_ names: [String]) throws(TransportError) -> OpenSSL {
        let openSSL = try OpenSSL(OpenSSLLibrary.open(names))
        guard openSSL.versionNumber() >> 28 >= 3 else { throw unavailable("the library found is older than OpenSSL 3") }
        // Without its exit handler: the loop's thread may be using it while the process ends.
        let withoutExitHandler: UInt64 = 0x0008_0000
        guard openSSL.initialize(withoutExitHandler, nil) == 1 else {
            throw unavailable("the library cannot be initialized; check its configuration file")
        }
        return openSSL
    }

    static func unavailable(_ reason: String) -> TransportError {
        if let code = System.shortage(in: reason) {
            return .shortage("OpenSSL (libssl), which TLS needs, cannot be loaded", code)
        }
        // What musl's dlopen reports in a program without a dynamic linker.
        if reason.contains("Dynamic loading not supported") {
            return TransportError(
                .tlsUnavailable,
                "TLS needs OpenSSL 3 or 4 (libssl), which a fully static program cannot load. Link dynamically, or end TLS in a "
                    + "proxy on the same machine (\(reason)).")
        }
        #if os(macOS)
            let advice = "install it with 'brew install openssl@3'"
        #elseif canImport(Darwin)
            let advice = "this system does not have it; choose the implementation .system in the TLS options"
        #elseif canImport(Musl)
            let advice = "install the package libssl3 (Alpine)"
        #elseif canImport(Android)
            let advice = "the app has to bring it; name its libssl in libraryPath of the TLS options"
        #else
            let advice =
                "install the package libssl3 (Debian, Ubuntu), openssl-libs or openssl3-libs (Fedora) or libssl3 (Alpine)"
        #endif
        return TransportError(
            .tlsUnavailable, "TLS needs OpenSSL 3 or 4 (libssl), which is not usable: \(advice) (\(reason)).")
    }
}

// Safe: each BIO is freed by the function that makes it; texts of OpenSSL are constants of the library.
extension OpenSSL {
    /// The oldest error that this thread's last call left, as number and words; the rest is dropped.
    func takeError() -> (code: UInt, text: String) {
        let code = errorGet()
        errorClear()
        return unsafe (code, errorReason(code).map { unsafe String(cString: $0) } ?? "no reason given")
    }

    /// Gives back references to certificates, each of which the caller owns.
    func free(_ certificates: [Pointer]) {
        for index in unsafe certificates.indices { unsafe certificateFree(certificates[index]) }
    }

    /// A certificate in DER; empty if it cannot be encoded.
    func der(of certificate: Pointer?) -> [UInt8] {
        let count = unsafe encodeCertificate(certificate, nil)
        guard count > 0 else { return [] }
        var bytes = [UInt8](repeating: 0, count: Int(count))
        unsafe bytes.withUnsafeMutableBufferPointer { buffer in
            var start = buffer.baseAddress
            _ = unsafe encodeCertificate(certificate, &start)
        }
        return bytes
    }

    /// The certificates of a stack in DER.
    func der(ofAll certificates: Pointer?) -> [[UInt8]] {
        guard let certificates = unsafe certificates else { return [] }
        return unsafe (0..<max(0, stackCount(certificates))).map { unsafe der(of: stackValue(certificates, $0)) }
    }

    func digest(of bytes: [UInt8]) -> [UInt8] {
        var digest = [UInt8](repeating: 0, count: 32)
        _ = unsafe sha256(bytes, bytes.count, &digest)
        return digest
    }

    /// What `print` writes into a memory BIO.
    func text(_ print: (Pointer?) -> Int32) -> String {
        let bio = unsafe bioNew(bioMemory())
        defer { _ = unsafe bioFree(bio) }
        guard unsafe print(bio) > 0 else { return "?" }
        var bytes = unsafe [UInt8](repeating: 0, count: min(bioPending(bio), 4096))
        let count = unsafe bioRead(bio, &bytes, Int32(bytes.count))
        return String(decoding: bytes.prefix(Int(max(0, count))), as: UTF8.self)
    }

    /// A distinguished name on one line, control characters escaped.
    func text(name: Pointer?) -> String {
        // XN_FLAG_RFC2253 without ASN1_STRFLGS_ESC_MSB, which would spell UTF-8 out in hexadecimal.
        unsafe text { unsafe printName($0, name, 0, 0x0111_0317 & ~0x4) }
    }

    func text(time: Pointer?) -> String {
        unsafe text { unsafe printTime($0, time) }
    }
}
