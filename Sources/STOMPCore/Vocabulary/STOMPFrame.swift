/// A frame: a command, ordered headers and a body of bytes.
public struct STOMPFrame: Sendable, Hashable {
    public var command: STOMPCommand {
        didSet { if command != .unknown { unlistedName = "" } }
    }
    private var unlistedName = ""
    public var headers: STOMPHeaders
    /// Bytes, NULs included; text only when `content-type` says so.
    public var body: [UInt8]

    public init(_ command: STOMPCommand, headers: STOMPHeaders = [:], body: [UInt8] = []) {
        self.command = command
        self.headers = headers
        self.body = body
    }

    /// A frame whose command the specification does not list.
    public init(unlisted name: String, headers: STOMPHeaders = [:], body: [UInt8] = []) {
        self.init(.unknown, headers: headers, body: body)
        unlistedName = name
    }

    /// The command as it stands in the first line.
    public var commandName: String { command == .unknown ? unlistedName : command.description }
}
