import Messaging

/// Shows the elements of a sequence of updates, from before something starts until after it has ended.
struct Onlooker: Sendable {
    private let task: Task<Void, Never>

    /// Returns once every later element will be shown. `missed` receives the number of those that came too fast.
    static func start<Element: Sendable>(
        _ updates: Updates<Element>, missed: @escaping @Sendable (Int) -> Void,
        show: @escaping @Sendable (Element) -> Void
    ) async -> Onlooker {
        let (starting, hasStarted) = AsyncStream.makeStream(of: Void.self)
        let task = Task {
            var iterator = updates.makeAsyncIterator()
            hasStarted.finish()
            var missedCount = 0
            while let element = await iterator.next() {
                let count = iterator.missedCount
                if count > missedCount { missed(count - missedCount) }
                missedCount = count
                show(element)
            }
        }
        for await _ in starting {}
        return Onlooker(task: task)
    }

    /// Shows what is still waiting, and ends.
    func finish() async {
        // A cancelled iterator ends after what it has.
        task.cancel()
        await task.value
    }
}
