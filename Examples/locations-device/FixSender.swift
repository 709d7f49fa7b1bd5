import DeviceSupport
import STOMP

/// Sends the fixes of one device and keeps each until the broker has confirmed it: fixes that a lost connection left
/// unconfirmed are sent again over the next one.
struct FixSender: Sendable {
    private enum Step: Sendable {
        case receipt(STOMPReceipt, of: Int)
        /// Everything before it has been dealt with.
        case caughtUp(AsyncStream<Void>.Continuation)
    }

    /// Receipts under way at once: RabbitMQ's STOMP over WebSocket fails at some 700.
    private static let maximumUnconfirmed = 256

    private let link: DeviceLink<STOMPClient>
    private let topic: String
    private let options: STOMPSendOptions
    private let unconfirmed = Unconfirmed<[UInt8]>()
    private let steps: AsyncStream<Step>
    private let continuation: AsyncStream<Step>.Continuation

    init(_ link: DeviceLink<STOMPClient>, topic: String, options: STOMPSendOptions) {
        self.link = link
        self.topic = topic
        self.options = options
        (steps, continuation) = AsyncStream.makeStream()
        link.tally.add { $0.unconfirmed = 0 }
    }

    /// Returns when the fix is on its way; waits while there is no connection, or too much is unconfirmed.
    ///
    /// - Parameter makeBody: Called when there is a connection; nil skips the fix.
    /// - Returns: Whether the fix was sent.
    func send(_ makeBody: () -> String?) async throws -> Bool {
        await unconfirmed.untilAtMost(Self.maximumUnconfirmed - 1)
        var isSent = false
        try await link.send { () throws(STOMPError) in
            guard let text = makeBody() else { return }
            let body = Array(text.utf8)
            let number = unconfirmed.add(body)
            do throws(STOMPError) {
                try await write(body, number)
            } catch {
                unconfirmed.remove(number)
                throw error
            }
            isSent = true
        }
        guard isSent else { return false }
        link.tally.add { summary in
            summary.sent += 1
            summary.unconfirmed = (summary.unconfirmed ?? 0) + 1
        }
        return true
    }

    private func write(_ body: [UInt8], _ number: Int) async throws(STOMPError) {
        let receipt = try await link.client.sendForReceipt(STOMPOutgoingMessage(body, to: topic, options: options))
        continuation.yield(.receipt(receipt, of: number))
    }

    /// Waits until every fix is confirmed, or the task is cancelled.
    func untilConfirmed() async {
        await unconfirmed.untilAtMost(0)
    }

    /// Sends again what the last connection left unconfirmed; call it before anything else goes over the new one.
    func reconnected() async {
        // What was confirmed before the loss is not sent twice.
        await caughtUp()
        let again = unconfirmed.reconnected()
        guard !again.isEmpty else { return }
        link.post.report("sending \(again.count) unconfirmed \(again.count == 1 ? "fix" : "fixes") again")
        for (number, body) in again {
            // A connection that is lost again leaves the rest to the next one.
            guard (try? await write(body, number)) != nil else { return }
        }
    }

    /// Waits until the receipts that have arrived are counted.
    func caughtUp() async {
        let (done, isDone) = AsyncStream.makeStream(of: Void.self)
        continuation.yield(.caughtUp(isDone))
        for await _ in done {}
    }

    /// Takes the receipts in until cancelled.
    func takeReceipts() async {
        for await step in steps {
            switch step {
            case .caughtUp(let isDone): isDone.finish()
            case .receipt(let receipt, let number): await take(receipt, number)
            }
        }
    }

    private func take(_ receipt: STOMPReceipt, _ number: Int) async {
        do throws(STOMPError) {
            try await receipt.confirmed()
            answered(number)
        } catch {
            switch error.code {
            case .refused:
                link.post.say("the broker refused a fix: \(error.message)")
                answered(number)
            case .timedOut:
                if let body = unconfirmed.timedOut(number) {
                    try? await write(body, number)
                } else {
                    unconfirmed.remove(number)
                }
            default:
                if let body = unconfirmed.lost(number) { try? await write(body, number) }
            }
        }
    }

    /// The broker has confirmed or refused a fix.
    private func answered(_ number: Int) {
        guard unconfirmed.remove(number) else { return }
        link.tally.add { $0.unconfirmed = ($0.unconfirmed ?? 1) - 1 }
        link.post.fleet.meter.answered()
    }
}
