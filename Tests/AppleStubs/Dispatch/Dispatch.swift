// swift-format-ignore-file: AlwaysUseLowerCamelCase, TypeNamesShouldBeCapitalized
// The used part of Dispatch for `.ci/check-apple` alone: Linux has the real one, whose C headers are not Darwin's.
// https://developer.apple.com/documentation/dispatch

// /dispatch/dispatchqos, /dispatchtime
public struct DispatchQoS: Sendable {
    public static let userInitiated = DispatchQoS()
    public static let unspecified = DispatchQoS()
}
public struct DispatchTime: Sendable {
    public static func now() -> DispatchTime { DispatchTime() }
}
public enum DispatchTimeInterval: Sendable {
    case seconds(Int)
}
public func + (time: DispatchTime, interval: DispatchTimeInterval) -> DispatchTime { time }

// /dispatch/dispatchqueue, /dispatchqueue/async(execute:), /asyncafter(deadline:execute:)
open class DispatchObject: @unchecked Sendable {
    init() {}
}
open class DispatchQueue: DispatchObject, @unchecked Sendable {
    public struct Attributes: OptionSet, Sendable {
        public let rawValue: UInt64
        public init(rawValue: UInt64) { self.rawValue = rawValue }
    }
    public convenience init(
        label: String, qos: DispatchQoS = .unspecified, attributes: Attributes = [], target: DispatchQueue? = nil
    ) { self.init() }
    @preconcurrency public func async(execute work: @escaping @Sendable @convention(block) () -> Void) {}
    @preconcurrency public func asyncAfter(
        deadline: DispatchTime, execute work: @escaping @Sendable @convention(block) () -> Void
    ) {}
}
