package import Inspector
import Synchronization

/// Publishes what visitors type into the inspector's publish pane, with the client of the program's first device.
package final class PagePublisher: Sendable {
    private struct Closure: Sendable {
        let call: InspectorPage.Publish
    }

    private let closure = Mutex<Closure?>(nil)

    package init() {}

    /// Publishes with this closure from now on.
    package func use(_ publish: @escaping InspectorPage.Publish) {
        closure.withLock { $0 = Closure(call: publish) }
    }

    func publish(_ topic: String, _ payload: [UInt8]) async throws {
        guard let closure = closure.withLock({ $0 }) else {
            throw DeviceFailure(.unavailable, "No device has started yet. Try again in a moment.")
        }
        try await closure.call(topic, payload)
    }
}
