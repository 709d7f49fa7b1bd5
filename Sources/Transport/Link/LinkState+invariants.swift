// What is always true of what a link and its callers share, whenever the lock is released; in debug builds only.

extension LinkState {
    /// Stops the process where the state contradicts itself. True, so that it is what `assert` checks, and costs nothing in a
    /// release build.
    @usableFromInline
    package borrowing func checkInvariants() -> Bool {
        assert(isAttached == (stream != nil), "Whether there is a stream was noted and has changed.")
        assert(broken == nil || isAttached, "A connection is broken that has ended.")
        assert(outboxWaiters.count == 0 || isAttached, "A caller waits for room in the outbox without a connection.")
        assert(!readingIsPaused || isAttached, "Reading is paused without a connection.")
        assert(!standsStill || isAttached, "Sending stands still without a connection.")
        assert(!standstillIsOver || standsStill, "A standstill is over that was not reported.")
        assert(queuedBytes >= 0 && answerBytes >= 0, "Fewer bytes are on their way than none.")
        return true
    }
}

extension Link where Machine: ~Copyable {
    /// What is always true of the loop's own fields when it has settled; under the lock.
    func checkInvariants(_ state: borrowing LinkState) {
        assert(!isReadingHeldUp || isReadingPaused, "Reading is held up and not paused.")
        assert(isFinishing || isReadingPaused == state.readingIsPaused, "Whether reading is paused is kept twice.")
        assert(!sendIsBlocked || wireStream != nil, "Bytes wait for room in no stream.")
        assert(!sendIsBlocked || state.sending, "Bytes wait for room in the stream, and others may write.")
        assert(!isFinishing || state.isAttached, "Our direction of a stream ends that is gone.")
        assert(layers == nil || !state.callersMaySend, "Callers write past the layers.")
        assert(!state.standsStill || stall != nil, "A standstill was reported that is not watched.")
    }
}
