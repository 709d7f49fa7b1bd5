// swift-format-ignore-file: AlwaysUseLowerCamelCase, TypeNamesShouldBeCapitalized
// The used part of Apple's Security framework, as Swift sees it. https://developer.apple.com/documentation/security
//
// `.ci/check-apple` type-checks against it. With MESSAGING_FAKE_APPLE=1 it is built on Linux, where OpenSSL does the work
// (FakeTrust.swift, FakeIdentity.swift). On Apple's systems it does not exist.

@_exported public import CoreFoundation
@_exported public import Dispatch

#if os(Linux)
    // /kernel/osstatus; Darwin's C headers declare it elsewhere.
    public typealias OSStatus = Int32
#else
    @_exported public import Darwin
#endif

// MARK: Certificates: /security/seccertificate, /seccertificatecreatewithdata(_:_:), /seccertificatecopydata(_:),
// /seccertificatecopysubjectsummary(_:), /seccertificatecopynormalizedissuersequence(_:),
// /seccertificatecopynormalizedsubjectsequence(_:)

public final class SecCertificate {
    package let der: [UInt8]
    package init(der: [UInt8]) { self.der = der }
}

public func SecCertificateCreateWithData(_ allocator: CFAllocator?, _ data: CFData) -> SecCertificate? {
    fake { $0.certificate(data) }
}

public func SecCertificateCopyData(_ certificate: SecCertificate) -> CFData {
    CFDataCreate(kCFAllocatorDefault, certificate.der, certificate.der.count)
}

public func SecCertificateCopySubjectSummary(_ certificate: SecCertificate) -> CFString? {
    fake { $0.subjectSummary(certificate) }
}

public func SecCertificateCopyNormalizedIssuerSequence(_ certificate: SecCertificate) -> CFData? {
    fake { $0.name(certificate, ofIssuer: true) }
}

public func SecCertificateCopyNormalizedSubjectSequence(_ certificate: SecCertificate) -> CFData? {
    fake { $0.name(certificate, ofIssuer: false) }
}

// MARK: Trust: /sectrust, /secpolicy, /secpolicycreatessl(_:_:), /secpolicycreatebasicx509(),
// /sectrustsetpolicies(_:_:), /sectrustsetanchorcertificates(_:_:), /sectrustsetanchorcertificatesonly(_:_:),
// /sectrustevaluatewitherror(_:_:), /sectrustcopycertificatechain(_:), /secpolicycreaterevocation(_:),
// /ksecrevocationocspmethod, /ksecrevocationrequirepositiveresponse

public final class SecPolicy {
    package let hostName: String?
    /// Whether Apple's demands on the certificates of TLS servers are part of it.
    package let isForServers: Bool
    /// 0 asks for no check.
    package var revocationFlags: CFOptionFlags = 0
    package init(hostName: String?, isForServers: Bool = false) {
        self.hostName = hostName
        self.isForServers = isForServers
    }
}

public final class SecTrust {
    package let chain: [SecCertificate]
    package var policy = SecPolicy(hostName: nil)
    package var anchors: [SecCertificate] = []
    package var anchorsOnly = false
    package init(chain: [SecCertificate]) { self.chain = chain }
}

public func SecPolicyCreateSSL(_ server: Bool, _ hostname: CFString?) -> SecPolicy {
    SecPolicy(hostName: hostname?.text, isForServers: server)
}

public func SecPolicyCreateBasicX509() -> SecPolicy { SecPolicy(hostName: nil) }

public var kSecRevocationOCSPMethod: CFOptionFlags { 1 }
public var kSecRevocationRequirePositiveResponse: CFOptionFlags { 8 }

public func SecPolicyCreateRevocation(_ revocationFlags: CFOptionFlags) -> SecPolicy? {
    let policy = SecPolicy(hostName: nil)
    policy.revocationFlags = revocationFlags
    return policy
}

public func SecTrustSetPolicies(_ trust: SecTrust, _ policies: CFTypeRef) -> OSStatus {
    let list = (policies as? CFArray).map { array in
        (0..<CFArrayGetCount(array)).map {
            Unmanaged<SecPolicy>.fromOpaque(CFArrayGetValueAtIndex(array, $0)).takeUnretainedValue()
        }
    }
    guard let policy = policies as? SecPolicy ?? list?.first else { return -50 }
    policy.revocationFlags = list?.last?.revocationFlags ?? policy.revocationFlags
    trust.policy = policy
    return errSecSuccess
}

