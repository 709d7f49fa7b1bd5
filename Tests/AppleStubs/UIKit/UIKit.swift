// The used part of UIKit, for `.ci/check-apple` alone. https://developer.apple.com/documentation/uikit

// /uikit/uibackgroundtaskidentifier
public struct UIBackgroundTaskIdentifier: RawRepresentable, Hashable, Sendable {
    public let rawValue: Int
    public init(rawValue: Int) { self.rawValue = rawValue }
    public static let invalid = UIBackgroundTaskIdentifier(rawValue: 0)
}

// /uikit/uiapplication
@MainActor open class UIApplication {
    init() {}
    // /uikit/uiapplication/shared
    public class var shared: UIApplication { UIApplication() }
    // /uikit/uiapplication/beginbackgroundtask(withname:expirationhandler:)
    public func beginBackgroundTask(
        withName taskName: String?, expirationHandler handler: (@MainActor @Sendable () -> Void)? = nil
    ) -> UIBackgroundTaskIdentifier { .invalid }
    // /uikit/uiapplication/endbackgroundtask(_:)
    public func endBackgroundTask(_ identifier: UIBackgroundTaskIdentifier) {}
}
