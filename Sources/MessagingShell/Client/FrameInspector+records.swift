package import MessagingFrames

/// Sequences of what a link exchanges, each with a log of its own behind it.
extension FrameInspector {
    /// Records that wait for a slow reader of a sequence. As many of 4 KiB fit into its log.
    private static var maximumRecords: Int { 1_024 }

    /// What was exchanged from now on, decoded by the reader.
    package func records(showingSecrets: Bool) -> Updates<Record> {
        updates(showingSecrets: showingSecrets) { $0 as? Record }
    }

    /// The steps of messages from now on.
    package var messageEvents: Updates<MessageEvent> { updates(showingSecrets: false) { $0.messageEvent } }

    private func updates<Element>(
        showingSecrets: Bool, _ make: @escaping @Sendable (any FrameContent) -> Element?
    ) -> Updates<Element> {
        Updates {
            let log = FrameLog(
                limit: Self.maximumRecords, bytes: Self.maximumRecords << 12, keepsSecrets: showingSecrets)
            let buffer = UpdateBuffer<Element>(capacity: Self.maximumRecords) {
                let (frames, droppedCount) = log.take()
                let lostCount = frames.count { !$0.isWhole && $0.content is InvalidFrame }
                return (frames.compactMap { make($0.content) }, droppedCount + lostCount)
            }
            self.observe(log, as: "") { [weak buffer] isLast in buffer?.sourceChanged(isLast: isLast) }
            return buffer
        }
    }
}
