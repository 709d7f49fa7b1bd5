import DeviceSupport
import STOMP
import Synchronization

/// The texts that a device was sent: shown as they come, and kept while they wait for an answer.
final class TextList: Sendable {
    private let post: Fleet.Post
    private let isAnswered: Bool
    private let waiting = Mutex<[STOMPMessage]>([])

    /// How a subscription whose texts are answered says that a hundred at most may wait for that. Each broker takes its own
    /// header and ignores the others. The option of the client would fail with a broker that is none of these.
    static var prefetch: STOMPHeaders {
        let profiles: [STOMPBrokerProfile] = [.rabbitMQ, .activeMQ, .artemis]
        return STOMPHeaders(profiles.flatMap { $0.prefetchHeaders(messages: 100)?.fields ?? [] })
    }

    /// - Parameter isAnswered: Whether each text is accepted or rejected at the keyboard.
    init(_ post: Fleet.Post, isAnswered: Bool) {
        self.post = post
        self.isAnswered = isAnswered
    }

    func received(_ message: STOMPMessage) {
        // It waits before it is shown, because an answer may follow at once. The broker's prefetch bounds how many wait.
        let count = waiting.withLock { waiting in
            if isAnswered { waiting.append(message) }
            return waiting.count
        }
        post.showText(Self.words(of: message))
        if count == 1 { post.say("press a to accept it, r to reject it") }
    }

    func answerOldest(accepting: Bool) {
        guard isAnswered else { return }
        while let oldest = takeOldest() {
            let words = Self.words(of: oldest)
            do throws(STOMPError) {
                // A rejected text is not to be delivered again, which RabbitMQ would do by default.
                if accepting { try oldest.acknowledge() } else { try oldest.reject(requeue: false) }
                return post.say("\(accepting ? "accepted" : "rejected"): \(words)")
            } catch {
                // From before a reconnect: the broker has handed it out again, and it waits further back.
                if error.code == .stale { continue }
                return post.say("not \(accepting ? "accepted" : "rejected"): \(words): \(error.message)")
            }
        }
        post.say("there is no text to \(accepting ? "accept" : "reject")")
    }

    private func takeOldest() -> STOMPMessage? {
        waiting.withLock { $0.isEmpty ? nil : $0.removeFirst() }
    }

    private static func words(of message: STOMPMessage) -> String {
        message.text ?? "\(message.body.count) bytes that are no text"
    }
}
