// swift-format-ignore-file: AlwaysUseLowerCamelCase, TypeNamesShouldBeCapitalized
// The used part of Apple's CommonCrypto, as Swift sees it: CommonCryptor.h, CommonDigest.h, CommonHMAC.h and
// CommonKeyDerivation.h.
//
// `.ci/check-apple` type-checks against it. With MESSAGING_FAKE_APPLE=1 it is built on Linux, where OpenSSL does the work. On
// Apple's systems it does not exist.

#if os(Linux)
    import Security
#endif

public typealias CCOperation = UInt32
public typealias CCAlgorithm = UInt32
public typealias CCOptions = UInt32
public typealias CCStatus = Int32
public typealias CCCryptorStatus = Int32
public typealias CCHmacAlgorithm = UInt32
public typealias CCPBKDFAlgorithm = UInt32
public typealias CCPseudoRandomAlgorithm = UInt32
public typealias CC_LONG = UInt32

// Constants of enumerations without a name.
public var kCCSuccess: Int { 0 }
public var kCCDecodeError: Int { -4304 }
public var kCCEncrypt: Int { 0 }
public var kCCDecrypt: Int { 1 }
public var kCCAlgorithmAES: Int { 0 }
public var kCCAlgorithm3DES: Int { 2 }
public var kCCOptionPKCS7Padding: Int { 1 }
public var kCCKeySizeAES128: Int { 16 }
public var kCCKeySizeAES192: Int { 24 }
public var kCCKeySizeAES256: Int { 32 }
public var kCCKeySize3DES: Int { 24 }
public var kCCBlockSizeAES128: Int { 16 }
public var kCCBlockSize3DES: Int { 8 }
public var kCCHmacAlgSHA256: Int { 2 }
public var kCCPBKDF2: Int { 2 }
public var kCCPRFHmacAlgSHA1: Int { 1 }
public var kCCPRFHmacAlgSHA224: Int { 2 }
public var kCCPRFHmacAlgSHA256: Int { 3 }
public var kCCPRFHmacAlgSHA384: Int { 4 }
public var kCCPRFHmacAlgSHA512: Int { 5 }
public var CC_SHA256_DIGEST_LENGTH: Int32 { 32 }

public func CCCrypt(
    _ op: CCOperation, _ alg: CCAlgorithm, _ options: CCOptions, _ key: UnsafeRawPointer!, _ keyLength: Int,
    _ iv: UnsafeRawPointer!, _ dataIn: UnsafeRawPointer!, _ dataInLength: Int, _ dataOut: UnsafeMutableRawPointer!,
    _ dataOutAvailable: Int, _ dataOutMoved: UnsafeMutablePointer<Int>!
) -> CCCryptorStatus {
    #if os(Linux)
        typealias Pointer = OpaquePointer
        let make: @convention(c) () -> Pointer? = FakeOpenSSL.function("EVP_CIPHER_CTX_new")
        let free: @convention(c) (Pointer?) -> Void = FakeOpenSSL.function("EVP_CIPHER_CTX_free")
        let begin: @convention(c) (Pointer?, Pointer?, Pointer?, UnsafeRawPointer?, UnsafeRawPointer?, Int32) -> Int32 =
            FakeOpenSSL.function("EVP_CipherInit_ex")
        let update:
            @convention(c) (
                Pointer?, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int32>?, UnsafeRawPointer?, Int32
            ) -> Int32 = FakeOpenSSL.function("EVP_CipherUpdate")
        let end: @convention(c) (Pointer?, UnsafeMutableRawPointer?, UnsafeMutablePointer<Int32>?) -> Int32 =
            FakeOpenSSL.function("EVP_CipherFinal_ex")
        let name = alg == UInt32(kCCAlgorithm3DES) ? "EVP_des_ede3_cbc" : "EVP_aes_\(keyLength * 8)_cbc"
        let cipher: @convention(c) () -> Pointer? = FakeOpenSSL.function(name)
        // One block more than the content is what the padding may take.
        let blockSize = alg == UInt32(kCCAlgorithm3DES) ? kCCBlockSize3DES : kCCBlockSizeAES128
        let paramError = Int32(-4300)
        guard options == UInt32(kCCOptionPKCS7Padding), dataOutAvailable >= dataInLength + blockSize else {
            return paramError
        }
        let context = make()
        defer { free(context) }
        var (moved, last) = (Int32(0), Int32(0))
        guard begin(context, cipher(), nil, key, iv, op == UInt32(kCCEncrypt) ? 1 : 0) == 1,
            update(context, dataOut, &moved, dataIn, Int32(dataInLength)) == 1,
            end(context, dataOut + Int(moved), &last) == 1
        else { return Int32(kCCDecodeError) }
        dataOutMoved.pointee = Int(moved + last)
        return Int32(kCCSuccess)
    #else
        0
    #endif
}

public func CCKeyDerivationPBKDF(
    _ algorithm: CCPBKDFAlgorithm, _ password: UnsafePointer<CChar>!, _ passwordLen: Int,
    _ salt: UnsafePointer<UInt8>!, _ saltLen: Int, _ prf: CCPseudoRandomAlgorithm, _ rounds: UInt32,
    _ derivedKey: UnsafeMutablePointer<UInt8>!, _ derivedKeyLen: Int
) -> CCStatus {
    #if os(Linux)
        let derive:
            @convention(c) (
                UnsafePointer<CChar>?, Int32, UnsafePointer<UInt8>?, Int32, Int32, OpaquePointer?, Int32,
                UnsafeMutablePointer<UInt8>?
            ) -> Int32 = FakeOpenSSL.function("PKCS5_PBKDF2_HMAC")
        let names = ["EVP_sha1", "EVP_sha224", "EVP_sha256", "EVP_sha384", "EVP_sha512"]
        let hash: @convention(c) () -> OpaquePointer? = FakeOpenSSL.function(names[Int(prf) - 1])
        let result = derive(
            password, Int32(passwordLen), salt, Int32(saltLen), Int32(rounds), hash(), Int32(derivedKeyLen), derivedKey)
        return result == 1 ? Int32(kCCSuccess) : -4300
    #else
        0
    #endif
}

public func CCHmac(
    _ algorithm: CCHmacAlgorithm, _ key: UnsafeRawPointer!, _ keyLength: Int, _ data: UnsafeRawPointer!,
    _ dataLength: Int, _ macOut: UnsafeMutableRawPointer!
) {
    #if os(Linux)
        let hash: @convention(c) () -> OpaquePointer? = FakeOpenSSL.function("EVP_sha256")
        let run:
            @convention(c) (
                OpaquePointer?, UnsafeRawPointer?, Int32, UnsafeRawPointer?, Int, UnsafeMutableRawPointer?,
                UnsafeMutablePointer<UInt32>?
            ) -> UnsafeMutableRawPointer? = FakeOpenSSL.function("HMAC")
        precondition(algorithm == UInt32(kCCHmacAlgSHA256))
        _ = run(hash(), key, Int32(keyLength), data, dataLength, macOut, nil)
    #endif
}

@discardableResult
public func CC_SHA256(
    _ data: UnsafeRawPointer!, _ len: CC_LONG, _ md: UnsafeMutablePointer<UInt8>!
) -> UnsafeMutablePointer<UInt8>! {
    #if os(Linux)
        let run: @convention(c) (UnsafeRawPointer?, Int, UnsafeMutablePointer<UInt8>?) -> UnsafeMutablePointer<UInt8>? =
            FakeOpenSSL.function("SHA256")
        return run(data, Int(len), md)
    #else
        md
    #endif
}
