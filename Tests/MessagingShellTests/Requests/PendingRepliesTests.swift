import MessagingShell
import MessagingWire
import Synchronization
import TestSupport
import Testing
import Transport

private struct Reply: ReplyMessage, Equatable {
    var correlation: [UInt8]?
    var text: String
    var content: ArraySlice<UInt8> { [] }
    var mediaType: String? { nil }
    var description: String { text }
}

private struct Failure: ClientError, Equatable {
    let code: ErrorCode<Failure>
    let message: String
    var underlying: (any Error)? { nil }
    init(_ code: ErrorCode<Failure>, _ message: String, answer: Failure?, underlying: (any Error)?) {
        (self.code, self.message) = (code, message)
    }
    static let late = Failure(.timedOut, "Too late.", answer: nil, underlying: nil)
    static let lost = Failure(.connectionLost, "Lost.", answer: nil, underlying: nil)
}

private final class ReplyBatch: DeliveryBatch {
    let replies: [Reply]
    init(_ replies: [Reply]) { self.replies = replies }
    var count: Int { replies.count }
    subscript(index: Int) -> Reply { replies[index] }
    var byteCount: Int { 0 }
    var gap: Int {
        get { 0 }
        set {}
    }
    var place: DeliveryPlace { DeliveryPlace(rawValue: 0) }
    func move(from old: DeliveryPlace, to new: DeliveryPlace) -> Bool { false }
    func dropOldest(_ count: Int) -> Int { 0 }
}

private final class Handle: Sendable {}

/// What became of requests.
private final class Log: Sendable {
    let sent = Atomic(0)
    let failed = Lock<[Int]>([])
    /// When they were sent.
    let times = Lock<[ManualClock.Instant]>([])
}

@Suite("Requests: pending replies", .turns)
struct PendingRepliesTests {
    private typealias Replies = PendingReplies<Reply, Failure>

