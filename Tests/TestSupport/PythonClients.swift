/// Clients of other people, written in Python: stomp.py, paho-mqtt and websockets in a virtual environment whose path
/// stands in `PYTHON_CLIENTS`.
public enum PythonClients {
    /// The interpreter of the environment; nil when there is none.
    public static var interpreter: String? {
        Campaign.environment("PYTHON_CLIENTS").flatMap { Command.path(of: $0 + "/bin/python3") }
    }

    /// Why there are none, and how to get them; nil when there are.
    public static var missing: String? {
        guard interpreter == nil else { return nil }
        return """
            PYTHON_CLIENTS names no virtual environment (python3 -m venv DIR && \
            DIR/bin/pip install stomp.py paho-mqtt websockets)
            """
    }

    /// Starts a script with arguments; its input is a pipe and its output unbuffered.
    public static func start(_ script: String, _ arguments: [String] = []) async throws -> ChildProcess {
        guard let interpreter else { throw MissingRequirement(description: missing ?? "") }
        return try await ChildProcess.start(
            Command(interpreter, ["-u", "-c", script] + arguments, input: .pipe))
    }
}
