/// The authorities that the system trusts, as OpenSSL finds them.
struct SystemAuthorities {
    private let openSSL: OpenSSL

    init(_ openSSL: OpenSSL) { self.openSSL = openSSL }

    #if os(Android)
        static let advice =
            "Add the authority to `trust` of the TLS options."

        /// Where they would be, if none is there.
        var missing: String? {
            Self.files(inFirstOf: Self.folders).isEmpty
                ? "nothing is in \(Self.folders.joined(separator: " and "))" : nil
        }
    #else
        static let advice =
            "Install the package ca-certificates, or name the authority's file in `trust` of the TLS options or in the environment variable SSL_CERT_FILE."

        /// Where they would be, if none is there: OpenSSL reports nothing of it.
        var missing: String? {
            guard let file = place("X509_get_default_cert_file", variable: "X509_get_default_cert_file_env"),
                let folders = place("X509_get_default_cert_dir", variable: "X509_get_default_cert_dir_env")
            else { return nil }
            return Self.missing(file: file, folders: folders)
        }

        /// The value of the environment's variable, or the path that the library was built with.
        private func place(_ path: String, variable: String) -> String? {
            // Their type in C, by their manual page; they return constants of the library.
            typealias Text = @convention(c) () -> OpenSSL.Chars?
            guard let path: Text = unsafe try? openSSL.library.function(path),
                let variable: Text = unsafe try? openSSL.library.function(variable)
            else { return nil }
            let name = unsafe variable().map { unsafe String(cString: $0) }
            return unsafe name.flatMap { System.environment($0) } ?? path().map { unsafe String(cString: $0) }
        }
    #endif

    /// - Parameter folders: with colons between them.
    static func missing(file: String, folders: String) -> String? {
        let folders = folders.split(separator: ":").map { String($0) }
        guard unsafe access(file, F_OK) != 0, folders.allSatisfy({ FileSystem.names(in: $0).isEmpty }) else {
            return nil
        }
        return "there is no \(file), and nothing in \(folders.joined(separator: " and "))"
    }

    /// Where Android has them, each in a file, from version 14 on in the first folder. OpenSSL does not find them by itself:
    /// the folder that it was built with is not on the device, and these files have names of a kind that it no longer reads.
    static let folders = ["/apex/com.android.conscrypt/cacerts", "/system/etc/security/cacerts"]

    /// The files of the first folder that has any.
    static func files(inFirstOf folders: [String]) -> [String] {
        folders.lazy.map { folder in FileSystem.names(in: folder).map { "\(folder)/\($0)" } }.first { !$0.isEmpty }
            ?? []
    }
}
