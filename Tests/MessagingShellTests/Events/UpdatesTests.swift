import MessagingShell
import TestSupport
import Testing

@Suite(.turns) struct UpdatesTests {
    @Test func `each iterator gets all values in their order`() async {
        let broadcaster = Broadcaster<Int>(capacity: 1000)
        var iterators = (0..<3).map { _ in broadcaster.updates.makeAsyncIterator() }
        for number in 0..<100 { broadcaster.send(number) }
        broadcaster.finish()
        for index in iterators.indices {
            var seen: [Int] = []
            while let number = await iterators[index].next() { seen.append(number) }
            #expect(seen == Array(0..<100))
        }
    }

    @Test func `a sequence starts when it is created, and further iterators when they are made`() async {
        let broadcaster = Broadcaster<Int>(capacity: 10)
        broadcaster.send(0)
        let updates = broadcaster.updates
        broadcaster.send(1)
        var first = updates.makeAsyncIterator()
        var second = updates.makeAsyncIterator()
        broadcaster.send(2)
        broadcaster.finish()
        #expect(await first.next() == 1)
        #expect(await first.next() == 2)
        #expect(await second.next() == 2)
        #expect(await first.next() == nil)
        #expect(await second.next() == nil)
    }

    @Test func `a slow iterator keeps the newest values`() async {
        let broadcaster = Broadcaster<Int>(capacity: 3)
        var iterator = broadcaster.updates.makeAsyncIterator()
        for number in 0..<10 { broadcaster.send(number) }
        broadcaster.finish()
        var seen: [Int] = []
        while let number = await iterator.next() { seen.append(number) }
        #expect(seen == [7, 8, 9])
        #expect(iterator.missedCount == 7)
    }

    @Test func `a slow listener of a client misses the oldest of 1,024 states or events`() async {
        let news = ClientNews<Int, Int>(0)
        var (states, events) = (news.states.makeAsyncIterator(), news.events.makeAsyncIterator())
        for number in 1...1100 {
            news.stateChanged(to: number)
            news.tell(number)
        }
        #expect(await states.next() == 1100 - 1023)
        #expect(await events.next() == 1100 - 1023)
        // The present state counts.
        #expect(states.missedCount == 77)
        #expect(events.missedCount == 76)
    }

    @Test func `no capacity is too small`() async {
        let broadcaster = Broadcaster<Int>(capacity: 0)
        var iterator = broadcaster.updates.makeAsyncIterator()
        broadcaster.send(1)
        broadcaster.send(2)
        #expect(await iterator.next() == 2)
    }

    @Test func `a new iterator starts with the latest value if that is wanted`() async {
        let replaying = Broadcaster<Int>(capacity: 3, initial: 1, replaysLatest: true)
        var early = replaying.updates.makeAsyncIterator()
        replaying.send(2)
        var late = replaying.updates.makeAsyncIterator()
        #expect(await early.next() == 1)
        #expect(await early.next() == 2)
        #expect(await late.next() == 2)
        replaying.finish()
        var afterwards = replaying.updates.makeAsyncIterator()
        #expect(await afterwards.next() == 2)
        #expect(await afterwards.next() == nil)
    }

    @Test func `every iterator ends with the latest value, however it races with the sender`() async {
        for _ in 0..<Campaign.rounds(20_000, least: 200) {
            let broadcaster = Broadcaster<Int>(capacity: 2, initial: 0, replaysLatest: true)
            let listeners = (0..<3).map { _ in
                Task {
                    var last = -1
                    var isInOrder = true
                    for await number in broadcaster.updates {
                        isInOrder = isInOrder && number > last
                        last = number
                    }
                    return isInOrder ? last : -1
                }
            }
            for number in 1...5 {
                broadcaster.send(number)
                await Task.yield()
            }
            broadcaster.finish()
            for listener in listeners { #expect(await listener.value == 5) }
        }
    }

    @Test func `a cancelled iterator ends, others go on`() async throws {
        let broadcaster = Broadcaster<Int>(capacity: 3)
        for delay in [0, 5] {
            let task = Task { () -> Int? in
                var iterator = broadcaster.updates.makeAsyncIterator()
                return await iterator.next()
            }
            try await Task.sleep(for: .milliseconds(delay))
            task.cancel()
            #expect(await task.value == nil)
        }
        var iterator = broadcaster.updates.makeAsyncIterator()
        broadcaster.send(5)
        #expect(await iterator.next() == 5)
    }

    @Test func `iterators end when the broadcaster goes`() async throws {
        var broadcaster: Broadcaster<Int>? = Broadcaster(capacity: 3)
        var iterator = try #require(broadcaster?.updates.makeAsyncIterator())
        broadcaster = nil
        #expect(await iterator.next() == nil)
    }
}
