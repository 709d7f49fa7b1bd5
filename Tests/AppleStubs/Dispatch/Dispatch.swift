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
    case milliseconds(Int)
}
public enum DispatchTimeoutResult: Sendable { case success, timedOut }
public func + (time: DispatchTime, interval: DispatchTimeInterval) -> DispatchTime { time }
public func + (time: DispatchTime, seconds: Double) -> DispatchTime { time }

// /dispatch/dispatchqueue, /dispatchqueue/async(execute:), /asyncafter(deadline:execute:)
open class DispatchObject: @unchecked Sendable {
    init() {}
}
open class DispatchQueue: DispatchObject, @unchecked Sendable {
    public struct Attributes: OptionSet, Sendable {
        public let rawValue: UInt64
        public init(rawValue: UInt64) { self.rawValue = rawValue }
    }
    public class func global(qos: DispatchQoS = .unspecified) -> DispatchQueue { DispatchQueue() }
    public class var main: DispatchQueue { DispatchQueue() }
    public convenience init(
        label: String, qos: DispatchQoS = .unspecified, attributes: Attributes = [], target: DispatchQueue? = nil
    ) { self.init() }
    @preconcurrency public func async(execute work: @escaping @Sendable @convention(block) () -> Void) {}
    @preconcurrency public func asyncAfter(
        deadline: DispatchTime, execute work: @escaping @Sendable @convention(block) () -> Void
    ) {}
}

// /dispatch/dispatchdata, whose bridging to Objective-C is a method of the Swift overlay
public final class __DispatchData: Sequence {
    public func makeIterator() -> [UInt8].Iterator { [].makeIterator() }
}
public struct DispatchData {
    public init(bytes buffer: UnsafeRawBufferPointer) {}
    public func _bridgeToObjectiveC() -> __DispatchData { __DispatchData() }
}

// /dispatch/dispatchsemaphore
open class DispatchSemaphore: DispatchObject, @unchecked Sendable {
    public convenience init(value: Int) { self.init() }
    public func wait() {}
    public func wait(timeout: DispatchTime) -> DispatchTimeoutResult { .success }
    @discardableResult public func signal() -> Int { 0 }
}

// /dispatch/dispatchsource, /dispatchsourcesignal, /dispatchsource/makesignalsource(signal:queue:),
// /dispatch/dispatchsourceprotocol/setregistrationhandler(qos:flags:handler:)
public protocol DispatchSourceProtocol: AnyObject {
    func setEventHandler(handler: (@Sendable @convention(block) () -> Void)?)
    func setRegistrationHandler(handler: (@Sendable @convention(block) () -> Void)?)
    func resume()
    func activate()
    func cancel()
}
public protocol DispatchSourceSignal: DispatchSourceProtocol {}
open class DispatchSource: DispatchObject, @unchecked Sendable {
    public class func makeSignalSource(signal: Int32, queue: DispatchQueue? = nil) -> any DispatchSourceSignal {
        SignalSource()
    }
}
private final class SignalSource: DispatchSourceSignal {
    func setEventHandler(handler: (@Sendable @convention(block) () -> Void)?) {}
    func setRegistrationHandler(handler: (@Sendable @convention(block) () -> Void)?) {}
    func resume() {}
    func activate() {}
    func cancel() {}
}
