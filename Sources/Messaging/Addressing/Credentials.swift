/// What a client shows to a server to be let in. Never printed.
public struct Credentials: Sendable, Hashable, CustomStringConvertible, CustomDebugStringConvertible {
    public var userName: String
    public var password: String?

    public init(userName: String, password: String? = nil) {
        self.userName = userName
        self.password = password
    }

    public var description: String { "Credentials(•••)" }
    public var debugDescription: String { description }
}
