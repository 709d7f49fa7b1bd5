/// Private keys that a URI names: in the stores of OpenSSL's providers, and in its engines.
// Every `unsafe` in this file passes OpenSSL what it has made, or texts and buffers that live as long as the call; what a
// function makes it frees, but for engines, see below.
@safe
struct OpenSSLStore {
    private typealias Pointer = OpaquePointer
    private let openSSL: OpenSSL
    private let identity: TLSIdentity
    private let wrapCallback: @convention(c) (OpenSSL.PassphraseCallback?, Int32) -> Pointer?
    private let methodFree: @convention(c) (Pointer?) -> Void

    /// - Throws: `tlsUnavailable`.
    init(_ openSSL: OpenSSL, for identity: TLSIdentity) throws(TransportError) {
        self.openSSL = openSSL
        self.identity = identity
        // The types above, and those below, are those of the functions in C, by their manual pages.
        try unsafe wrapCallback = openSSL.library.function("UI_UTIL_wrap_read_pem_callback")
        try unsafe methodFree = openSSL.library.function("UI_destroy_method")
    }

    private static let engine = "org.openssl.engine:"

    /// The key; the caller frees it.
    ///
    /// - Throws: `tlsConfiguration`; `systemLimit` if the process may open no other file.
    func key(_ uri: String) throws(TransportError) -> OpaquePointer {
        guard !uri.utf8.contains(0) else { throw unusable("its URI has a zero byte") }
        let pin = Array((identity.passphrase ?? "").utf8) + [0]
        let secret = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: pin.count)
        _ = unsafe secret.initialize(from: pin)
        defer {
            unsafe secret.update(repeating: 0)
            unsafe secret.deallocate()
        }
        // OpenSSL asks at the terminal without a method.
        let method = unsafe wrapCallback(identity.passphrase == nil ? noPassphrase : givePassphrase, 0)
        defer { unsafe methodFree(method) }
        openSSL.errorClear()
        defer { openSSL.errorClear() }
        let data = UnsafeMutableRawPointer(secret.baseAddress)
        if uri.hasPrefix(Self.engine) {
            let name = uri.dropFirst(Self.engine.count).prefix { $0 != ":" }
            let key = uri.dropFirst(Self.engine.count + name.count + 1)
            return unsafe try keyOfEngine(String(name), String(key), method, data)
        }
        if uri.hasPrefix("pkcs11:") { try load(provider: "pkcs11") }
        return unsafe try keyOfStore(uri, method, data)
    }

    // MARK: Engines

    private func keyOfEngine(
        _ name: String, _ key: String, _ method: OpaquePointer?, _ data: UnsafeMutableRawPointer?
    ) throws(TransportError) -> OpaquePointer {
        guard !name.isEmpty, !key.isEmpty else {
            throw unusable("'\(Self.engine)' is followed by the name of an engine, a colon, and what it calls the key")
        }
        let prepare: @convention(c) (UInt64, Pointer?) -> Int32 = try unsafe openSSL.library.function(
            "OPENSSL_init_crypto")
        let engines = try OpenSSLEngines(openSSL.library, for: identity)
        // Engines in files of their own.
        let dynamicEngines: UInt64 = 0x400
        _ = prepare(dynamicEngines, nil)
        guard let engine = unsafe engines.find(name) else {
            throw unusable(
                "OpenSSL has no engine '\(name)' (\(openSSL.takeError().text)). For 'pkcs11' install "
                    + "libengine-pkcs11-openssl (Debian, Ubuntu) or openssl-pkcs11 (Fedora)")
        }
        defer { _ = unsafe engines.free(engine) }
        // It stays initialized for as long as the process lives: keys depend on it.
        guard unsafe engines.begin(engine) == 1 else {
            throw unusable("the engine '\(name)' does not start: \(openSSL.takeError().text)")
        }
        guard let found = unsafe engines.load(engine, key, method, data) else { throw notFound }
        return unsafe found
    }

    // MARK: Stores

    private func load(provider: String) throws(TransportError) {
        let isAvailable: @convention(c) (Pointer?, OpenSSL.Chars?) -> Int32 =
            try unsafe openSSL.library.function("OSSL_PROVIDER_available")
        let load: @convention(c) (Pointer?, OpenSSL.Chars?, Int32) -> Pointer? =
            try unsafe openSSL.library.function("OSSL_PROVIDER_try_load")
        let keepsOthers: Int32 = 1
        if unsafe isAvailable(nil, provider) == 1 || load(nil, provider, keepsOthers) != nil { return }
        let engine =
            OpenSSLEngines.exist(in: openSSL.library)
            ? "; or use an engine, with '\(Self.engine)pkcs11:' before the URI" : ""
        throw unusable(
            "OpenSSL has no provider '\(provider)' (\(openSSL.takeError().text)). Install pkcs11-provider and name its module in "
                + "OpenSSL's configuration\(engine)")
    }

    private func keyOfStore(
        _ uri: String, _ method: OpaquePointer?, _ data: UnsafeMutableRawPointer?
    ) throws(TransportError) -> OpaquePointer {
        let open:
            @convention(c) (OpenSSL.Chars?, Pointer?, UnsafeMutableRawPointer?, Pointer?, UnsafeMutableRawPointer?) ->
                Pointer? = try unsafe openSSL.library.function("OSSL_STORE_open")
        let expect: @convention(c) (Pointer?, Int32) -> Int32 = try unsafe openSSL.library.function("OSSL_STORE_expect")
        let isAtEnd: @convention(c) (Pointer?) -> Int32 = try unsafe openSSL.library.function("OSSL_STORE_eof")
        let hasFailed: @convention(c) (Pointer?) -> Int32 = try unsafe openSSL.library.function("OSSL_STORE_error")
        let load: @convention(c) (Pointer?) -> Pointer? = try unsafe openSSL.library.function("OSSL_STORE_load")
        let key: @convention(c) (Pointer?) -> Pointer? = try unsafe openSSL.library.function(
            "OSSL_STORE_INFO_get1_PKEY")
        let free: @convention(c) (Pointer?) -> Void = try unsafe openSSL.library.function("OSSL_STORE_INFO_free")
        let close: @convention(c) (Pointer?) -> Int32 = try unsafe openSSL.library.function("OSSL_STORE_close")
        guard let store = unsafe open(uri, method, data, nil, nil) else {
            throw unusable(
                "no provider of OpenSSL can open its URI (\(openSSL.takeError().text)). Check the URI, and the providers in "
                    + "OpenSSL's configuration")
        }
        defer { _ = unsafe close(store) }
        let privateKeys: Int32 = 4
        _ = unsafe expect(store, privateKeys)
        while unsafe isAtEnd(store) == 0 {
            guard let item = unsafe load(store) else {
                if unsafe hasFailed(store) != 0 { break }
                continue
            }
            defer { unsafe free(item) }
            if let found = unsafe key(item) { return unsafe found }
        }
        throw notFound
    }

    private var notFound: TransportError {
        let reason = openSSL.takeError().text
        let advice = identity.passphrase == nil ? "its pin, which the identity does not have" : "the pin"
        return unusable("no private key was found at its URI (\(reason)). Check the URI, the token, and \(advice)")
    }

    private func unusable(_ reason: String) -> TransportError { .unusableKey(of: identity, reason) }
}

