package import MessagingShell

/// User name and password, wherever they came from. Never printed: the description is masked.
package struct Login: Sendable, Equatable, CustomStringConvertible, CustomReflectable {
    package var user: String?
    package var password: String?

    /// An option beats the URL, and the URL beats the environment; each of the two is looked up by itself.
    ///
    /// - Parameter passwordOfFile: what `passwordOfFile(_:)` has returned.
    init(
        _ arguments: Arguments, broker: BrokerAddress?, passwordOfFile: String?, environment: [String: String]
    ) throws(DeviceFailure) {
        user = arguments.text(.user) ?? broker?.user ?? environment["MESSAGING_USER"]?.nonEmpty
        password = passwordOfFile ?? broker?.password ?? environment["MESSAGING_PASSWORD"]
        if user == nil, arguments.has(.passwordFile) {
            throw .usage("--password-file needs a user name: --user, MESSAGING_USER or the broker's URL")
        }
        if user == nil {
            password = nil
        }
    }

    package var description: String {
        user == nil ? "none" : password == nil ? "user name only" : "user name and password"
    }

    package var customMirror: Mirror { Mirror(self, children: [:]) }

    /// The password in the file that `--password-file` names, which may be a pipe that can be read only once; nil without
    /// the option.
    static func passwordOfFile(_ arguments: Arguments) throws(DeviceFailure) -> String? {
        guard let path = arguments.text(.passwordFile) else { return nil }
        let file = try InputFile(path: path)
        var lines = LineReader(file)
        guard let line = try lines.next(), line.bytes.count <= LineReader.limit,
            let text = String(validating: line.bytes, as: UTF8.self)
        else {
            throw DeviceFailure(.dataError, "the password file \(path.printable) holds no line of text")
        }
        return text
    }
}

extension String {
    var nonEmpty: String? { isEmpty ? nil : self }
}

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
