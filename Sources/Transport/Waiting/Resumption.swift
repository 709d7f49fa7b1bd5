/// A waiter that was taken out under a lock, with the answer that it is resumed with after the lock is released.
@usableFromInline
package struct Resumption<Answer: Sendable>: ~Copyable, Sendable {
    @usableFromInline let waiter: Waiter<Answer>
    @usableFromInline let answer: Answer

    @inlinable
    package init(_ waiter: consuming Waiter<Answer>, _ answer: Answer) {
        self.waiter = waiter
        self.answer = answer
    }

    @inlinable
    package consuming func resume() {
        waiter.resume(returning: answer)
    }
}
