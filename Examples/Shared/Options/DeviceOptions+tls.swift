package import Transport

extension DeviceOptions {
    /// What `--ca`, `--cert`, `--key` and `--insecure` say, in the library's words.
    package var tls: TLSOptions {
        var options = TLSOptions()
        if let certificateAuthorities { options.trust = .authorities([.file(certificateAuthorities)]) }
        if let certificate, let key {
            options.identity = TLSIdentity(certificates: .file(certificate), key: .file(key))
        }
        if isInsecure { options.verification = .unsafeAcceptAnyCertificate }
        return options
    }
}