public func SecTrustSetAnchorCertificates(_ trust: SecTrust, _ anchorCertificates: CFArray?) -> OSStatus {
    trust.anchors = anchorCertificates.map(certificates) ?? []
    // As documented: until it is asked to, it trusts no other.
    trust.anchorsOnly = anchorCertificates != nil
    return errSecSuccess
}

public func SecTrustSetAnchorCertificatesOnly(_ trust: SecTrust, _ anchorCertificatesOnly: Bool) -> OSStatus {
    trust.anchorsOnly = anchorCertificatesOnly
    return errSecSuccess
}

public func SecTrustEvaluateWithError(_ trust: SecTrust, _ error: UnsafeMutablePointer<CFError?>?) -> Bool {
    let code = fake { $0.evaluate(trust) }
    if code != errSecSuccess { error?.pointee = CFError(code: CFIndex(code)) }
    return code == errSecSuccess
}

public func SecTrustCopyCertificateChain(_ trust: SecTrust) -> CFArray? {
    let array = CFArrayCreateMutable(kCFAllocatorDefault, 0, nil)
    for certificate in trust.chain { CFArrayAppendValue(array, Unmanaged.passUnretained(certificate).toOpaque()) }
    return array
}

package func certificates(_ array: CFArray) -> [SecCertificate] {
    (0..<CFArrayGetCount(array)).map {
        Unmanaged<SecCertificate>.fromOpaque(CFArrayGetValueAtIndex(array, $0)).takeUnretainedValue()
    }
}

// MARK: Identities: /secidentity, /secpkcs12import(_:_:_:), /ksecimportexportpassphrase, /ksecimporttomemoryonly,
// /ksecimportitemidentity, /ksecimportitemcertchain

public final class SecIdentity {
    package let certificate: [UInt8]
    package let key: [UInt8]
    package init(certificate: [UInt8], key: [UInt8]) {
        self.certificate = certificate
        self.key = key
    }
}

// MARK: Keys: /seckey, /secidentitycopycertificate(_:_:), /secidentitycopyprivatekey(_:_:), /seccertificatecopykey(_:),
// /seckeycopypublickey(_:), /seckeycopyexternalrepresentation(_:_:)

public final class SecKey {
    /// What stands for the public half.
    package let publicKey: [UInt8]
    package init(publicKey: [UInt8]) { self.publicKey = publicKey }
}

public func SecIdentityCopyCertificate(
    _ identityRef: SecIdentity, _ certificateRef: UnsafeMutablePointer<SecCertificate?>
) -> OSStatus {
    certificateRef.pointee = SecCertificate(der: identityRef.certificate)
    return errSecSuccess
}

public func SecIdentityCopyPrivateKey(
    _ identityRef: SecIdentity, _ privateKeyRef: UnsafeMutablePointer<SecKey?>
) -> OSStatus {
    privateKeyRef.pointee = fake { $0.key(of: identityRef) }
    return errSecSuccess
}

public func SecCertificateCopyKey(_ certificate: SecCertificate) -> SecKey? { fake { $0.key(of: certificate) } }
public func SecKeyCopyPublicKey(_ key: SecKey) -> SecKey? { key }

public func SecKeyCopyExternalRepresentation(
    _ key: SecKey, _ error: UnsafeMutablePointer<Unmanaged<CFError>?>?
) -> CFData? { CFDataCreate(kCFAllocatorDefault, key.publicKey, key.publicKey.count) }

// Items of the keychain, for the check alone: /ksecclass, /ksecclassgenericpassword, /ksecattrservice, /ksecattraccount,
// /ksecreturndata, /secitemcopymatching(_:_:)
#if !os(Linux)
    public let kSecClass = CFString("class")
    public let kSecClassGenericPassword = CFString("genp")
    public let kSecAttrService = CFString("svce")
    public let kSecAttrAccount = CFString("acct")
    public let kSecReturnData = CFString("data")

    public func SecItemCopyMatching(_ query: CFDictionary, _ result: UnsafeMutablePointer<CFTypeRef?>?) -> OSStatus {
        0
    }
#endif

