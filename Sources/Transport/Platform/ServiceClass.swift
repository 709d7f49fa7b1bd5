/// How urgent something is: the traffic of a connection, or the thread that serves it.
public struct ServiceClass: Sendable, Hashable {
    enum Kind { case background, standard, responsive }
    let kind: Kind

    /// May wait for everything else, such as the upload of a log.
    public static let background = ServiceClass(kind: .background)
    /// The system's default.
    public static let standard = ServiceClass(kind: .standard)
    /// A person waits for the answer.
    public static let responsive = ServiceClass(kind: .responsive)
}
