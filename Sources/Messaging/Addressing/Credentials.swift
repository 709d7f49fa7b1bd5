/// What a client shows to a server to be let in. Never printed.
public struct Credentials: Sendable, Hashable {
    public var userName: String
    public var password: String?

    public init(userName: String, password: String? = nil) {
        self.userName = userName
        self.password = password
    }
}

extension Credentials: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    public var description: String { "Credentials(•••)" }
    public var debugDescription: String { description }
    public var customMirror: Mirror { Mirror(self, children: []) }
}
