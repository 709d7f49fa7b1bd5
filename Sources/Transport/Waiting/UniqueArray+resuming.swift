package import Wire

extension UniqueArray where Element: ~Copyable {
    /// Resumes waiters that were taken out under a lock.
    package mutating func resume<Answer: Sendable>(returning answer: Answer) where Element == Waiter<Answer> {
        drain { $0.resume(returning: answer) }
    }
}
