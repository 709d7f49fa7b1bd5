import MQTTCore
import MessagingWire
import Synchronization
import Transport

/// Answers of one connection that a simulation holds back: acknowledgements and receipts leave late, in an order that the
/// protocol allows. All of them are due when they take more memory than the connection's outbox may.
struct HeldAnswers: Sendable {
    private var held: [(due: Int64, packet: LoopbackPacket, bytes: [UInt8])] = []
    /// How many bytes at the start of the output were held back before.
    private var releasedCount = 0
    private var alarm: LoopAlarm?

    /// What is left of `output`, which holds whole packets only and is about to be written; nil for all of it.
    ///
    /// - Parameter first: the kind and the length of the first packet; nil if the bytes do not begin with one.
    mutating func taken(
        from output: [UInt8], of id: Router.ConnectionID, _ hub: Hub, at now: Int64,
        first: (RawSpan) -> (packet: LoopbackPacket, length: Int)?
    ) -> [UInt8]? {
        var start = releasedCount
        releasedCount = 0
        let longest = hub.answerDelay.load(ordering: .relaxed)
        guard longest > 0 || !held.isEmpty else { return nil }
        var random = hub.loop.random
        var left = Array(output[..<start])
        let bytes = unsafe output.span.bytes
        while start < output.count {
            guard let (packet, length) = first(bytes.extracting(droppingFirst: start)) else { break }
            let whole = output[start..<(start + length)]
            var due: Int64?
            if longest > 0, Self.isAnswer(packet) {
                due = now.advanced(byNanoseconds: Int64.random(in: 0...longest, using: &random))
            }
            // Acknowledgements of one kind keep their order [MQTT-4.6.0-2] [MQTT-4.6.0-3], also after the time of late
            // answers; a receipt may overtake another.
            if case .mqtt = packet, let last = held.last(where: { $0.packet == packet }) {
                due = max(due ?? now, last.due)
            }
            if let due {
                held.append((due, packet, Array(whole)))
            } else {
                left += whole
            }
            start += length
        }
        left += output[start...]
        let size = held.reduce(0) { $0 + $1.bytes.count + MemoryLayout.stride(ofValue: $1) }
        if size > hub.options.limits.maximumOutboxBytes {
            for index in held.indices { held[index].due = now }
        }
        setAlarm(id, hub)
        return left
    }

    private static func isAnswer(_ packet: LoopbackPacket) -> Bool {
        switch packet {
        case .mqtt(.puback), .mqtt(.pubrec), .mqtt(.pubcomp), .mqtt(.suback), .mqtt(.unsuback), .stomp(.receipt): true
        default: false
        }
    }

    private mutating func setAlarm(_ id: Router.ConnectionID, _ hub: Hub) {
        guard let due = held.map(\.due).min() else { return }
        if alarm == nil {
            alarm = LoopAlarm(loop: hub.loop) { [weak hub] now in hub?.connection(id)?.releaseAnswers(at: now) }
        }
        alarm?.set(due)
    }

    /// Puts those that are due into the output: before all else but those that were put there earlier.
    mutating func release(into output: inout [UInt8], at now: Int64) {
        let due = held.enumerated().filter { $1.due <= now }
            .sorted { ($0.element.due, $0.offset) < ($1.element.due, $1.offset) }
        held.removeAll { $0.due <= now }
        if let next = held.map(\.due).min() { alarm?.set(next) }
        let bytes = due.flatMap(\.element.bytes)
        output.insert(contentsOf: bytes, at: releasedCount)
        releasedCount += bytes.count
    }
}
