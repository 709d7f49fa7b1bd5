extension OpenSSL {
    /// The oldest error that this thread's last call left, as number and words; the rest is dropped.
    func takeError() -> (code: UInt, text: String) {
        let code = errorGet()
        errorClear()
        return (code, errorReason(code).map { String(cString: $0) } ?? "no reason given")
    }

    /// What `print` writes into a memory BIO.
    func text(_ print: (Pointer?) -> Int32) -> String {
        let bio = bioNew(bioMemory())
        defer { _ = bioFree(bio) }
        guard print(bio) > 0 else { return "?" }
        var bytes = [UInt8](repeating: 0, count: min(bioPending(bio), 4096))
        let count = bioRead(bio, &bytes, Int32(bytes.count))
        return String(decoding: bytes.prefix(Int(max(0, count))), as: UTF8.self)
    }

    /// A distinguished name on one line, control characters escaped.
    func text(name: Pointer?) -> String {
        // XN_FLAG_RFC2253 without ASN1_STRFLGS_ESC_MSB, which would spell UTF-8 out in hexadecimal.
        text { printName($0, name, 0, 0x0111_0317 & ~0x4) }
    }

    func text(time: Pointer?) -> String {
        text { printTime($0, time) }
    }
}
