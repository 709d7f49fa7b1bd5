import MessagingShell
import MessagingWire
import Transport

/// Notices that a session store has stored nothing for a time although records wait.
///
/// The alarm is set when records begin to wait, and looks four times in that time, so that a store which answers costs next to
/// nothing, and one that does not is noticed after five quarters of the time at most.
final class StoreWatch: @unchecked Sendable {
    // Sendable because the loop's thread alone touches what changes.
    private var alarm: LoopAlarm?
    private var progress = CountedProgress(0, at: 0)
    private let loop: EventLoop
    private let patience: Int64
    private let isSilent: @Sendable () -> Void

    /// - Parameters:
    ///   - patience: how long the store may store nothing, in nanoseconds.
    ///   - isSilent: called when it has stored nothing for so long, and again each time.
    init(loop: EventLoop, patience: Int64, isSilent: @escaping @Sendable () -> Void) {
        self.loop = loop
        // Not again and again without a pause.
        self.patience = max(1_000_000_000, patience)
        self.isSilent = isSilent
    }

    // MARK: On the loop's thread

    /// Records wait since now.
    func begin(_ journal: MQTTJournal) {
        guard let stored = journal.progress() else { return }
        progress = CountedProgress(stored, at: loop.timeAwake)
        alarm = LoopAlarm(loop: loop) { [weak self, weak journal] _ in
            if let journal { self?.look(journal) }
        }
        setAlarm()
    }

    /// The store is closed.
    func end() { alarm?.set(.max) }

    private func look(_ journal: MQTTJournal) {
        guard let stored = journal.progress() else { return }
        let isSilent = progress.stands(stored, for: patience, at: loop.timeAwake)
        setAlarm()
        if isSilent { self.isSilent() }
    }

    private func setAlarm() { alarm?.set(loop.now.advanced(byNanoseconds: patience / 4)) }
}
