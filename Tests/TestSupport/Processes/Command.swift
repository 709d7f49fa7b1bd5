import Foundation

/// What to start and how: everything a child process gets from us.
public struct Command: Sendable {
    /// A path, or a name to be found on `PATH` and in the `sbin` directories.
    public var executable: String
    public var arguments: [String]
    /// Added to (and winning over) the inherited environment.
    public var environment: [String: String]
    public var inheritsEnvironment: Bool
    /// The working directory; nil means ours.
    public var directory: String?
    /// The user to become when we are root; ignored otherwise.
    public var user: String?
    public var input: Input
    /// Gives the child a terminal of this size as input, output, errors and controlling terminal.
    public var terminal: TerminalSize?
    /// How many bytes of output are kept for each stream; the oldest go first.
    public var outputLimit: Int

    public enum Input: Sendable {
        case null
        case pipe
    }

    public struct TerminalSize: Sendable {
        public var columns: UInt16
        public var rows: UInt16

        public init(columns: UInt16 = 80, rows: UInt16 = 24) {
            self.columns = columns
            self.rows = rows
        }
    }

    public init(
        _ executable: String, _ arguments: [String] = [], environment: [String: String] = [:],
        inheritsEnvironment: Bool = true, directory: String? = nil, user: String? = nil, input: Input = .null,
        terminal: TerminalSize? = nil, outputLimit: Int = 1 << 20
    ) {
        self.executable = executable
        self.arguments = arguments
        self.environment = environment
        self.inheritsEnvironment = inheritsEnvironment
        self.directory = directory
        self.user = user
        self.input = input
        self.terminal = terminal
        self.outputLimit = outputLimit
    }

    /// The absolute path of a program, or nil when it is not installed.
    public static func path(of program: String) -> String? {
        if program.contains("/") { return access(program, X_OK) == 0 ? program : nil }
        let search = (Campaign.environment("PATH") ?? "/usr/bin:/bin").split(separator: ":").map(String.init)
        return (search + ["/usr/local/sbin", "/usr/sbin", "/sbin"])
            .map { "\($0)/\(program)" }
            .first { access($0, X_OK) == 0 }
    }

    /// The argument vector that is really executed.
    ///
    /// `setpriv` asks the kernel to kill the child when we die, however we die, and changes the user. Both survive
    /// its `exec`, so that the child keeps the process id that we were given.
    func launchVector() throws -> [String] {
        guard let program = Self.path(of: executable) else { throw ProgramNotFound(program: executable) }
        guard let setpriv = Self.path(of: "setpriv") else { return [program] + arguments }
        var vector = [setpriv, "--pdeathsig", "KILL"]
        if let user, geteuid() == 0 {
            vector += ["--reuid=\(user)", "--regid=\(user)", "--clear-groups"]
        }
        return vector + ["--", program] + arguments
    }

    func launchEnvironment() -> [String] {
        let inherited = inheritsEnvironment ? ProcessInfo.processInfo.environment : [:]
        return inherited.merging(environment) { $1 }.map { "\($0)=\($1)" }
    }
}

/// A program that a test wanted to start is not installed.
public struct ProgramNotFound: Error, CustomStringConvertible, Sendable {
    public let program: String
    public var description: String { "\(program) is not installed or not executable" }
}
