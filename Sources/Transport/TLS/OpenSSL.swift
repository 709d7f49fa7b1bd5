/// The functions of OpenSSL 3 and 4 that are used, found with `dlsym`: neither headers nor a link-time dependency.
///
/// Signatures are those of the manual pages of OpenSSL 3.0. Pointers to its opaque types are `OpaquePointer`, `long`
/// is `Int`, `size_t` is `Int`, `unsigned long` is `UInt`.
// Safe to hold. A call with pointers is marked `unsafe`, and its caller says why the pointers are valid.
@safe
struct OpenSSL: Sendable {
    typealias Callback = @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32
    typealias PassphraseCallback =
        @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32
    typealias Pointer = OpaquePointer
    typealias Chars = UnsafePointer<CChar>
    typealias Bytes = UnsafePointer<UInt8>

    // Library
    /// Where functions are found that few connections need.
    let library: OpenSSLLibrary
    let initialize: @convention(c) (UInt64, OpaquePointer?) -> Int32
    let versionNumber: @convention(c) () -> UInt
    let errorGet: @convention(c) () -> UInt
    let errorClear: @convention(c) () -> Void
    let errorReason: @convention(c) (UInt) -> Chars?

    // Memory BIOs
    let bioNew: @convention(c) (Pointer?) -> Pointer?
    let bioMemory: @convention(c) () -> Pointer?
    let bioFrom: @convention(c) (UnsafeRawPointer?, Int32) -> Pointer?
    let bioFree: @convention(c) (Pointer?) -> Int32
    let bioRead: @convention(c) (Pointer?, UnsafeMutableRawPointer?, Int32) -> Int32
    let bioWrite: @convention(c) (Pointer?, UnsafeRawPointer?, Int32) -> Int32
    let bioPending: @convention(c) (Pointer?) -> Int

    // Contexts
    let method: @convention(c) () -> Pointer?
    let contextNew: @convention(c) (Pointer?) -> Pointer?
    let contextFree: @convention(c) (Pointer?) -> Void
    let contextControl: @convention(c) (Pointer?, Int32, Int, UnsafeMutableRawPointer?) -> Int
    let contextSetOptions: @convention(c) (Pointer?, UInt64) -> UInt64
    let contextSetVerify: @convention(c) (Pointer?, Int32, OpaquePointer?) -> Void
    let contextSetVerifier: @convention(c) (Pointer?, Callback?, UnsafeMutableRawPointer?) -> Void
    let contextSetCertificateCallback: @convention(c) (Pointer?, Callback?, UnsafeMutableRawPointer?) -> Void
    let contextUseCertificate: @convention(c) (Pointer?, Pointer?) -> Int32
    let contextUseKey: @convention(c) (Pointer?, Pointer?) -> Int32
    let contextCheckKey: @convention(c) (Pointer?) -> Int32
    let contextStore: @convention(c) (Pointer?) -> Pointer?
    let contextParameters: @convention(c) (Pointer?) -> Pointer?
    let contextSystemPaths: @convention(c) (Pointer?) -> Int32
    let contextSetSessionID: @convention(c) (Pointer?, Bytes?, UInt32) -> Int32

    // Connections
    let new: @convention(c) (Pointer?) -> Pointer?
    let free: @convention(c) (Pointer?) -> Void
    let setBIO: @convention(c) (Pointer?, Pointer?, Pointer?) -> Void
    let setConnect: @convention(c) (Pointer?) -> Void
    let setAccept: @convention(c) (Pointer?) -> Void
    let control: @convention(c) (Pointer?, Int32, Int, UnsafeMutableRawPointer?) -> Int
    let setExtraData: @convention(c) (Pointer?, Int32, UnsafeMutableRawPointer?) -> Int32
    let extraData: @convention(c) (Pointer?, Int32) -> UnsafeMutableRawPointer?
    let setHost: @convention(c) (Pointer?, Chars?) -> Int32
    let setHostFlags: @convention(c) (Pointer?, UInt32) -> Void
    let parameters: @convention(c) (Pointer?) -> Pointer?
    let setProtocols: @convention(c) (Pointer?, Bytes?, UInt32) -> Int32
    let selectedProtocol:
        @convention(c) (Pointer?, UnsafeMutablePointer<Bytes?>?, UnsafeMutablePointer<UInt32>?) -> Void
    let handshake: @convention(c) (Pointer?) -> Int32
    let read: @convention(c) (Pointer?, UnsafeMutableRawPointer?, Int32) -> Int32
    let write: @convention(c) (Pointer?, UnsafeRawPointer?, Int32) -> Int32
    let shutdown: @convention(c) (Pointer?) -> Int32
    let setShutdown: @convention(c) (Pointer?, Int32) -> Void
    let getError: @convention(c) (Pointer?, Int32) -> Int32
    let version: @convention(c) (Pointer?) -> Chars?
    let verifyResult: @convention(c) (Pointer?) -> Int

