/// What a supervisor asks its client to try.
package struct ConnectionAttempt: Sendable {
    /// Counts rounds through all servers, from 1 since the last success.
    package let number: Int
    /// The server's place in the list.
    package let server: Int
    /// The attempt before failed because of its credentials, and this one is the chance for others.
    package let credentialsWereRefused: Bool
    /// When the server has to have accepted, at the latest; nanoseconds of the monotonic clock.
    package let deadline: Int64
}
