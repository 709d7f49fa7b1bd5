/// The functions of OpenSSL 3 that are used, found with `dlsym`: neither headers nor a link-time dependency.
///
/// Signatures are those of the manual pages of OpenSSL 3.0. Pointers to its opaque types are `OpaquePointer`, `long`
/// is `Int`, `size_t` is `Int`, `unsigned long` is `UInt`.
struct OpenSSL: Sendable {
    typealias Callback = @convention(c) (OpaquePointer?, UnsafeMutableRawPointer?) -> Int32
    typealias PassphraseCallback =
        @convention(c) (UnsafeMutablePointer<CChar>?, Int32, Int32, UnsafeMutableRawPointer?) -> Int32
    typealias Pointer = OpaquePointer
    typealias Chars = UnsafePointer<CChar>
    typealias Bytes = UnsafePointer<UInt8>

    // Library
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
