// swift-format-ignore-file: AlwaysUseLowerCamelCase, TypeNamesShouldBeCapitalized
// The used statuses. https://developer.apple.com/documentation/security/security-framework-result-codes and
// https://developer.apple.com/documentation/security/secure-transport-result-codes; values from SecBase.h and
// SecureTransport.h.

#if !os(Linux)
    @_exported public import Darwin
#endif

public var errSecSuccess: OSStatus { 0 }
public var errSecDecode: OSStatus { -26275 }
public var errSecAuthFailed: OSStatus { -25293 }
public var errSecPkcs12VerifyFailure: OSStatus { -25264 }
public var errSecHostNameMismatch: OSStatus { -67602 }
public var errSecInvalidExtendedKeyUsage: OSStatus { -67609 }
public var errSecUnsupportedKeySize: OSStatus { -67735 }
public var errSecInvalidDigestAlgorithm: OSStatus { -67815 }
public var errSecIncompleteCertRevocationCheck: OSStatus { -67635 }
public var errSecCertificateExpired: OSStatus { -67818 }
public var errSecCertificateNotValidYet: OSStatus { -67819 }
public var errSecCertificateRevoked: OSStatus { -67820 }
public var errSecCertificateValidityPeriodTooLong: OSStatus { -67901 }
public var errSecCreateChainFailed: OSStatus { -25318 }
public var errSecNotTrusted: OSStatus { -67843 }

public var errSSLProtocol: OSStatus { -9800 }
public var errSSLNegotiation: OSStatus { -9801 }
public var errSSLFatalAlert: OSStatus { -9802 }
public var errSSLClosedGraceful: OSStatus { -9805 }
public var errSSLClosedAbort: OSStatus { -9806 }
public var errSSLXCertChainInvalid: OSStatus { -9807 }
public var errSSLBadCert: OSStatus { -9808 }
public var errSSLUnknownRootCert: OSStatus { -9812 }
public var errSSLNoRootCert: OSStatus { -9813 }
public var errSSLCertExpired: OSStatus { -9814 }
public var errSSLCertNotYetValid: OSStatus { -9815 }
public var errSSLClosedNoNotify: OSStatus { -9816 }
public var errSSLPeerBadRecordMac: OSStatus { -9820 }
public var errSSLPeerHandshakeFail: OSStatus { -9824 }
public var errSSLPeerBadCert: OSStatus { -9825 }
public var errSSLPeerUnsupportedCert: OSStatus { -9826 }
public var errSSLPeerCertRevoked: OSStatus { -9827 }
public var errSSLPeerCertExpired: OSStatus { -9828 }
public var errSSLPeerCertUnknown: OSStatus { -9829 }
public var errSSLIllegalParam: OSStatus { -9830 }
public var errSSLPeerUnknownCA: OSStatus { -9831 }
public var errSSLPeerAccessDenied: OSStatus { -9832 }
public var errSSLPeerDecryptError: OSStatus { -9834 }
public var errSSLPeerProtocolVersion: OSStatus { -9836 }
public var errSSLPeerInsufficientSecurity: OSStatus { -9837 }
public var errSSLHostNameMismatch: OSStatus { -9843 }
public var errSSLUnexpectedRecord: OSStatus { -9849 }
public var errSSLCertificateRequired: OSStatus { -9863 }
public var errSSLUnknownPSKIdentity: OSStatus { -9864 }
public var errSSLUnrecognizedName: OSStatus { -9865 }
