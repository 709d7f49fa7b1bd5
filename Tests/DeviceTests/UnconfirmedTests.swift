import TestSupport
import Testing

@testable import DeviceSupport

/// What is known of fixes that the broker has not confirmed.
@Suite(.turns)
struct UnconfirmedTests {
    @Test func `a new connection gets everything unconfirmed, in the order of the first time`() {
        let unconfirmed = Unconfirmed<String>()
        let numbers = ["a", "b", "c", "d"].map(unconfirmed.add)
        unconfirmed.remove(numbers[1])
        #expect(unconfirmed.reconnected().map(\.value) == ["a", "c", "d"])
        #expect(unconfirmed.remove(numbers[0]))
        #expect(!unconfirmed.remove(numbers[0]))
        #expect(unconfirmed.reconnected().map(\.value) == ["c", "d"])
        #expect(unconfirmed.count == 2)
    }

    @Test func `what is lost with its connection waits for the next, and goes out at once if that is there`() {
        let unconfirmed = Unconfirmed<String>()
        let first = unconfirmed.add("a")
        #expect(unconfirmed.lost(first) == nil)
        _ = unconfirmed.reconnected()
        #expect(unconfirmed.lost(first) == nil, "it has been sent over the new connection")
        let late = unconfirmed.add("b")
        _ = unconfirmed.reconnected()
        #expect(unconfirmed.lost(late) == nil)
        unconfirmed.remove(late)
        #expect(unconfirmed.lost(late) == nil)
    }

    @Test func `a confirmation that never comes is asked for once more`() {
        let unconfirmed = Unconfirmed<String>()
        let number = unconfirmed.add("a")
        #expect(unconfirmed.timedOut(number) == "a")
        #expect(unconfirmed.timedOut(number) == nil)
    }

    @Test func `a sender waits for room, and for the end`() async {
        let unconfirmed = Unconfirmed<Int>()
        let numbers = (0..<3).map(unconfirmed.add)
        await unconfirmed.untilAtMost(3)
        let room = Task { await unconfirmed.untilAtMost(2) }
        let end = Task { await unconfirmed.untilAtMost(0) }
        unconfirmed.remove(numbers[0])
        await room.value
        unconfirmed.remove(numbers[1])
        unconfirmed.remove(numbers[2])
        await end.value
    }

    @Test func `cancelling ends the wait`() async {
        let unconfirmed = Unconfirmed<Int>()
        _ = unconfirmed.add(0)
        let task = Task { await unconfirmed.untilAtMost(0) }
        task.cancel()
        await task.value
        #expect(unconfirmed.count == 1)
    }
}
