import Synchronization

/// Pre-shared keys and the key log: OpenSSL's callbacks for both get the connection and nothing else.
// Every `unsafe` here passes OpenSSL the context, or uses buffers of a callback with their sizes for the time of the call.
extension TLSContext {
    /// The contexts of connections that are open and need a callback without an argument, by OpenSSL's pointer to them.
    private static let connections = Lock<[UInt: TLSContext]>([:])

    private var needsRegister: Bool { options?.preSharedKey != nil || options?.keyLogFile != nil }

    func register(_ connection: OpaquePointer) {
        guard needsRegister else { return }
        Self.connections.withLock { $0[UInt(bitPattern: connection)] = self }
    }

    func unregister(_ connection: OpaquePointer) {
        guard needsRegister else { return }
        Self.connections.withLock { $0[UInt(bitPattern: connection)] = nil }
    }

    fileprivate static func registered(_ connection: OpaquePointer?) -> TLSContext? {
        connections.withLock { $0[UInt(bitPattern: connection)] }
    }

    /// - Throws: `tlsConfiguration` if the key log cannot be written; `systemLimit` if the process may open no other file.
    func setUpSecrets(_ options: TLSOptions) throws(TransportError) {
        if options.preSharedKey != nil {
            let setCallback: @convention(c) (OpaquePointer?, PreSharedKeyCallback?) -> Void =
                try unsafe openSSL.library.function("SSL_CTX_set_psk_client_callback")
            let setCiphers: @convention(c) (OpaquePointer?, UnsafePointer<CChar>?) -> Int32 =
                try unsafe openSSL.library.function("SSL_CTX_set_cipher_list")
            unsafe setCallback(pointer, givePreSharedKey)
            // For TLS 1.2: the suites in which the key alone proves who both are, those with forward secrecy first.
            guard unsafe setCiphers(pointer, "kECDHEPSK:kDHEPSK:kPSK:!eNULL") == 1 else {
                throw TransportError(
                    .tlsUnavailable,
                    "OpenSSL on this machine allows no cipher with a pre-shared key. Use certificates, or another OpenSSL."
                )
            }
        }
        if let file = options.keyLogFile {
            let setCallback: @convention(c) (OpaquePointer?, KeyLogCallback?) -> Void =
                try unsafe openSSL.library.function("SSL_CTX_set_keylog_callback")
            let (isWritten, code) = Self.append("", to: file)
            guard isWritten else {
                throw TransportError.ofTLSFile(
                    "Cannot write '\(file)' (keyLogFile of the TLS options)", code, advice: " Choose another file.")
            }
            unsafe setCallback(pointer, logKey)
        }
    }

    /// Several processes may write to the file: each line is one write at its end.
    ///
    /// - Returns: whether that worked, or the system's reason.
    @discardableResult
    fileprivate static func append(_ line: String, to path: String) -> (Bool, errno: Int32) {
        let file = unsafe open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0o600)
        guard file >= 0 else { return (false, errno) }
        defer { close(file) }
        let bytes = Array(line.utf8)
        let count = unsafe bytes.withUnsafeBytes { unsafe write(file, $0.baseAddress, $0.count) }
        return (count == bytes.count, errno)
    }
}

private typealias PreSharedKeyCallback =
    @convention(c) (
        OpaquePointer?, UnsafePointer<CChar>?, UnsafeMutablePointer<CChar>?, UInt32, UnsafeMutablePointer<UInt8>?,
        UInt32
    ) -> UInt32

private typealias KeyLogCallback = @convention(c) (OpaquePointer?, UnsafePointer<CChar>?) -> Void

/// Writes identity and key, and returns the size of the key; 0 ends the handshake.
private let givePreSharedKey: PreSharedKeyCallback = { connection, _, identity, identitySize, key, keySize in
    guard let preSharedKey = unsafe TLSContext.registered(connection)?.options?.preSharedKey,
        let identity = unsafe identity, let key = unsafe key
    else { return 0 }
    let name = preSharedKey.identity.utf8.map { CChar(bitPattern: $0) } + [0]
    guard name.count <= Int(identitySize), preSharedKey.key.count <= Int(keySize) else { return 0 }
    unsafe identity.update(from: name, count: name.count)
    unsafe key.update(from: preSharedKey.key, count: preSharedKey.key.count)
    return UInt32(preSharedKey.key.count)
}

/// A file that can no longer be written is no reason to end a connection.
private let logKey: KeyLogCallback = { connection, line in
    guard let file = unsafe TLSContext.registered(connection)?.options?.keyLogFile, let line = unsafe line else {
        return
    }
    TLSContext.append(unsafe String(cString: line) + "\n", to: file)
}
