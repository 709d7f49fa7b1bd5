package import Messaging

extension DeviceOptions {
    /// What every broker is shown; nil if nothing is, or if each has its own in its URL.
    package var credentials: Credentials? {
        guard let first = logins.first, logins.allSatisfy({ $0 == first }), let user = first.user else { return nil }
        return Credentials(userName: user, password: first.password)
    }

    /// The URLs for the client. Where the brokers are shown different credentials, each URL holds its own.
    package var brokerURLs: [String] {
        guard logins.contains(where: { $0 != logins.first }) else { return brokers.map(\.url) }
        return zip(brokers, logins).map { broker, login in
            guard let user = login.user, let slashes = broker.url.firstRange(of: "://") else { return broker.url }
            let password = login.password.map { ":" + Self.escaped($0) } ?? ""
            return broker.url[..<slashes.upperBound] + Self.escaped(user) + password + "@"
                + broker.url[slashes.upperBound...]
        }
    }

    /// Percent-encoded for the user information of a URL.
    private static func escaped(_ text: String) -> String {
        text.utf8.map { byte in
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F, 0x7E: String(UnicodeScalar(byte))
            default: "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
            }
        }.joined()
    }
}
