// swift-format-ignore-file: AlwaysUseLowerCamelCase, TypeNamesShouldBeCapitalized

#if os(Linux)
    import Glibc

    /// The functions of the system's OpenSSL 3 behind the fakes, found by name when they are called.
    package enum FakeOpenSSL {
        package typealias Pointer = OpaquePointer
        nonisolated(unsafe) private static let library = dlopen("libssl.so.3", RTLD_NOW)

        package static func function<Function>(_ name: String, as type: Function.Type = Function.self) -> Function {
            guard let address = dlsym(library, name) else { fatalError("the fake needs OpenSSL 3: \(name)") }
            return unsafeBitCast(address, to: Function.self)
        }

        package static let certificateFree: @convention(c) (Pointer?) -> Void = function("X509_free")
        package static let keyFree: @convention(c) (Pointer?) -> Void = function("EVP_PKEY_free")
        package static let stackCount: @convention(c) (Pointer?) -> Int32 = function("OPENSSL_sk_num")
        package static let stackValue: @convention(c) (Pointer?, Int32) -> Pointer? = function("OPENSSL_sk_value")
        private static let decodeCertificate:
            @convention(c) (Pointer?, UnsafeMutablePointer<UnsafePointer<UInt8>?>?, Int) -> Pointer? =
                function("d2i_X509")
        private static let decodeKey:
            @convention(c) (Pointer?, UnsafeMutablePointer<UnsafePointer<UInt8>?>?, Int) -> Pointer? =
                function("d2i_AutoPrivateKey")
        package typealias Encoder =
            @convention(c) (Pointer?, UnsafeMutablePointer<UnsafeMutablePointer<UInt8>?>?) -> Int32

        /// The caller frees it.
        package static func certificate(_ der: [UInt8]) -> Pointer? { decoded(der, decodeCertificate) }
        /// The caller frees it.
        package static func key(_ der: [UInt8]) -> Pointer? { decoded(der, decodeKey) }

        private static func decoded(
            _ der: [UInt8],
            _ decode: @convention(c) (Pointer?, UnsafeMutablePointer<UnsafePointer<UInt8>?>?, Int) -> Pointer?
        ) -> Pointer? {
            der.withUnsafeBufferPointer { bytes in
                var start = bytes.baseAddress
                return decode(nil, &start, bytes.count)
            }
        }

        /// What one of the `i2d_…` functions writes.
        package static func der(_ object: Pointer?, _ encoder: String) -> [UInt8] {
            let encode: Encoder = function(encoder)
            let count = encode(object, nil)
            guard count > 0 else { return [] }
            return [UInt8](unsafeUninitializedCapacity: Int(count)) { buffer, initialized in
                var start = buffer.baseAddress
                initialized = Int(max(0, encode(object, &start)))
            }
        }

        package static func der(certificate: Pointer?) -> [UInt8] { der(certificate, "i2d_X509") }
    }
#endif
