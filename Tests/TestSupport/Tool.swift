/// A program that is run to its end.
public enum Tool {
    public struct Result: Sendable {
        public let command: String
        public let status: ExitStatus
        public let output: [UInt8]
        public let errors: String

        /// The output as text.
        public var text: String { String(decoding: output, as: UTF8.self) }
        public var succeeded: Bool { status == .exited(0) }

        /// Throws, with what the program said, unless it exited with 0.
        @discardableResult
        public func requireSuccess() throws -> Result {
            if succeeded { return self }
            throw ToolFailure(description: "\(command) ended with \(status): \(errors)\(text)")
        }
    }

    /// Runs a program with `input` on its standard input and collects what it writes.
    ///
    /// - Throws: `TimeoutError` when it has not ended within `timeout`; it is killed then.
    public static func run(
        _ program: String, _ arguments: [String] = [], input: [UInt8] = [], environment: [String: String] = [:],
        directory: String? = nil, timeout: Duration = .patience
    ) async throws -> Result {
        var command = Command(program, arguments, environment: environment, directory: directory)
        command.input = input.isEmpty ? .null : .pipe
        let child = try await ChildProcess.start(command)
        if !input.isEmpty {
            // A program may exit without reading all; its status tells more than our broken pipe.
            try? await child.write(input)
            child.closeInput()
        }
        let status = try await child.waitForEnd(timeout: timeout)
        return Result(
            command: program, status: status, output: child.bytes(), errors: child.text(.errors))
    }
}

/// A program ended with something else than success.
public struct ToolFailure: Error, CustomStringConvertible, Sendable {
    public let description: String
}

/// Mosquitto's command-line clients, aimed at a loopback port.
public enum MosquittoClients {
    /// Starts `mosquitto_sub -v`, which prints `topic payload` for each message, and waits until it is subscribed.
    ///
    /// - Parameter arguments: more options, as `["-q", "1", "-V", "5", "-C", "3"]`.
    public static func subscribe(
        to filter: String, port: Int, user: BrokerUser? = nil, _ arguments: [String] = [], outputLimit: Int = 1 << 20
    ) async throws -> ChildProcess {
        // Debug output is the only thing that tells when the subscription stands; unbuffered, so it comes at once.
        let child = try await ChildProcess.start(
            Command(
                "stdbuf",
                ["-oL", Command.path(of: "mosquitto_sub") ?? "mosquitto_sub"] + address(port, user)
                    + ["-d", "-v", "-t", filter] + arguments, outputLimit: outputLimit))
        try await child.waitForLine(containing: "Subscribed (mid")
        return child
    }

    /// Publishes one message with `mosquitto_pub` and waits until it is acknowledged.
    public static func publish(
        _ payload: String, to topic: String, port: Int, user: BrokerUser? = nil, _ arguments: [String] = []
    ) async throws {
        try await Tool.run("mosquitto_pub", address(port, user) + ["-t", topic, "-m", payload] + arguments)
            .requireSuccess()
    }

    private static func address(_ port: Int, _ user: BrokerUser?) -> [String] {
        let place = ["-h", "127.0.0.1", "-p", "\(port)"]
        return place + (user.map { ["-u", $0.name, "-P", $0.password] } ?? [])
    }
}
