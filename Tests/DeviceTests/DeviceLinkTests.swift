import MessagingShell
import STOMP
import Synchronization
import TestSupport
import Testing

@testable import MessagingDeviceSupport

/// What a device sends over which connection.
@Suite(.turns)
struct DeviceLinkTests {
    private struct Frame: DeviceFrame {
        var direction: FrameDirection { .sent }
        var description: String { "" }
    }

    /// A client whose states the test decides on.
    private final class ScriptedClient: DeviceClient {
        typealias Failure = STOMPError
        private let updates = Broadcaster<ConnectionState<Failure>>(capacity: 100)
        private let count = Atomic(0)

        var server: BrokerURL? { nil }
        var states: Updates<ConnectionState<Failure>> { updates.updates }
        var connectionCount: Int { count.load(ordering: .relaxed) }
        /// Called when the device watches the states.
        func connect() async throws(Failure) { connects() }
        func disconnect() async {}
        func inspect(showingSecrets: Bool) -> Updates<Frame> { Broadcaster<Frame>(capacity: 1).updates }
        func inspect(into log: FrameLog, as name: String?) {}

        func connects() {
            updates.send(.connecting(attempt: 1))
            count.add(1, ordering: .relaxed)
            updates.send(.connected)
        }

        func loses() {
            updates.send(
                .waiting(
                    .seconds(1), attempt: 1, after: STOMPError(.connectionLost, "lost", answer: nil, underlying: nil)))
        }
    }

    private func post() throws -> Fleet.Post {
        guard case .run(let options) = try LocationsOptions.parse(["--broker", "stomp://x"], environment: [:]) else {
            throw CancellationError()
        }
        let console = Console(output: -1, errors: -1, environment: [:]) { _ in }
        let program = Program(device: .locations, console: console, stop: StopSwitch())
        let fleet = Fleet(
            program: program, options: options.common, name: "x", urls: ["stomp://x"],
            meter: ProgressMeter(unit: "fixes", devices: 1, console: console), frames: nil, publisher: nil,
            isCompact: false, isScrolling: true)
        return Fleet.Post(fleet: fleet, index: 0, id: "car")
    }

    @Test func `nothing is sent over a connection before what the last one left is sent again`() async throws {
        let client = ScriptedClient()
        let link = DeviceLink(client, ReplaySource<Fix>.live(LiveSource()), try post())
        let log = Mutex<[String]>([])
        let entered = Atomic(0)
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let running = Task {
            try await link.run(publish: { _, _ in }) {
                log.withLock { $0.append("again over \(client.connectionCount)") }
                // The first time until the test has seen it.
                if entered.add(1, ordering: .relaxed).newValue == 1 { for await _ in gate {} }
            } _: {
                for _ in 0..<2 {
                    try await link.send { () throws(STOMPError) in
                        log.withLock { $0.append("new over \(client.connectionCount)") }
                    }
                    // The second one is to be sent over a later connection.
                    _ = await eventually { entered.load(ordering: .relaxed) >= 1 }
                }
            }
        }
        #expect(await eventually { log.withLock { $0 } == ["new over 1"] })
        client.loses()
        client.connects()
        #expect(await eventually { entered.load(ordering: .relaxed) >= 1 })
        // While the device prepares this connection, it is lost, and there is another.
        client.loses()
        client.connects()
        open.finish()
        try await running.value
        #expect(log.withLock { $0 } == ["new over 1", "again over 2", "again over 3", "new over 3"])
    }
}
