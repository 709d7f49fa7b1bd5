// swift-format-ignore-file: TypeNamesShouldBeCapitalized
// The used part of os, for `.ci/check-apple` alone. https://developer.apple.com/documentation/os

// /os/oslogprivacy
public struct OSLogPrivacy: Sendable {
    public static var `public`: OSLogPrivacy { OSLogPrivacy() }
    public static var `private`: OSLogPrivacy { OSLogPrivacy() }
}

// /os/oslogmessage, /os/osloginterpolation
public struct OSLogInterpolation: StringInterpolationProtocol {
    public init(literalCapacity: Int, interpolationCount: Int) {}
    public mutating func appendLiteral(_ literal: String) {}
    public mutating func appendInterpolation(
        _ argumentString: @autoclosure @escaping () -> String, privacy: OSLogPrivacy = .private
    ) {}
}
public struct OSLogMessage: ExpressibleByStringInterpolation {
    public init(stringInterpolation: OSLogInterpolation) {}
    public init(stringLiteral value: String) {}
}

// /os/logger, /os/logger/init(subsystem:category:), /debug(_:), /error(_:)
public struct Logger: Sendable {
    public init(subsystem: String, category: String) {}
    public func debug(_ message: OSLogMessage) {}
    public func error(_ message: OSLogMessage) {}
}
