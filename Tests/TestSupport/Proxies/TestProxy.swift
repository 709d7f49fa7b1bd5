/// A real proxy on a loopback port: tinyproxy for HTTP's CONNECT, microsocks for SOCKS5.
public final class TestProxy: Sendable {
    public enum Kind: String, Sendable, CaseIterable {
        case tinyproxy, microsocks
    }

    public let kind: Kind
    public let port: Int
    /// Who may use it; nil for everybody.
    public let user: BrokerUser?
    private let process: ChildProcess
    private let scratch: ScratchDirectory

    /// - Parameter ports: the only ones that tinyproxy connects to; none for all.
    public static func start(_ kind: Kind, user: BrokerUser? = nil, ports: [Int] = []) async throws -> TestProxy {
        let scratch = try ScratchDirectory(kind.rawValue)
        let port = FreePort.next()
        let command: Command
        switch kind {
        case .tinyproxy:
            var lines = ["Port \(port)", "Listen 127.0.0.1", "Timeout 60", "MaxClients 50", "Allow 127.0.0.1"]
            if let user { lines.append("BasicAuth \(user.name) \(user.password)") }
            lines += ports.map { "ConnectPort \($0)" }
            let file = try scratch.write(lines.joined(separator: "\n") + "\n", to: "tinyproxy.conf")
            try scratch.giveTo(user: "tinyproxy")
            command = Command("tinyproxy", ["-d", "-c", file], directory: scratch.path, user: "tinyproxy")
        case .microsocks:
            let login = user.map { ["-u", $0.name, "-P", $0.password] } ?? []
            command = Command("microsocks", ["-i", "127.0.0.1", "-p", "\(port)"] + login, directory: scratch.path)
        }
        let process = try await ChildProcess.start(command)
        let listening = await eventually { (try? await RawConnection.open(port: port)) != nil }
        guard listening else { throw TimeoutError("\(kind.rawValue) does not listen; \(process.report)") }
        return TestProxy(kind, port, user, process, scratch)
    }

    private init(
        _ kind: Kind, _ port: Int, _ user: BrokerUser?, _ process: ChildProcess, _ scratch: ScratchDirectory
    ) {
        self.kind = kind
        self.port = port
        self.user = user
        self.process = process
        self.scratch = scratch
    }

    /// With the login of whoever may use it, unless another one is given.
    public func url(as other: BrokerUser? = nil) -> String {
        let login = (other ?? user).map { "\($0.name):\($0.password)@" } ?? ""
        return "\(kind == .tinyproxy ? "http" : "socks5")://\(login)127.0.0.1:\(port)"
    }

    /// Without a login.
    public var anonymousURL: String { "\(kind == .tinyproxy ? "http" : "socks5")://127.0.0.1:\(port)" }

    public func stop() async { await process.stop() }
}