    /// Answers a request from the loop's thread as soon as it is sent.
    private func answer(_ replies: Replies, _ messages: [Reply], unmatched: Int = 0) {
        EventLoop.shared.execute { #expect(replies.receive(ReplyBatch(messages)) == unmatched) }
    }

    @Test func `replies find their requests by correlation, over one subscription`() async throws {
        let subscriptions = Atomic(0)
        let replies = Replies(loop: .shared) { _ in
            subscriptions.add(1, ordering: .relaxed)
            return Replies.Subscription(address: "replies", handle: Handle())
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<50 {
                group.addTask {
                    let correlation = [UInt8(number)]
                    let reply = try await replies.reply(
                        correlation: correlation, within: .seconds(60), late: Failure.late.message
                    ) { address in
                        #expect(address == "replies")
                        answer(replies, [Reply(correlation: correlation, text: "\(number)")])
                    }
                    #expect(reply.text == "\(number)")
                }
            }
            try await group.waitForAll()
        }
        #expect(subscriptions.load(ordering: .relaxed) == 1)
    }

    @Test func `requests that lose their connection fail in the order in which they were sent`() async throws {
        let clock = try ManualClock()
        let replies = Replies(loop: clock.loop) { _ in Replies.Subscription(address: "replies", handle: Handle()) }
        let log = Log()
        try await withTaskExecutorPreference(clock.loop) {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        do {
                            _ = try await replies.reply(
                                correlation: [UInt8(number)], within: .seconds(60), late: Failure.late.message
                            ) { _ in log.sent.add(1, ordering: .relaxed) }
                        } catch {
                            log.failed.withLock { $0.append(number) }
                        }
                    }
                }
                while log.sent.load(ordering: .relaxed) < 20 { await Task.yield() }
                await clock.loop.result { replies.fail(.lost) }
                try await group.waitForAll()
            }
        }
        #expect(log.failed.withLock { $0 } == Array(0..<20))
    }

    @Test func `no time passes on a manual clock between a request and its sending`() async throws {
        let clock = try ManualClock()
        let replies = Replies(loop: clock.loop) { _ in Replies.Subscription(address: "replies", handle: Handle()) }
        let log = Log()
        let start = clock.now
        await withTaskExecutorPreference(clock.loop) {
            await withTaskGroup(of: Void.self) { group in
                for number in 0..<20 as Range<UInt8> {
                    group.addTask {
                        _ = try? await replies.reply(
                            correlation: [number], within: .seconds(60), late: Failure.late.message
                        ) { _ in log.times.withLock { $0.append(clock.now) } }
                    }
                }
                await clock.advance(by: .seconds(1))
                #expect(log.times.withLock { $0 } == Array(repeating: start, count: 20))
                group.cancelAll()
            }
        }
    }

    @Test func `a subscription that ends before the task that made it runs on is made again`() async throws {
        let made = Atomic(0)
        let replies = Replies(loop: .shared) { replies in
            if made.add(1, ordering: .relaxed).newValue == 1 {
                let ended = PendingCall<Void>()
                EventLoop.shared.execute {
                    replies.subscriptionEnded(.lost)
                    ended.end(())
                }
                await ended.answer()
            }
            return Replies.Subscription(address: "replies", handle: Handle())
        }
        await #expect(throws: Failure.lost) {
            try await replies.reply(correlation: [1], within: .seconds(60), late: Failure.late.message) { _ in }
        }
        let reply = try await replies.reply(correlation: [2], within: .seconds(60), late: Failure.late.message) { _ in
            answer(replies, [Reply(correlation: [2], text: "x")])
        }
        #expect(reply.text == "x" && made.load(ordering: .relaxed) == 2)
    }

    @Test func `a request with the correlation of one that waits is refused`() async throws {
        let replies = Replies(loop: .shared) { _ in Replies.Subscription(address: "", handle: Handle()) }
        let sent = PendingCall<Void>()
        async let first = replies.reply(correlation: [65], within: .seconds(60), late: Failure.late.message) { _ in
            sent.end(())
        }
        await sent.answer()
        await #expect { try await replies.reply(correlation: [65], within: .seconds(60), late: "") { _ in } } throws: {
            ($0 as? Failure)?.code == .invalidRequest && "\($0)".contains("'A'")
        }
        answer(replies, [Reply(correlation: [65], text: "x")])
        #expect(try await first.text == "x")
    }

    @Test func `a message without the correlation of a request is the reply to none, also if only one waits`()
        async throws
    {
        let replies = Replies(loop: .shared) { _ in Replies.Subscription(address: "", handle: Handle()) }
        let only = try await replies.reply(correlation: [1], within: .seconds(60), late: Failure.late.message) { _ in
            answer(
                replies,
                [
                    Reply(correlation: [9], text: "another's"), Reply(correlation: nil, text: "whose?"),
                    Reply(correlation: [1], text: "x"),
                ], unmatched: 2)
        }
        #expect(only.text == "x")
    }

    @Test func `requests fail with their connection, and the next one is sent when it has subscribed`() async throws {
        let replies = Replies(loop: .shared) { _ in Replies.Subscription(address: "", handle: Handle()) }
        await #expect(throws: Failure.lost) {
            try await replies.reply(correlation: [1], within: .seconds(60), late: Failure.late.message) { _ in
                EventLoop.shared.execute {
                    replies.connectionEnded(.lost)
                    replies.subscribedAgain()
                }
            }
        }
        let second = try await replies.reply(correlation: [2], within: .seconds(60), late: Failure.late.message) { _ in
            answer(replies, [Reply(correlation: [1], text: "late"), Reply(correlation: [2], text: "x")], unmatched: 1)
        }
        #expect(second.text == "x")
    }

    @Test func `a request ends at its timeout, also while the subscription is not made`() async throws {
        let replies = Replies(loop: .shared) { _ in Replies.Subscription(address: "", handle: Handle()) }
        await #expect(throws: Failure.late) {
            try await replies.reply(correlation: [1], within: .milliseconds(1), late: Failure.late.message) { _ in }
        }
        let release = PendingCall<Void>()
        let stuck = Replies(loop: .shared) { _ in
            await release.answer()
            return Replies.Subscription(address: "", handle: Handle())
        }
        await #expect(throws: Failure.late) {
            try await stuck.reply(correlation: [1], within: .milliseconds(1), late: Failure.late.message) { _ in
                Issue.record("a request was sent after its timeout")
            }
        }
        release.end(())
    }

    @Test func `a cancelled request returns at once, also while the subscription is not made`() async throws {
        let begun = PendingCall<Void>()
        let release = PendingCall<Void>()
        let replies = Replies(loop: .shared) { _ in
            begun.end(())
            await release.answer()
            return Replies.Subscription(address: "", handle: Handle())
        }
        let early = Task {
            try await replies.reply(correlation: [1], within: .seconds(60), late: Failure.late.message) { _ in
                Issue.record("a cancelled request was sent")
            }
        }
        await begun.answer()
        early.cancel()
        await #expect(throws: Failure.cancelledWait) { try await early.value }
        release.end(())
        let sent = PendingCall<Void>()
        let later = Task {
            try await replies.reply(correlation: [2], within: .seconds(60), late: Failure.late.message) { _ in
                sent.end(())
            }
        }
        await sent.answer()
        later.cancel()
        await #expect(throws: Failure.cancelledWait) { try await later.value }
        answer(replies, [Reply(correlation: [2], text: "too late")], unmatched: 1)
        await EventLoop.shared.result {}
    }

    @Test func `the end of the subscription fails its requests, and the next request makes another one`() async throws {
        let subscriptions = Atomic(0)
        let replies = Replies(loop: .shared) { _ in
            let number = subscriptions.add(1, ordering: .relaxed).newValue
            return Replies.Subscription(address: "\(number)", handle: Handle())
        }
        await #expect(throws: Failure.lost) {
            try await replies.reply(correlation: [1], within: .seconds(60), late: Failure.late.message) { address in
                #expect(address == "1")
                EventLoop.shared.execute { replies.fail(.lost) }
            }
        }
        await #expect(throws: Failure.disconnectedByUser) {
            try await replies.reply(correlation: [2], within: .seconds(60), late: Failure.late.message) { address in
                #expect(address == "1")
                EventLoop.shared.execute { replies.subscriptionEnded(.disconnectedByUser) }
            }
        }
        _ = try await replies.reply(correlation: [3], within: .seconds(60), late: Failure.late.message) { address in
            #expect(address == "2")
            answer(replies, [Reply(correlation: [3], text: "")])
        }
    }

    @Test func `a subscription that cannot be made fails the requests that wait for it`() async throws {
        let replies = Replies(loop: .shared) { _ throws(Failure) in throw Failure.lost }
        for number in 0..<3 {
            await #expect(throws: Failure.lost) {
                try await replies.reply(correlation: [UInt8(number)], within: .seconds(60), late: Failure.late.message)
                { _ in }
            }
        }
        await #expect(throws: Failure.disconnectedByUser) {
            try await Replies(loop: .shared) { _ in Replies.Subscription(address: "", handle: Handle()) }
                .reply(correlation: [], within: .seconds(60), late: Failure.late.message) { _ throws(Failure) in
                    throw Failure.disconnectedByUser
                }
        }
    }
}
