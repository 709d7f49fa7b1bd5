import Transport

/// Turns what a link exchanges into records of frames, for whoever looks on; costs nothing but a look while nobody does.
///
/// Each onlooker has a bounded buffer and misses the oldest records when it is slow: a connection never waits for it.
package final class FrameInspector<Record: Sendable>: LinkTap {
    /// Reads whole frames.
    package typealias Decode =
        @Sendable (_ bytes: RawSpan, _ direction: FrameDirection, _ showsSecrets: Bool) -> [Record]

    // Two, so that who may not see secrets does not get them because somebody else may.
    private let masked = Broadcaster<Record>(capacity: 1024)
    private let complete = Broadcaster<Record>(capacity: 1024)
    private let decode: Wrapped

    private struct Wrapped: Sendable {
        let call: Decode
    }

    package init(_ decode: @escaping Decode) {
        self.decode = Wrapped(call: decode)
    }

    package func frames(showingSecrets: Bool) -> Updates<Record> {
        showingSecrets ? complete.updates : masked.updates
    }

    package func sent(_ bytes: RawSpan) {
        record(bytes, .sent)
    }

    package func received(_ bytes: RawSpan) {
        record(bytes, .received)
    }

    private func record(_ bytes: RawSpan, _ direction: FrameDirection) {
        show(bytes, direction, to: masked, showsSecrets: false)
        show(bytes, direction, to: complete, showsSecrets: true)
    }

    private func show(
        _ bytes: RawSpan, _ direction: FrameDirection, to audience: Broadcaster<Record>, showsSecrets: Bool
    ) {
        guard audience.hasListeners else { return }
        for record in decode.call(bytes, direction, showsSecrets) { audience.send(record) }
    }

    package func finish() {
        masked.finish()
        complete.finish()
    }
}
