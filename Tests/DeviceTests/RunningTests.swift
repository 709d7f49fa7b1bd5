import Synchronization
import TestSupport
import Testing
import Transport

@testable import MessagingDeviceSupport

@Suite(.turns)
struct RunningTests {
    @Test func stoppingCancelsWhatRunsUntilThen() async throws {
        let stop = StopSwitch()
        let task = Task {
            try await stop.untilStopped { try await Task.sleep(for: .seconds(60)) }
        }
        try await Task.sleep(for: .milliseconds(20))
        stop.stop(.signal(2))
        stop.stop(.failure)
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(stop.reason == .signal(2))
        await stop.wait()
    }

    @Test func waitingLastsUntilTheStop() async throws {
        let stop = StopSwitch()
        let hasEnded = Mutex(false)
        let task = Task {
            await stop.wait()
            hasEnded.withLock { $0 = true }
        }
        try await Task.sleep(for: .milliseconds(50))
        #expect(!hasEnded.withLock { $0 })
        stop.stop(.failure)
        await task.value
        #expect(try await stop.untilStopped { Task.isCancelled })
    }

    @Test func theFleetStartsStaggered() async throws {
        let starts = Mutex<[(Int, String, ContinuousClock.Instant)]>([])
        let begin = ContinuousClock.now
        try await DeviceRunner.run(
            ["a", "b", "c"], stop: StopSwitch(), stagger: .milliseconds(30)
        ) { index, id in
            starts.withLock { $0.append((index, id, ContinuousClock.now)) }
        }
        let seen = starts.withLock { $0 }
        #expect(seen.map { "\($0.0)\($0.1)" }.sorted() == ["0a", "1b", "2c"])
        // On a busy machine several may be due at the same time, and start in any order.
        for (index, _, start) in seen { #expect(start - begin >= .milliseconds(30 * index)) }
    }

    @Test func theFirstFailureStopsTheFleetProperly() async throws {
        let stop = StopSwitch()
        let started = Mutex(0)
        let left = Mutex(0)
        await #expect(throws: DeviceFailure(.noPermission, "refused")) {
            try await DeviceRunner.run(["a", "b", "c"], stop: stop, stagger: .milliseconds(200)) { index, _ in
                started.withLock { $0 += 1 }
                if index == 1 { throw DeviceFailure(.noPermission, "refused") }
                await stop.wait()
                left.withLock { $0 += 1 }
            }
        }
        // Usually the third one never starts; whoever did could leave.
        #expect(left.withLock { $0 } == started.withLock { $0 } - 1)
        #expect(stop.reason == .failure)
    }

    @Test(arguments: [
        (TransportError.Code.unknownHost, MessagingDeviceSupport.ExitStatus.unknownHost),
        (.connectionRefused, .unavailable),
        (.timedOut, .lost), (.connectionLost, .lost), (.notTLS, .protocolError), (.tlsVersion, .configuration),
        (.certificateExpired, .configuration), (.certificateNameMismatch, .configuration),
        (.clientCertificateRefused, .noPermission), (.webSocketFailed, .protocolError),
        (.webSocketRefused, .unavailable), (.tlsUnavailable, .configuration),
    ])
    func everyWayNotToConnectHasItsStatus(code: TransportError.Code, status: MessagingDeviceSupport.ExitStatus) {
        let failure = DeviceFailure(connecting: TransportError(code, "words"))
        #expect(failure.status == status)
        #expect(failure.message.hasPrefix("words"))
    }

    @Test func largeFleetsStartWithinTenSeconds() {
        #expect(DeviceRunner.stagger(devices: 1) == .milliseconds(100))
        #expect(DeviceRunner.stagger(devices: 1000) == .milliseconds(10))
    }

    @Test(arguments: [
        (
            "Connections end before the server answers SUBSCRIBE, for longer than requestTimeout; the request may still take effect. Some servers do not answer a request for QoS 2, or for many filters: lower qos or maximumFiltersPerRequest, or raise requestTimeout if the server is slow.",
            "Connections end before the server answers SUBSCRIBE; the request may still take effect."
        ),
        (
            "The server did not confirm the frame within requestTimeout. Check the server, or raise acknowledgementTimeout if it needs longer.",
            "The server did not confirm the frame in time. Check the server."
        ),
        (
            "Nothing answers at localhost:1. Is RabbitMQ running? Call start(), or allow more firstConnectAttempts.",
            "Nothing answers at localhost:1. Is RabbitMQ running?"
        ),
        ("The topic myTopic is refused. Ask for another one.", "The topic myTopic is refused. Ask for another one."),
    ])
    func `programs leave out what an error tells programmers`(message: String, line: String) {
        #expect(DeviceFailure.withoutAdviceToProgrammers(message) == line)
    }

    @Test func theSummaryCountsWhatWasDone() {
        let summary = DeviceSummary(sent: 104, skipped: 1, received: 2, reconnects: 1)
        #expect(
            summary.items(for: .locations, devices: 1, elapsed: .seconds(514)).joined(separator: ", ")
                == "104 fixes sent, 1 old fix skipped, 2 texts received, 1 reconnect, 8:34 elapsed")
        #expect(
            DeviceSummary(sent: 3, unconfirmed: 3).items(for: .locations, devices: 1, elapsed: .zero).joined(
                separator: ", ")
                == "3 fixes sent, 3 unconfirmed, 0 texts received, 0:00 elapsed")
        #expect(
            DeviceSummary(sent: 1).items(for: .motions, devices: 3, elapsed: .zero).joined(separator: ", ")
                == "3 devices, 1 motion sent, 0 alerts received, 0:00 elapsed")
    }
}