public let kSecImportExportPassphrase = CFString("passphrase")
// Since macOS 15 and iOS 18.
public let kSecImportToMemoryOnly = CFString("memory")
public let kSecImportItemIdentity = CFString("identity")
public let kSecImportItemCertChain = CFString("chain")

public func SecPKCS12Import(
    _ pkcs12_data: CFData, _ options: CFDictionary, _ items: UnsafeMutablePointer<CFArray?>
) -> OSStatus {
    fake { $0.importPKCS12(pkcs12_data, options, items) }
}

// MARK: Protocol options: /sec_protocol_options_t, /sec_protocol_metadata_t, /sec_identity_t, /sec_trust_t

public protocol OS_sec_protocol_options: AnyObject, Sendable {}
public protocol OS_sec_protocol_metadata: AnyObject {}
public protocol OS_sec_identity: AnyObject {}
public protocol OS_sec_trust: AnyObject {}
public typealias sec_protocol_options_t = any OS_sec_protocol_options
public typealias sec_protocol_metadata_t = any OS_sec_protocol_metadata
public typealias sec_identity_t = any OS_sec_identity
public typealias sec_trust_t = any OS_sec_trust

// /tls_protocol_version_t
public enum tls_protocol_version_t: UInt16, Sendable {
    case TLSv10 = 0x0301
    case TLSv11 = 0x0302
    case TLSv12 = 0x0303
    case TLSv13 = 0x0304
}

// /sec_protocol_verify_complete_t, /sec_protocol_verify_t, /sec_protocol_challenge_complete_t, /sec_protocol_challenge_t
public typealias sec_protocol_verify_complete_t = (Bool) -> Void
public typealias sec_protocol_verify_t = (
    sec_protocol_metadata_t, sec_trust_t, @escaping sec_protocol_verify_complete_t
) -> Void
public typealias sec_protocol_challenge_complete_t = (sec_identity_t?) -> Void
public typealias sec_protocol_challenge_t = (
    sec_protocol_metadata_t, @escaping sec_protocol_challenge_complete_t
) -> Void

/// What stands behind a `sec_protocol_options_t` here.
package final class FakeProtocolOptions: OS_sec_protocol_options, @unchecked Sendable {
    // Sendable because all is set before the connection starts.
    package var serverName: String?
    package var maximumVersion: tls_protocol_version_t?
    package var ciphers: [UInt16] = []
    package var preSharedKey: (key: [UInt8], identity: [UInt8])?
    package var asksForStatus = false
    package var minimumVersion = tls_protocol_version_t.TLSv12
    package var applicationProtocols: [String] = []
    package var resumes = true
    package var identity: FakeIdentity?
    package var verify: (block: sec_protocol_verify_t, queue: DispatchQueue)?
    package var challenge: (block: sec_protocol_challenge_t, queue: DispatchQueue)?
    package init() {}
}
package final class FakeMetadata: OS_sec_protocol_metadata {
    package var version = tls_protocol_version_t.TLSv12
    package init() {}
}
package final class FakeTrustReference: OS_sec_trust {
    package let trust: SecTrust
    package init(_ trust: SecTrust) { self.trust = trust }
}
package final class FakeIdentity: OS_sec_identity {
    package let identity: SecIdentity
    package let chain: [SecCertificate]
    package init(_ identity: SecIdentity, _ chain: [SecCertificate]) {
        self.identity = identity
        self.chain = chain
    }
}

private func options(_ options: sec_protocol_options_t) -> FakeProtocolOptions { options as! FakeProtocolOptions }

// /sec_protocol_options_set_tls_server_name(_:_:)
public func sec_protocol_options_set_tls_server_name(
    _ options: sec_protocol_options_t, _ server_name: UnsafePointer<CChar>
) { Security.options(options).serverName = String(cString: server_name) }

// /sec_protocol_options_add_tls_application_protocol(_:_:)
public func sec_protocol_options_add_tls_application_protocol(
    _ options: sec_protocol_options_t, _ application_protocol: UnsafePointer<CChar>
) { Security.options(options).applicationProtocols.append(String(cString: application_protocol)) }

// /sec_protocol_options_set_min_tls_protocol_version(_:_:)
public func sec_protocol_options_set_min_tls_protocol_version(
    _ options: sec_protocol_options_t, _ version: tls_protocol_version_t
) { Security.options(options).minimumVersion = version }

