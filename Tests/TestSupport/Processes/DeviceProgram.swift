public import Foundation

/// The two programs as they were built beside the tests.
public enum DeviceProgram: String, Sendable, CaseIterable {
    case motions = "motions-device"
    case locations = "locations-device"

    public var path: String { BuiltProgram.path(rawValue) }

    /// Starts the program; credentials of whoever runs the tests are kept from it.
    public func start(
        _ arguments: [String], user: BrokerUser? = nil, environment more: [String: String] = [:],
        input: Command.Input = .null, terminal: Command.TerminalSize? = nil
    ) async throws -> ChildProcess {
        var environment = ["MESSAGING_USER": user?.name ?? "", "MESSAGING_PASSWORD": user?.password ?? ""]
        environment.merge(more) { $1 }
        if terminal != nil {
            environment["TERM"] = "xterm-256color"
            environment["NO_COLOR"] = more["NO_COLOR"] ?? ""
        }
        return try await ChildProcess.start(
            Command(path, arguments, environment: environment, input: input, terminal: terminal))
    }

    /// Runs the program to its end.
    public func run(
        _ arguments: [String], user: BrokerUser? = nil, environment: [String: String] = [:],
        timeout: Duration = .patience
    ) async throws -> (status: ExitStatus, output: [String], errors: [String]) {
        let process = try await start(arguments, user: user, environment: environment)
        let status = try await process.waitForEnd(timeout: timeout)
        return (status, process.lines(), process.lines(.errors))
    }
}

extension ChildProcess {
    /// The port in a line such as `embedded broker: mqtt://127.0.0.1:1883`.
    public func embeddedPort(_ scheme: String) async throws -> Int {
        let prefix = "embedded broker: \(scheme)://127.0.0.1:"
        let line = try await waitForLine(containing: prefix).text
        return Int(line.dropFirst(prefix.count)) ?? 0
    }

    /// Ends a device by a signal and returns its status once everything is read.
    public func end(by signal: Int32 = SIGTERM) async throws -> ExitStatus {
        self.signal(signal)
        return try await waitForEnd()
    }
}
