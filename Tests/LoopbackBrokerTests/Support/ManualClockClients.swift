import ClientTestSupport
import Foundation
import LoopbackBroker
import MQTT
import STOMP
import Transport

/// Runs a test with a client of MQTT 5.0, connected to a broker on the same manual clock.
func withMQTT(_ body: (LoopbackBroker, MQTTClient, ManualClock) async throws -> Void) async throws {
    let clock = try ManualClock()
    let broker = try await LoopbackBroker.judged(clock: clock)
    var configuration = MQTTConfiguration(clientID: "meter")
    configuration.version = .v5_0
    configuration.sessionExpiry = .seconds(600)
    let client = MQTTClient(broker.urls.mqtt ?? "", configuration: configuration, clock: clock)
    try await client.connect()
    try await body(broker, client, clock)
    await client.disconnect()
    await broker.stop()
}

/// Runs a test with a STOMP client, connected to a broker on the same manual clock.
func withSTOMP(_ body: (LoopbackBroker, STOMPClient, ManualClock) async throws -> Void) async throws {
    let clock = try ManualClock()
    let broker = try await LoopbackBroker.judged(clock: clock)
    let client = STOMPClient(broker.urls.stomp ?? "", clock: clock)
    try await client.connect()
    try await body(broker, client, clock)
    await client.disconnect()
    await broker.stop()
}

/// One end of a memory pair on which a thread that is not the loop's waits before it writes, as one that has lost the
/// processor.
final class StallingStream: ByteStream {
    private let inner: MemoryStream
    private let loop: EventLoop
    /// Ends with the first PUBLISH that is to be written.
    let publishing = PendingCall<Void>()
    private let callersMayContinue = DispatchSemaphore(value: 0)

    init(_ inner: MemoryStream, loop: EventLoop) {
        self.inner = inner
        self.loop = loop
    }

    func write(from buffer: UnsafeRawBufferPointer) -> IOResult {
        if let first = buffer.first, first >> 4 == 3 { publishing.end(()) }
        if !loop.isCurrent { callersMayContinue.wait() }
        return inner.write(from: buffer)
    }

    func letCallersContinue() { callersMayContinue.signal() }

    var progress: StreamProgress { inner.progress }
    var callersMaySend: Bool { inner.callersMaySend }
    var peerName: String { inner.peerName }
    func attach(_ handler: LoopHandler, interest: Readiness) { inner.attach(handler, interest: interest) }
    func setInterest(_ interest: Readiness) { inner.setInterest(interest) }
    func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult { inner.read(into: buffer) }
    func endWriting() { inner.endWriting() }
    func detach() { inner.detach() }
    func close() { inner.close() }
}

/// A store on a slow disk.
final class SlowStore: SessionStore {
    private let memory = MemorySessionStore()

    func append(_ records: [MQTTStoreRecord]) throws {
        usleep(20_000)
        try memory.append(records)
    }

    var limits: SessionStoreLimits { memory.limits }
    func open() throws -> StoredSession { try memory.open() }
    func setClientID(_ clientID: String) throws { try memory.setClientID(clientID) }
    func removeAll() throws { try memory.removeAll() }
    func close() { memory.close() }
}
