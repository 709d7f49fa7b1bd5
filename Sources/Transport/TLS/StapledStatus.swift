/// The response of a certificate's authority that a server staples to its handshake: OCSP (RFC 6960) by RFC 6066.
// Every `unsafe` in this file passes OpenSSL what it has made, or bytes of a connection that lives as long as the call; what a
// function makes it frees.
@safe
struct StapledStatus {
    private typealias Pointer = OpaquePointer
    private typealias Free = @convention(c) (Pointer?) -> Void

    private let openSSL: OpenSSL
    private let verifiedChain: @convention(c) (Pointer?) -> Pointer?
    private let decode: @convention(c) (Pointer?, UnsafeMutablePointer<OpenSSL.Bytes?>?, Int) -> Pointer?
    private let free: Free
    private let responseStatus: @convention(c) (Pointer?) -> Int32
    private let basicResponse: @convention(c) (Pointer?) -> Pointer?
    private let basicFree: Free
    private let verify: @convention(c) (Pointer?, Pointer?, Pointer?, UInt) -> Int32
    private let identifier: @convention(c) (Pointer?, Pointer?, Pointer?) -> Pointer?
    private let identifierFree: Free
    private let find:
        @convention(c) (
            Pointer?, Pointer?, UnsafeMutablePointer<Int32>?, UnsafeMutablePointer<Int32>?,
            UnsafeMutablePointer<Pointer?>?, UnsafeMutablePointer<Pointer?>?, UnsafeMutablePointer<Pointer?>?
        ) -> Int32
    private let checkDates: @convention(c) (Pointer?, Pointer?, Int, Int) -> Int32
    private let reasonText: @convention(c) (Int) -> OpenSSL.Chars?
    private let sha1: @convention(c) () -> Pointer?
    private let sha256: @convention(c) () -> Pointer?
    private let storeNew: @convention(c) () -> Pointer?
    private let storeFree: Free
    private let storeSetFlags: @convention(c) (Pointer?, UInt) -> Int32
    private let stackNew: @convention(c) () -> Pointer?
    private let stackPush: @convention(c) (Pointer?, Pointer?) -> Int32

    /// - Throws: `tlsUnavailable` for an OpenSSL without OCSP.
    init(_ openSSL: OpenSSL) throws(TransportError) {
        let library = openSSL.library
        self.openSSL = openSSL
        // The types above are those of the functions in C, by their manual pages.
        try unsafe verifiedChain = library.function("SSL_get0_verified_chain")
        try unsafe decode = library.function("d2i_OCSP_RESPONSE")
        try unsafe free = library.function("OCSP_RESPONSE_free")
        try unsafe responseStatus = library.function("OCSP_response_status")
        try unsafe basicResponse = library.function("OCSP_response_get1_basic")
        try unsafe basicFree = library.function("OCSP_BASICRESP_free")
        try unsafe verify = library.function("OCSP_basic_verify")
        try unsafe identifier = library.function("OCSP_cert_to_id")
        try unsafe identifierFree = library.function("OCSP_CERTID_free")
        try unsafe find = library.function("OCSP_resp_find_status")
        try unsafe checkDates = library.function("OCSP_check_validity")
        try unsafe reasonText = library.function("OCSP_crl_reason_str")
        try unsafe sha1 = library.function("EVP_sha1")
        try unsafe sha256 = library.function("EVP_sha256")
        try unsafe storeNew = library.function("X509_STORE_new")
        try unsafe storeFree = library.function("X509_STORE_free")
        try unsafe storeSetFlags = library.function("X509_STORE_set_flags")
        try unsafe stackNew = library.function("OPENSSL_sk_new_null")
        try unsafe stackPush = library.function("OPENSSL_sk_push")
    }