// /sec_protocol_options_set_max_tls_protocol_version(_:_:)
public func sec_protocol_options_set_max_tls_protocol_version(
    _ options: sec_protocol_options_t, _ version: tls_protocol_version_t
) { Security.options(options).maximumVersion = version }

// /sec_protocol_options_set_tls_ocsp_enabled(_:_:)
public func sec_protocol_options_set_tls_ocsp_enabled(_ options: sec_protocol_options_t, _ ocsp_enabled: Bool) {
    Security.options(options).asksForStatus = ocsp_enabled
}

// /tls_ciphersuite_t, /sec_protocol_options_append_tls_ciphersuite(_:_:)
public struct tls_ciphersuite_t: RawRepresentable, Sendable {
    public let rawValue: UInt16
    public init?(rawValue: UInt16) { self.rawValue = rawValue }
}
public func sec_protocol_options_append_tls_ciphersuite(
    _ options: sec_protocol_options_t, _ ciphersuite: tls_ciphersuite_t
) { Security.options(options).ciphers.append(ciphersuite.rawValue) }

// /sec_protocol_options_add_pre_shared_key(_:_:_:), which takes what DispatchData is bridged to
#if os(Linux)
    public typealias BridgedData = DispatchData
    extension DispatchData {
        public func _bridgeToObjectiveC() -> DispatchData { self }
    }
#else
    public typealias BridgedData = __DispatchData
#endif
public func sec_protocol_options_add_pre_shared_key(
    _ options: sec_protocol_options_t, _ psk: BridgedData, _ psk_identity: BridgedData
) { Security.options(options).preSharedKey = (Array(psk), Array(psk_identity)) }

// /sec_protocol_options_set_tls_resumption_enabled(_:_:)
public func sec_protocol_options_set_tls_resumption_enabled(
    _ options: sec_protocol_options_t, _ resumption_enabled: Bool
) { Security.options(options).resumes = resumption_enabled }

// /sec_protocol_options_set_verify_block(_:_:_:)
public func sec_protocol_options_set_verify_block(
    _ options: sec_protocol_options_t, _ verify_block: @escaping sec_protocol_verify_t,
    _ verify_block_queue: DispatchQueue
) { Security.options(options).verify = (verify_block, verify_block_queue) }

// /sec_protocol_options_set_challenge_block(_:_:_:)
public func sec_protocol_options_set_challenge_block(
    _ options: sec_protocol_options_t, _ challenge_block: @escaping sec_protocol_challenge_t,
    _ challenge_queue: DispatchQueue
) { Security.options(options).challenge = (challenge_block, challenge_queue) }

// /sec_trust_copy_ref(_:)
public func sec_trust_copy_ref(_ trust: sec_trust_t) -> Unmanaged<SecTrust> {
    .passRetained((trust as! FakeTrustReference).trust)
}

// /sec_identity_create(_:), /sec_identity_create_with_certificates(_:_:)
public func sec_identity_create(_ identity: SecIdentity) -> sec_identity_t? { FakeIdentity(identity, []) }
public func sec_identity_create_with_certificates(_ identity: SecIdentity, _ certificates: CFArray) -> sec_identity_t? {
    FakeIdentity(identity, Security.certificates(certificates))
}

// /sec_protocol_metadata_get_negotiated_tls_protocol_version(_:)
public func sec_protocol_metadata_get_negotiated_tls_protocol_version(
    _ metadata: sec_protocol_metadata_t
) -> tls_protocol_version_t { (metadata as! FakeMetadata).version }

/// The behaviour, which only Linux has.
private func fake<Result>(_ body: (FakeSecurity) -> Result) -> Result { body(FakeSecurity()) }

#if !os(Linux)
    struct FakeSecurity {
        func certificate(_ data: CFData) -> SecCertificate? { nil }
        func subjectSummary(_ certificate: SecCertificate) -> CFString? { nil }
        func name(_ certificate: SecCertificate, ofIssuer: Bool) -> CFData? { nil }
        func evaluate(_ trust: SecTrust) -> OSStatus { errSecNotTrusted }
        func key(of identity: SecIdentity) -> SecKey? { nil }
        func key(of certificate: SecCertificate) -> SecKey? { nil }
        func importPKCS12(
            _ data: CFData, _ options: CFDictionary, _ items: UnsafeMutablePointer<CFArray?>
        ) -> OSStatus { errSecDecode }
    }
#endif