    // Sessions
    let takeSession: @convention(c) (Pointer?) -> Pointer?
    let setSession: @convention(c) (Pointer?, Pointer?) -> Int32
    let sessionFree: @convention(c) (Pointer?) -> Void
    let sessionIsResumable: @convention(c) (Pointer?) -> Int32
    let wasResumed: @convention(c) (Pointer?) -> Int32

    // Certificates and keys
    let readCertificate:
        @convention(c) (Pointer?, OpaquePointer?, PassphraseCallback?, UnsafeMutableRawPointer?) -> Pointer?
    let readKey: @convention(c) (Pointer?, OpaquePointer?, PassphraseCallback?, UnsafeMutableRawPointer?) -> Pointer?
    let encodeCertificate: @convention(c) (Pointer?, UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32
    let sha256: @convention(c) (Bytes?, Int, UnsafeMutablePointer<UInt8>?) -> UnsafeMutablePointer<UInt8>?
    let decodeCertificate: @convention(c) (Pointer?, UnsafeMutablePointer<Bytes?>?, Int) -> Pointer?
    let readContainer: @convention(c) (Pointer?, OpaquePointer?) -> Pointer?
    let openContainer:
        @convention(c) (
            Pointer?, Chars?, UnsafeMutablePointer<Pointer?>?, UnsafeMutablePointer<Pointer?>?,
            UnsafeMutablePointer<Pointer?>?
        ) -> Int32
    let containerFree: @convention(c) (Pointer?) -> Void
    let stackFree: @convention(c) (Pointer?) -> Void
    let certificateFree: @convention(c) (Pointer?) -> Void
    let keyFree: @convention(c) (Pointer?) -> Void
    let storeAdd: @convention(c) (Pointer?, Pointer?) -> Int32
    let parametersSetFlags: @convention(c) (Pointer?, UInt) -> Int32
    let parametersSetAddress: @convention(c) (Pointer?, Chars?) -> Int32
    let verifyCertificate: @convention(c) (Pointer?) -> Int32
    let storeContextError: @convention(c) (Pointer?) -> Int32
    let storeContextDepth: @convention(c) (Pointer?) -> Int32
    let storeContextCertificate: @convention(c) (Pointer?) -> Pointer?
    let storeContextSetError: @convention(c) (Pointer?, Int32) -> Void
    let storeContextChain: @convention(c) (Pointer?) -> Pointer?
    let storeContextSent: @convention(c) (Pointer?) -> Pointer?
    let storeContextExtraData: @convention(c) (Pointer?, Int32) -> UnsafeMutableRawPointer?
    let storeContextIndex: @convention(c) () -> Int32
    let verifyErrorText: @convention(c) (Int) -> Chars?
    let subject: @convention(c) (Pointer?) -> Pointer?
    let issuer: @convention(c) (Pointer?) -> Pointer?
    let printName: @convention(c) (Pointer?, Pointer?, Int32, UInt) -> Int32
    let notBefore: @convention(c) (Pointer?) -> Pointer?
    let notAfter: @convention(c) (Pointer?) -> Pointer?
    let printTime: @convention(c) (Pointer?, Pointer?) -> Int32
    let certificateExtension:
        @convention(c) (Pointer?, Int32, UnsafeMutablePointer<Int32>?, UnsafeMutablePointer<Int32>?) -> Pointer?
    let stackCount: @convention(c) (Pointer?) -> Int32
    let stackValue: @convention(c) (Pointer?, Int32) -> Pointer?
    let generalName: @convention(c) (Pointer?, UnsafeMutablePointer<Int32>?) -> Pointer?
    let generalNamesFree: @convention(c) (Pointer?) -> Void
    let stringBytes: @convention(c) (Pointer?) -> Bytes?
    let stringLength: @convention(c) (Pointer?) -> Int32
}

extension OpenSSL {
    /// Finds every function in a library that is loaded.
    ///
    /// - Throws: `tlsUnavailable` with the name of the first that is missing.
    init(_ library: OpenSSLLibrary) throws(TransportError) {
        // The types above are those of the functions in C, by their manual pages.
        try unsafe self.init(
            library: library,
            initialize: library.function("OPENSSL_init_ssl"),
            versionNumber: library.function("OpenSSL_version_num"),
            errorGet: library.function("ERR_get_error"),
            errorClear: library.function("ERR_clear_error"),
            errorReason: library.function("ERR_reason_error_string"),
            bioNew: library.function("BIO_new"),
            bioMemory: library.function("BIO_s_mem"),
            bioFrom: library.function("BIO_new_mem_buf"),
            bioFree: library.function("BIO_free"),
            bioRead: library.function("BIO_read"),
            bioWrite: library.function("BIO_write"),
            bioPending: library.function("BIO_ctrl_pending"),
            method: library.function("TLS_method"),
            contextNew: library.function("SSL_CTX_new"),
            contextFree: library.function("SSL_CTX_free"),
            contextControl: library.function("SSL_CTX_ctrl"),
            contextSetOptions: library.function("SSL_CTX_set_options"),
            contextSetVerify: library.function("SSL_CTX_set_verify"),
            contextSetVerifier: library.function("SSL_CTX_set_cert_verify_callback"),
            contextSetCertificateCallback: library.function("SSL_CTX_set_cert_cb"),
            contextUseCertificate: library.function("SSL_CTX_use_certificate"),
            contextUseKey: library.function("SSL_CTX_use_PrivateKey"),
            contextCheckKey: library.function("SSL_CTX_check_private_key"),
            contextStore: library.function("SSL_CTX_get_cert_store"),
            contextParameters: library.function("SSL_CTX_get0_param"),
            contextSystemPaths: library.function("SSL_CTX_set_default_verify_paths"),
            contextSetSessionID: library.function("SSL_CTX_set_session_id_context"),
            new: library.function("SSL_new"),
            free: library.function("SSL_free"),
            setBIO: library.function("SSL_set_bio"),
            setConnect: library.function("SSL_set_connect_state"),
            setAccept: library.function("SSL_set_accept_state"),
            control: library.function("SSL_ctrl"),
            setExtraData: library.function("SSL_set_ex_data"),
            extraData: library.function("SSL_get_ex_data"),
            setHost: library.function("SSL_set1_host"),
            setHostFlags: library.function("SSL_set_hostflags"),
            parameters: library.function("SSL_get0_param"),
            setProtocols: library.function("SSL_set_alpn_protos"),
            selectedProtocol: library.function("SSL_get0_alpn_selected"),
            handshake: library.function("SSL_do_handshake"),
            read: library.function("SSL_read"),
            write: library.function("SSL_write"),
            shutdown: library.function("SSL_shutdown"),
            setShutdown: library.function("SSL_set_shutdown"),
            getError: library.function("SSL_get_error"),
            version: library.function("SSL_get_version"),
            verifyResult: library.function("SSL_get_verify_result"),
            takeSession: library.function("SSL_get1_session"),
            setSession: library.function("SSL_set_session"),
            sessionFree: library.function("SSL_SESSION_free"),
            sessionIsResumable: library.function("SSL_SESSION_is_resumable"),
            wasResumed: library.function("SSL_session_reused"),
            readCertificate: library.function("PEM_read_bio_X509"),
            readKey: library.function("PEM_read_bio_PrivateKey"),
            encodeCertificate: library.function("i2d_X509"),
            sha256: library.function("SHA256"),
            decodeCertificate: library.function("d2i_X509"),
            readContainer: library.function("d2i_PKCS12_bio"),
            openContainer: library.function("PKCS12_parse"),
            containerFree: library.function("PKCS12_free"),
            stackFree: library.function("OPENSSL_sk_free"),
            certificateFree: library.function("X509_free"),
            keyFree: library.function("EVP_PKEY_free"),
            storeAdd: library.function("X509_STORE_add_cert"),
            parametersSetFlags: library.function("X509_VERIFY_PARAM_set_flags"),
            parametersSetAddress: library.function("X509_VERIFY_PARAM_set1_ip_asc"),
            verifyCertificate: library.function("X509_verify_cert"),
            storeContextError: library.function("X509_STORE_CTX_get_error"),
            storeContextDepth: library.function("X509_STORE_CTX_get_error_depth"),
            storeContextCertificate: library.function("X509_STORE_CTX_get_current_cert"),
            storeContextSetError: library.function("X509_STORE_CTX_set_error"),
            storeContextChain: library.function("X509_STORE_CTX_get0_chain"),
            storeContextSent: library.function("X509_STORE_CTX_get0_untrusted"),
            storeContextExtraData: library.function("X509_STORE_CTX_get_ex_data"),
            storeContextIndex: library.function("SSL_get_ex_data_X509_STORE_CTX_idx"),
            verifyErrorText: library.function("X509_verify_cert_error_string"),
            subject: library.function("X509_get_subject_name"),
            issuer: library.function("X509_get_issuer_name"),
            printName: library.function("X509_NAME_print_ex"),
            notBefore: library.function("X509_get0_notBefore"),
            notAfter: library.function("X509_get0_notAfter"),
            printTime: library.function("ASN1_TIME_print"),
            certificateExtension: library.function("X509_get_ext_d2i"),
            stackCount: library.function("OPENSSL_sk_num"),
            stackValue: library.function("OPENSSL_sk_value"),
            generalName: library.function("GENERAL_NAME_get0_value"),
            generalNamesFree: library.function("GENERAL_NAMES_free"),
            stringBytes: library.function("ASN1_STRING_get0_data"),
            stringLength: library.function("ASN1_STRING_length"))
    }
}
