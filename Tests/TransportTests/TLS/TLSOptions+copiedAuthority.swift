import Foundation
import TestSupport
import Transport

extension TLSOptions {
    /// Options of OpenSSL that trust a copy of the authority's certificate, which a test can replace.
    ///
    /// - Parameter file: where the copy is made.
    static func trustingCopy(of certificates: Certificates, at file: String) throws -> TLSOptions {
        try FileManager.default.copyItem(atPath: certificates.authority.certificate, toPath: file)
        var options = TLSOptions()
        options.trust = .authorities([.file(file)])
        options.implementation = .openSSL
        return options
    }
}
