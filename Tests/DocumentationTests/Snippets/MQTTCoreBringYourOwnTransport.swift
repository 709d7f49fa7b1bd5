// The code of Sources/MQTTCore/MQTTCore.docc/BringYourOwnTransport.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTTCore

/// A connection that carries bytes, and a clock.
protocol ByteLine {
    /// Nanoseconds since any moment; never goes back.
    var now: Int64 { get }
    mutating func write(_ bytes: [UInt8])
    /// Waits for bytes. None at the deadline; nil when the connection has ended.
    mutating func read(until deadline: Int64) -> [UInt8]?
    mutating func close()
}

/// Runs one connection. `perform` does what the engine reports, with the bytes that its messages lie in.
func runConnection(
    _ engine: inout MQTTEngine, over line: inout some ByteLine,
    perform: (inout MQTTEngine, MQTTEffects, ContiguousArray<UInt8>) throws(MQTTUsageError) -> Void
) throws(MQTTUsageError) {
    var effects = MQTTEffects()
    var unread: ContiguousArray<UInt8> = []
    try engine.connectionOpened(at: line.now)
    while true {
        // What to do: write, and close when the engine has said its last.
        if !engine.output.isEmpty {
            line.write(engine.output)
            engine.output.removeAll(keepingCapacity: true)
        }
        if engine.shouldClose { break }
        // What happened: bytes came, time passed, or the connection ended.
        guard let bytes = line.read(until: engine.nextDeadline) else { break }
        unread += bytes
        let consumed = engine.receive(unread.span.bytes, at: line.now, into: &effects)
        if line.now >= engine.nextDeadline { engine.handleTimeout(at: line.now, into: &effects) }
        try perform(&engine, effects, unread)
        effects.removeAll()
        // The rest is the beginning of a packet: it is given again, with what follows.
        unread.removeFirst(consumed)
    }
    line.close()
    engine.connectionClosed(at: line.now, into: &effects)
    try perform(&engine, effects, unread)
}

/// Each connection subscribes the readings, if the server does not have that from an earlier one.
func wantReadings(_ engine: inout MQTTEngine) throws(MQTTUsageError) {
    try engine.want(MQTTSubscriptionRequest(filter: "readings/+", qos: .atLeastOnce))
}

/// Answers each reading, and acknowledges it.
func answerReadings(
    _ engine: inout MQTTEngine, _ effects: MQTTEffects, _ bytes: ContiguousArray<UInt8>, at now: Int64
) throws(MQTTUsageError) {
    for message in effects.messages {
        let topic = effects.topic(of: message, in: bytes.span.bytes)
        _ = try engine.publish(
            topic: "seen/" + topic, payload: Array(bytes[message.payload]), qos: .atLeastOnce, token: 2, at: now)
        if message.delivery != 0 { engine.acknowledge(message.delivery, at: now) }
    }
}
