/// What a client sends in CONNECT.
public struct STOMPConnectOptions: Sendable, Hashable {
    /// How the headers of CONNECT are written. The broker is known only afterwards, so this is an option.
    public enum Escaping: Sendable, Hashable {
        /// As the specification requires.
        case never
        /// For RabbitMQ and ActiveMQ, which unescape CONNECT: needed where a login or passcode holds a backslash.
        case asRabbitMQReads
    }

    /// The versions offered; the server picks the highest it knows.
    public var versions: [STOMPVersion] = [.v10, .v11, .v12]
    /// The virtual host. Mandatory from 1.1 on, so it is always sent; never empty in practice.
    public var host = "localhost"
    public var login: String?
    public var passcode: String?
    public var clientID: String?
    /// What this side promises and asks, in milliseconds.
    public var heartBeat = STOMPHeartBeat.none
    /// More headers, in order, after those above. None of them may be one of those above, or `receipt`.
    public var headers: STOMPHeaders = [:]
    public var escaping = Escaping.never
    /// Whether the frame is called STOMP instead of CONNECT; servers of 1.0 know only the latter.
    public var usesSTOMPCommand = false

    public init() {}

    /// The whole frame. Throws if it cannot carry an option.
    func encoded() throws(STOMPUsageError) -> [UInt8] {
        guard !versions.isEmpty else {
            throw STOMPUsageError(.invalidOption, "No version is offered in CONNECT. Name at least one in `versions`.")
        }
        guard heartBeat.outgoing >= 0, heartBeat.incoming >= 0 else {
            throw STOMPUsageError(
                .invalidOption, "heartBeat is \(heartBeat); both numbers of milliseconds must not be negative.")
        }
        let own = [
            "accept-version", "host", "login", "passcode", "client-id", "heart-beat", "receipt", "content-length",
        ]
        for name in own where headers.contains(name) {
            throw STOMPUsageError(
                .reservedHeader,
                "\"\(name)\" cannot be among the further headers of CONNECT; use the option of that name, or leave it out."
            )
        }
        var lines: STOMPHeaders = [:]
        // A 1.0 server may know nothing of these two, and passes over what it does not know.
        lines.add("accept-version", Set(versions).sorted().map { $0.description }.joined(separator: ","))
        lines.add("host", host)
        if let login { lines.add("login", login) }
        if let passcode { lines.add("passcode", passcode) }
        if let clientID { lines.add("client-id", clientID) }
        if heartBeat != .none { lines.add("heart-beat", heartBeat.description) }
        lines.fields += headers.fields
        var encoder = STOMPEncoder()
        encoder.connectEscaping = escaping == .never ? .none : .v12
        var bytes: [UInt8] = []
        try encoder.encode(STOMPFrame(usesSTOMPCommand ? .stomp : .connect, headers: lines), into: &bytes)
        return bytes
    }

    /// What to do about credentials that the server refused.
    var credentialsHint: String {
        login == nil && passcode == nil
            ? " The client sent neither user name nor password: set credentials."
            : " Check user and password.\(backslashHint)"
    }

    /// A hint for the error of a refused connection: the server may have read other credentials than intended.
    var backslashHint: String {
        let hasBackslash = [login, passcode].contains { $0?.utf8.contains(UInt8(ascii: "\\")) ?? false }
        guard hasBackslash, escaping == .never else { return "" }
        return
            " The login or passcode holds a backslash, which RabbitMQ and ActiveMQ unescape although CONNECT is not escaped: set the connect option `escaping` to `asRabbitMQReads` for them."
    }
}

extension STOMPConnectOptions: CustomStringConvertible, CustomDebugStringConvertible {
    /// For people: login and passcode are not shown.
    public var description: String {
        let versions = versions.map { $0.description }.joined(separator: ",")
        let (login, passcode) = (login == nil ? "none" : "•••", passcode == nil ? "none" : "•••")
        return "versions \(versions), host \(host), login \(login), passcode \(passcode)"
    }

    public var debugDescription: String { description }
}