    /// Why the server is refused; nil if it is not.
    ///
    /// - Parameters:
    ///   - connection: whose chain of certificates has been verified.
    ///   - isRequired: whether a server that staples nothing is refused.
    func rejection(_ connection: OpaquePointer?, isRequired: Bool, peerName: String) -> TransportError? {
        let getResponse: Int32 = 70
        var start: OpenSSL.Bytes?
        let count = unsafe withUnsafeMutablePointer(to: &start) { start in
            unsafe openSSL.control(connection, getResponse, 0, UnsafeMutableRawPointer(start))
        }
        guard unsafe start != nil, count > 0 else {
            return isRequired ? TLSFailure.statusUnknown(peerName, "the server staples no response") : nil
        }
        openSSL.errorClear()
        defer { openSSL.errorClear() }
        guard let response = unsafe decode(nil, &start, count) else {
            return TLSFailure.statusUnknown(peerName, "the response that the server staples is damaged")
        }
        defer { unsafe free(response) }
        let status = unsafe responseStatus(response)
        guard status == 0, let basic = unsafe basicResponse(response) else {
            return TLSFailure.statusUnknown(peerName, "its authority answered with an error (\(status))")
        }
        defer { unsafe basicFree(basic) }
        let chain = unsafe verifiedChain(connection)
        guard unsafe openSSL.stackCount(chain) > 0, let certificate = unsafe openSSL.stackValue(chain, 0) else {
            return TLSFailure.statusUnknown(peerName, "its certificate was not verified")
        }
        // A certificate that is trusted itself has no other issuer here.
        let issuer = unsafe openSSL.stackCount(chain) > 1 ? openSSL.stackValue(chain, 1) : certificate
        guard unsafe isSigned(basic, by: issuer) else {
            return TLSFailure.statusUnknown(
                peerName,
                "the stapled response is not signed by the certificate's authority (\(openSSL.takeError().text))")
        }
        return unsafe judge(basic, certificate, issuer, peerName)
    }

    /// Whether the issuer has signed the response, or a responder whose certificate the issuer has signed for that (RFC 6960
    /// section 4.2.2.2).
    private func isSigned(_ basic: OpaquePointer, by issuer: OpaquePointer?) -> Bool {
        // The issuer has been verified: here it is the only authority, and need not be a root.
        let (partialChain, noExplicitTrust) = (UInt(0x80000), UInt(0x20))
        let (store, stack) = unsafe (storeNew(), stackNew())
        defer {
            unsafe storeFree(store)
            unsafe openSSL.stackFree(stack)
        }
        guard unsafe openSSL.storeAdd(store, issuer) == 1, unsafe storeSetFlags(store, partialChain) == 1,
            unsafe stackPush(stack, issuer) > 0
        else { return false }
        return unsafe verify(basic, stack, store, noExplicitTrust) == 1
    }

    private func judge(
        _ basic: OpaquePointer, _ certificate: OpaquePointer, _ issuer: OpaquePointer?, _ peerName: String
    ) -> TransportError? {
        // The two digests by which authorities name a certificate in a response.
        let digests = unsafe [sha1(), sha256()]
        for index in unsafe digests.indices {
            guard let name = unsafe identifier(digests[index], certificate, issuer) else { continue }
            defer { unsafe identifierFree(name) }
            var (status, reason) = (Int32(-1), Int32(-1))
            var (revoked, begin, end): (OpaquePointer?, OpaquePointer?, OpaquePointer?) = (nil, nil, nil)
            guard unsafe find(basic, name, &status, &reason, &revoked, &begin, &end) == 1 else { continue }
            let (good, isRevoked, tolerance) = (Int32(0), Int32(1), 300)
            // Also in a response that is too old: what was revoked stays so.
            if status == isRevoked {
                let time = unsafe revoked == nil ? "" : " on \(openSSL.text(time: revoked))"
                let cause = unsafe reason < 0 ? nil : reasonText(Int(reason)).map { unsafe " (\(String(cString: $0)))" }
                return TLSFailure.revoked(peerName, time + (cause ?? ""))
            }
            guard status == good else {
                return TLSFailure.statusUnknown(peerName, "its authority does not know it")
            }
            // Without an end the response could be stapled for ever.
            guard unsafe end != nil, unsafe checkDates(begin, end, tolerance, -1) == 1 else {
                return TLSFailure.statusUnknown(
                    peerName,
                    unsafe end == nil
                        ? "the stapled response has no last day"
                        : "the stapled response is valid from \(openSSL.text(time: begin)) to \(openSSL.text(time: end))"
                )
            }
            return nil
        }
        return TLSFailure.statusUnknown(peerName, "the stapled response is about another certificate")
    }
}
