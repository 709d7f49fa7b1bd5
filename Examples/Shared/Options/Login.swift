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
        var lines = LineReader(file, name: "the password file")
        guard let line = try lines.next(), let text = String(validating: line.bytes, as: UTF8.self) else {
            throw DeviceFailure(.dataError, "the password file \(path.printable) holds no line of text")
        }
        return text
    }
}

extension String {
    var nonEmpty: String? { isEmpty ? nil : self }
}
