import TestSupport
import Testing

@testable import MessagingDeviceSupport

/// Values that tasks wait for.
@Suite(.turns)
struct WatchedTests {
    @Test func `each task waits for its own condition`() async {
        let values = Watched([1, 2, 3])
        await values.wait { $0.count <= 3 }
        let room = Task { await values.wait { $0.count <= 2 } }
        let end = Task { await values.wait(\.isEmpty) }
        let taken = Task { await values.first { $0.count == 1 ? $0.removeLast() : nil } }
        values.change { $0.removeFirst() }
        await room.value
        values.change { $0.removeFirst() }
        #expect(await taken.value == 3)
        await end.value
    }

    @Test func `cancelling ends the wait`() async {
        let value = Watched(0)
        let task = Task { await value.first { $0 > 0 ? $0 : nil } }
        task.cancel()
        #expect(await task.value == nil)
        value.value = 1
        #expect(await value.first { $0 > 0 ? $0 : nil } == 1)
    }
}
