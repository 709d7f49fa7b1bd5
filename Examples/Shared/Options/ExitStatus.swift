/// What the two programs exit with: the values of `sysexits.h`, one per kind of failure.
package enum ExitStatus: Int32, CaseIterable, Sendable {
    case success = 0
    case usage = 64
    case dataError = 65
    case noInput = 66
    case unknownHost = 68
    case unavailable = 69
    case software = 70
    case outputError = 74
    case lost = 75
    case protocolError = 76
    case noPermission = 77
    case configuration = 78

    /// The sentence that `--help` prints beside the number.
    package var meaning: String {
        switch self {
        case .success: "end of the recording, or stopped by Ctrl-C or SIGTERM"
        case .usage: "unknown, repeated or malformed option"
        case .dataError: "malformed recording or file; the line says where"
        case .noInput: "a file does not exist or cannot be read"
        case .unknownHost: "the broker's host name cannot be resolved"
        case .unavailable: "the broker refuses connections or cannot be reached"
        case .software: "a fault of this program"
        case .outputError: "standard output cannot be written"
        case .lost: "the connection was lost or timed out, and no further attempt is made"
        case .protocolError: "the broker broke the protocol or does not speak it"
        case .noPermission: "the broker refuses the credentials, the client certificate or the subscription"
        case .configuration: "TLS cannot be set up, or the broker's certificate is not trusted"
        }
    }
}

/// A reason to end: one line for standard error and the status to exit with.
package struct DeviceFailure: Error, Sendable, Equatable, CustomStringConvertible {
    package var status: ExitStatus
    package var message: String

    package init(_ status: ExitStatus, _ message: String) {
        self.status = status
        self.message = message
    }

    package var description: String { message }

    static func usage(_ message: String) -> DeviceFailure { DeviceFailure(.usage, message) }
}
