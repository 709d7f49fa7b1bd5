import TestSupport
import Testing

@testable import Transport

/// The pin of a certificate's key, calculated by OpenSSL from the parsed certificate: not as the product does.
func publicKeyPin(_ path: String) throws -> String {
    typealias Pointer = OpaquePointer
    let library = try OpenSSLLibrary.open(OpenSSLLibrary.usualNames)
    let openSSL = try OpenSSL.load(path: nil)
    let certificates = try PEMReader(openSSL: openSSL).certificates(.file(path), "certificate")
    defer { openSSL.free(certificates) }
    let key: @convention(c) (Pointer?) -> Pointer? = try library.function("X509_get0_pubkey")
    let encode: @convention(c) (Pointer?, UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32 =
        try library.function("i2d_PUBKEY")
    let publicKey = key(certificates[0])
    var bytes = [UInt8](repeating: 0, count: Int(encode(publicKey, nil)))
    bytes.withUnsafeMutableBufferPointer { buffer in
        var start = buffer.baseAddress
        _ = encode(publicKey, &start)
    }
    return base64(openSSL.digest(of: bytes))
}

private func base64(_ bytes: [UInt8]) -> String {
    let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
    var (text, rest) = ("", bytes[...])
    while !rest.isEmpty {
        let group = Array(rest.prefix(3)) + [0, 0]
        let value = Int(group[0]) << 16 | Int(group[1]) << 8 | Int(group[2])
        for index in 0..<4 {
            text.append(index <= min(rest.count, 3) ? digits[value >> (18 - 6 * index) & 63] : "=")
        }
        rest = rest.dropFirst(3)
    }
    return text
}
