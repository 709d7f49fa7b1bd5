import Host
import MQTTCore

/// The engine of one page: what the page calls is below, what it does for us is in `host.h`.
///
/// This is the loop of "Bring your own transport", turned inside out: a page may not wait, so each thing that happens is a
/// call, and each call ends with `settle`.
final class Page {
    var engine: MQTTEngine
    var effects = MQTTEffects()
    /// Where the page puts what it passes: bytes of the WebSocket, or a topic and a payload.
    var input: ContiguousArray<UInt8> = []
    /// The beginning of a packet whose rest has not come.
    var unread: ContiguousArray<UInt8> = []
    var acknowledged: Int32 = 0
    /// How long to wait before the next attempt to connect, in milliseconds.
    var delay = 250.0
    private var isOpen = false

    init(clientID: String) {
        var configuration = MQTTEngineConfiguration(clientID: clientID)
        configuration.cleanStart = false
        configuration.sessionExpiry = 600
        // Browsers let the timers of a page that is not shown run once a minute.
        configuration.keepAlive = 180
        engine = MQTTEngine(configuration: configuration)
        // Each connection subscribes it if the server does not have it. The filter is valid.
        try? engine.want(.init(filter: "page/#", qos: .atLeastOnce))
    }

    func opened(at now: Int64) {
        do throws(MQTTUsageError) {
            try engine.connectionOpened(at: now)
            isOpen = true
        } catch {
            host_close()
        }
        settle(at: now)
    }

    func received(at now: Int64) {
        unread += input
        let bytes = unread
        let consumed = engine.receive(bytes.span.bytes, at: now, into: &effects)
        for message in effects.messages {
            let topic = Array(effects.topic(of: message, in: bytes.span.bytes).utf8)
            let payload = Array(bytes[message.payload])
            host_message(topic, topic.count, payload, payload.count)
            if message.delivery != 0 { engine.acknowledge(message.delivery, at: now) }
        }
        unread.removeFirst(consumed)
        settle(at: now)
    }

    func closed(at now: Int64) {
        isOpen = false
        unread = []
        engine.connectionClosed(at: now, into: &effects)
        settle(at: now)
        host_open(delay)
        delay = min(delay * 2, 10_000)
    }

    func timedOut(at now: Int64) {
        engine.handleTimeout(at: now, into: &effects)
        settle(at: now)
    }

    /// Publishes what the input holds with QoS 1. Without a connection it waits for the next.
    func publish(topicCount: Int, at now: Int64) -> Bool {
        let topic = String(decoding: input[..<topicCount], as: UTF8.self)
        do throws(MQTTUsageError) {
            _ = try engine.publish(topic: topic, payload: Array(input[topicCount...]), qos: .atLeastOnce, at: now)
        } catch {
            return false
        }
        settle(at: now)
        return true
    }

    /// Does what the engine asks for.
    private func settle(at now: Int64) {
        for event in effects.events {
            if case .connected = event.kind { delay = 250 }
        }
        for completion in effects.completions where completion.outcome == .acknowledged {
            acknowledged += 1
            host_acknowledged(acknowledged)
        }
        effects.removeAll()
        if !engine.output.isEmpty {
            host_write(engine.output, engine.output.count)
            engine.output.removeAll(keepingCapacity: true)
        }
        if engine.shouldClose, isOpen { host_close() }
        host_state(engine.phase == .connected ? 2 : isOpen ? 1 : 0)
        let deadline = engine.nextDeadline
        if deadline < .max { host_wake(Double(max(0, deadline - now)) / 1e6) }
    }
}

/// The page runs on one thread.
nonisolated(unsafe) private var page = Page(clientID: "")

/// The page's clock counts milliseconds.
private func nanoseconds(_ milliseconds: Double) -> Int64 { Int64(milliseconds * 1e6) }

/// Makes room for so many bytes, and returns where the page has to put them.
@_cdecl("input") public func input(_ count: Int32) -> UnsafeMutablePointer<UInt8>? {
    page.input = ContiguousArray(repeating: 0, count: max(1, Int(count)))
    return page.input.withUnsafeMutableBufferPointer { $0.baseAddress }
}

/// Called once, before the connection is opened: the input has the client identifier, another one each time. Of two clients with
/// the same one, a broker ends the connection of the first.
@_cdecl("start") public func start(_ count: Int32) {
    page = Page(clientID: String(decoding: page.input.prefix(Int(count)), as: UTF8.self))
}

@_cdecl("opened") public func opened(_ now: Double) { page.opened(at: nanoseconds(now)) }
@_cdecl("received") public func received(_ now: Double) { page.received(at: nanoseconds(now)) }
@_cdecl("closed") public func closed(_ now: Double) { page.closed(at: nanoseconds(now)) }
@_cdecl("timedOut") public func timedOut(_ now: Double) { page.timedOut(at: nanoseconds(now)) }
@_cdecl("publish") public func publish(_ topicCount: Int32, _ now: Double) -> Int32 {
    page.publish(topicCount: Int(topicCount), at: nanoseconds(now)) ? 1 : 0
}
