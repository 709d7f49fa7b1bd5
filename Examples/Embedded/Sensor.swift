import Board
import MQTTCore

/// A thermometer with a lamp: it publishes a reading five times a second with QoS 1, and switches its lamp as messages to
/// `sensor/lamp` say. Its session survives a cut line in memory: readings of that time arrive when the line is back.
@main
struct Sensor: ~Copyable {
    static let interval: Int64 = 200_000_000

    private var engine: MQTTEngine
    private var effects = MQTTEffects()
    private let line = SerialLine()
    private var reading = 0
    private var isLampOn = false
    private var nextReading: Int64 = 0
    /// When to call again, while there is no connection.
    private var nextCall: Int64 = 0

    static func main() {
        var sensor = Sensor()
        sensor.run()
    }

    init() {
        var configuration = MQTTEngineConfiguration(version: .v5_0, clientID: "sensor")
        // The server keeps the session for an hour, and we keep ours in the engine.
        configuration.cleanStart = false
        configuration.sessionExpiry = 3600
        // A line that is cut shows by its silence alone: after three seconds at most.
        configuration.keepAlive = 2
        configuration.pingTimeout = 1_000_000_000
        configuration.connectTimeout = 1_000_000_000
        // What bounds the memory.
        configuration.maximumInFlight = 4
        configuration.receiveMaximum = 4
        configuration.maximumPacketSize = 512
        configuration.maximumControlPacketSize = 512
        configuration.topicAliasMaximum = 0
        configuration.outboundTopicAliasMaximum = 0
        configuration.maximumQueuedMessages = 64
        configuration.maximumQueuedBytes = 4096
        engine = MQTTEngine(configuration: configuration)
        // Each connection subscribes it if the server does not have it.
        let lamp = MQTTSubscriptionRequest(filter: "sensor/lamp", qos: .atLeastOnce)
        do throws(MQTTUsageError) { try engine.want(lamp) } catch { leave(2) }
    }

    /// The loop of "Bring your own transport": what happened goes into the engine, what it wants done comes out.
    private mutating func run() {
        var line = line
        var unread: [UInt8] = []
        while true {
            let deadline = min(engine.nextDeadline, nextReading, engine.phase == .closed ? nextCall : .max)
            let input = line.read(until: deadline)
            let now = board_time()
            switch input {
            case .bytes(let bytes)?:
                unread += bytes
                let consumed = engine.receive(unread.span.bytes, at: now, into: &effects)
                perform(unread, at: now)
                unread.removeFirst(consumed)
            case .ended?: engine.connectionClosed(at: now, into: &effects)
            case nil: break
            }
            if now >= engine.nextDeadline { engine.handleTimeout(at: now, into: &effects) }
            if now >= nextReading { publishReading(at: now) }
            perform([], at: now)
            if engine.phase == .closed {
                unread = []
                nextCall = max(nextCall, now)
                if now >= nextCall { call(at: now) }
            }
            line.write(engine.output)
            engine.output.removeAll(keepingCapacity: true)
            if engine.shouldClose {
                engine.connectionClosed(at: now, into: &effects)
                perform([], at: now)
            }
        }
    }

    private mutating func call(at now: Int64) {
        nextCall = now + 500_000_000
        line.call()
        do throws(MQTTUsageError) { try engine.connectionOpened(at: now) } catch { leave(1) }
    }

    /// Does what the engine asked for, then forgets it.
    private mutating func perform(_ bytes: [UInt8], at now: Int64) {
        for message in effects.messages {
            // There is one subscription: the lamp's.
            isLampOn = bytes[message.payload].elementsEqual([UInt8(ascii: "1")])
            engine.acknowledge(message.delivery, at: now)
        }
        effects.removeAll()
    }

    /// Publishes the number of the reading, the temperature, the lamp and the memory in use.
    private mutating func publishReading(at now: Int64) {
        nextReading = now + Self.interval
        reading += 1
        let tenths = 215 + reading % 10
        let text = "\(reading) \(tenths / 10).\(tenths % 10) \(isLampOn ? "on" : "off") \(memory_peak())"
        // A full queue drops the oldest reading instead of the newest.
        if engine.queuedCount == 64 { _ = engine.dropOldestQueued() }
        do throws(MQTTUsageError) {
            _ = try engine.publish(
                topic: "sensor/readings", payload: Array(text.utf8), qos: .atLeastOnce, token: UInt64(reading), at: now)
        } catch {
            // The window and the queue are full, or the line is closing: this reading is lost.
        }
    }
}
