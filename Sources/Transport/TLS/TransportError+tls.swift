extension TransportError.Code {
    /// OpenSSL 3 is not on this machine; the message says what to install.
    public static let tlsUnavailable = Self(name: "tlsUnavailable")
    /// The TLS options cannot be used: an unreadable file, a key that does not belong to its certificate.
    public static let tlsConfiguration = Self(name: "tlsConfiguration")
    /// The TLS handshake or the encrypted stream failed for a reason that has no code of its own.
    public static let tlsFailed = Self(name: "tlsFailed")
    /// The server does not speak TLS at this port.
    public static let notTLS = Self(name: "notTLS")
    /// There is no version of TLS that both sides allow; this one allows 1.2 and 1.3.
    public static let tlsVersion = Self(name: "tlsVersion")
    /// The stream ended without TLS's good-bye: somebody may have cut it.
    public static let tlsTruncated = Self(name: "tlsTruncated")
    /// The server's certificate, or one above it, is past its last day.
    public static let certificateExpired = Self(name: "certificateExpired")
    /// The server's certificate, or one above it, is before its first day.
    public static let certificateNotYetValid = Self(name: "certificateNotYetValid")
    /// No trusted authority has signed the server's certificate.
    public static let certificateUntrusted = Self(name: "certificateUntrusted")
    /// The server's certificate is signed by itself and not trusted.
    public static let certificateSelfSigned = Self(name: "certificateSelfSigned")
    /// The server's certificate is for other names.
    public static let certificateNameMismatch = Self(name: "certificateNameMismatch")
    /// The server's certificate is unfit for another reason.
    public static let certificateInvalid = Self(name: "certificateInvalid")
    /// The server wants a certificate of the client, and there is none or it did not like it.
    public static let clientCertificateRefused = Self(name: "clientCertificateRefused")
}

extension TransportError.Code {
    /// Whether the options or the machine have to change before another attempt makes sense.
    package var isConfigurationMistake: Bool {
        self == .badURL || self == .tlsUnavailable || self == .tlsConfiguration || self == .proxyCredentialsRefused
    }
}