/// The functions for engines, which OpenSSL 4 does not have any more.
// Safe to hold: functions of a library that is never unloaded.
@safe
struct OpenSSLEngines {
    let find: @convention(c) (OpenSSL.Chars?) -> OpaquePointer?
    let begin: @convention(c) (OpaquePointer?) -> Int32
    let free: @convention(c) (OpaquePointer?) -> Int32
    let load:
        @convention(c) (OpaquePointer?, OpenSSL.Chars?, OpaquePointer?, UnsafeMutableRawPointer?) -> OpaquePointer?

    static func exist(in library: OpenSSLLibrary) -> Bool { library.has("ENGINE_by_id") }

    /// - Throws: `tlsConfiguration` for a library without engines.
    init(_ library: OpenSSLLibrary, for identity: TLSIdentity) throws(TransportError) {
        guard Self.exist(in: library) else {
            throw TransportError.unusableKey(
                of: identity,
                "this OpenSSL has no engines. Use the key through a provider, with a URI that begins with 'pkcs11:' for example"
            )
        }
        // The types above are those of the functions in C, by their manual pages.
        try unsafe find = library.function("ENGINE_by_id")
        try unsafe begin = library.function("ENGINE_init")
        try unsafe free = library.function("ENGINE_free")
        try unsafe load = library.function("ENGINE_load_private_key")
    }
}

extension TransportError {
    fileprivate static func unusableKey(of identity: TLSIdentity, _ reason: String) -> TransportError {
        if let code = System.shortage(in: reason) {
            return .shortage("Cannot load the stored key of \(identity)", code)
        }
        return TransportError(.tlsConfiguration, "The stored key of \(identity) cannot be used: \(reason).")
    }
}
