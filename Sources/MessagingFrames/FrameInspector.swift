import MessagingWire
import Synchronization
import Transport

/// Puts what a link exchanges into logs: those of the user, and one behind each sequence of records.
///
/// A log is bounded and misses the oldest frames when its reader is slow; a connection never waits for it.
package final class FrameInspector<Record: Sendable>: LinkTap {
    /// Finds the frames in bytes, and the secrets in the frames.
    package typealias Cut = @Sendable (_ bytes: RawSpan, _ direction: FrameDirection, _ cuts: inout FrameCuts) -> Void

    private struct Observer: Sendable {
        /// Weak, because a log without a reader needs no frames.
        weak var log: FrameLog?
        let source: FrameLogSource
        /// Called after frames were added, and when no others will come.
        var notify: (@Sendable (_ isLast: Bool) -> Void)?
    }

    private struct State: Sendable {
        var observers: [Observer] = []
        var isFinished = false
    }

    private let state = Lock(State())
    // Used again and again; sending and receiving may happen at the same time.
    private let sentCuts = Lock(FrameCuts())
    private let receivedCuts = Lock(FrameCuts())
    private let cut: Cut

    package init(_ cut: @escaping Cut) {
        self.cut = cut
    }

    // MARK: For readers

    /// Feeds `log` from now on; once is enough.
    package func feed(_ log: FrameLog, as name: String) {
        observe(log, as: name)
    }

    /// Feeds `log` from now on.
    ///
    /// - Parameter notify: called after frames were added, and when no others will come.
    package func observe(_ log: FrameLog, as name: String, notify: (@Sendable (_ isLast: Bool) -> Void)? = nil) {
        let isFinished = state.withLock { state in
            if !state.isFinished, !state.observers.contains(where: { $0.log === log }) {
                state.observers.append(Observer(log: log, source: FrameLogSource(name), notify: notify))
            }
            return state.isFinished
        }
        if isFinished { notify?(true) }
    }

    package func stopFeeding(_ log: FrameLog) {
        let observer = state.withLock { state in
            state.observers.firstIndex { $0.log === log }.map { state.observers.remove(at: $0) }
        }
        if let observer { log.ended(observer.source) }
    }

    // MARK: For the link

    package var isWatched: Bool { !observers.isEmpty }

    /// Readers whose log is still in use.
    private var observers: [Observer] {
        state.withLock { state in
            state.observers.removeAll { $0.log == nil }
            return state.observers
        }
    }

    package func sent(_ bytes: RawSpan) {
        record(bytes, .sent, sentCuts)
    }

    package func received(_ bytes: RawSpan) {
        record(bytes, .received, receivedCuts)
    }

    private func record(_ bytes: RawSpan, _ direction: FrameDirection, _ reused: borrowing Lock<FrameCuts>) {
        let observers = self.observers
        guard !observers.isEmpty else { return }
        reused.withLock { cuts in
            cuts.removeAll()
            cut(bytes, direction, &cuts)
            let moment = FrameMoment(direction)
            for observer in observers { observer.log?.append(cuts, of: bytes, at: moment, from: observer.source) }
        }
        for observer in observers { observer.notify?(false) }
    }

    package func finish() {
        let observers = state.withLock { state in
            state.isFinished = true
            defer { state.observers = [] }
            return state.observers
        }
        for observer in observers {
            observer.log?.ended(observer.source)
            observer.notify?(true)
        }
    }
}
