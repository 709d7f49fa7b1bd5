/// A binary heap of handlers by deadline. Each handler has at most one deadline and knows its place, so that moving
/// or cancelling it costs log n.
struct TimerHeap {
    private(set) var entries: [LoopHandler] = []

    var count: Int { entries.count }
    var nextDeadline: Int64 { entries.first?.deadline ?? .max }

    /// Sets, moves or (with `.max`) cancels the deadline of `handler`.
    mutating func set(_ handler: LoopHandler, to deadline: Int64) {
        guard deadline != handler.deadline else { return }
        let earlier = deadline < handler.deadline
        handler.deadline = deadline
        if deadline == .max {
            remove(handler)
        } else if handler.timerIndex < 0 {
            handler.timerIndex = entries.count
            entries.append(handler)
            siftUp(handler.timerIndex)
        } else if earlier {
            siftUp(handler.timerIndex)
        } else {
            siftDown(handler.timerIndex)
        }
    }

    /// Takes out the first handler whose deadline is not after `now`.
    mutating func popExpired(at now: Int64) -> LoopHandler? {
        guard let first = entries.first, first.deadline <= now else { return nil }
        first.deadline = .max
        remove(first)
        return first
    }

    mutating func removeAll() {
        for handler in entries {
            handler.timerIndex = -1
            handler.deadline = .max
        }
        entries = []
    }

    private mutating func remove(_ handler: LoopHandler) {
        let index = handler.timerIndex
        guard index >= 0 else { return }
        handler.timerIndex = -1
        let last = entries.removeLast()
        guard last !== handler else { return }
        entries[index] = last
        last.timerIndex = index
        siftUp(index)
        siftDown(last.timerIndex)
    }

    private mutating func siftUp(_ start: Int) {
        var index = start
        while index > 0 {
            let parent = (index - 1) / 2
            guard entries[index].deadline < entries[parent].deadline else { return }
            swap(index, parent)
            index = parent
        }
    }

    private mutating func siftDown(_ start: Int) {
        var index = start
        while true {
            let left = 2 * index + 1
            guard left < entries.count else { return }
            let right = left + 1
            let child = right < entries.count && entries[right].deadline < entries[left].deadline ? right : left
            guard entries[child].deadline < entries[index].deadline else { return }
            swap(index, child)
            index = child
        }
    }

    private mutating func swap(_ one: Int, _ other: Int) {
        entries.swapAt(one, other)
        entries[one].timerIndex = one
        entries[other].timerIndex = other
    }
}
