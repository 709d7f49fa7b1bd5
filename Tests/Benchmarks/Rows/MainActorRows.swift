import Foundation
import MQTT
import STOMP

/// Calls from the main actor beside the same from a task of the pool: what a caller's actor costs.
///
/// Swift resumes every continuation on a thread of the pool, which then hands a task of the main actor over to the main
/// thread. The first row shows what this second switch costs; no call that waits costs less.
struct MainActorRows {
    let rounds: Int
    let count: Int
    let mqtt: () async throws -> MQTTClient
    let stomp: () async throws -> STOMPClient
    private static let payload = [UInt8](repeating: 0x70, count: 24)

    func rows() async throws -> [Row] {
        [
            try await row(
                "A bare continuation, resumed by a thread after 10 µs,", { Resumer() }, disconnect: { $0.end() },
                call: { await $0.wait() }),
            try await row(
                "MQTT QoS 1 round trip", mqtt, disconnect: { await $0.disconnect() },
                call: { client in
                    try await client.publish(Self.payload, to: MQTTRows.topic, qos: .atLeastOnce)
                }),
            try await row(
                "MQTT subscribe and unsubscribe", mqtt, disconnect: { await $0.disconnect() },
                call: { client in
                    try await client.subscribe(to: "main", qos: .atMostOnce).unsubscribe()
                }),
            try await row(
                "MQTT subscribe twice and next()", mqtt, disconnect: { await $0.disconnect() },
                call: { client in
                    let messages = try await client.subscribe(to: MQTTRows.topic, qos: .atMostOnce)
                    // The broker sends one message to whoever subscribes to this.
                    let trigger = try await client.subscribe(to: "flood/1/24", qos: .atMostOnce)
                    var iterator = messages.makeAsyncIterator()
                    _ = try await iterator.next()
                    try await trigger.unsubscribe()
                    try await messages.unsubscribe()
                }),
            try await row(
                "STOMP send with receipt", stomp, disconnect: { await $0.disconnect() },
                call: { client in
                    try await client.sendAndConfirm(Self.payload, to: STOMPRows.destination)
                }),
        ]
    }

    private func row<Client: Sendable>(
        _ name: String, _ make: () async throws -> Client, disconnect: (Client) async -> Void,
        call: @escaping @Sendable (Client) async throws -> Void
    ) async throws -> Row {
        var row = Row("\(name) from the main actor ÷ from a task, median", unit: "ns", isRate: false, goal: "≤ 1.2")
        for _ in 0..<rounds {
            let client = try await make()
            let elsewhere = try await Self.fromTask(client, count, call)
            row.add(ours: try await Self.fromMainActor(client, count, call), limit: elsewhere)
            await disconnect(client)
        }
        return row
    }

    @concurrent private static func fromTask<Client: Sendable>(
        _ client: Client, _ count: Int, _ call: @escaping @Sendable (Client) async throws -> Void
    ) async throws -> Double { try await medianTime(client, count, call) }

    @MainActor private static func fromMainActor<Client: Sendable>(
        _ client: Client, _ count: Int, _ call: @escaping @Sendable (Client) async throws -> Void
    ) async throws -> Double { try await medianTime(client, count, call) }

    private nonisolated(nonsending) static func medianTime<Client: Sendable>(
        _ client: Client, _ count: Int, _ call: @Sendable (Client) async throws -> Void
    ) async throws -> Double {
        var times: [Double] = []
        for _ in 0..<count {
            let start = ContinuousClock.now
            try await call(client)
            times.append((ContinuousClock.now - start) / .nanoseconds(1))
        }
        return median(times)
    }
}

/// A thread that resumes a task 10 µs after it has begun to wait, as an answer of a server would: what every call costs that
/// waits for another thread. Resumed at once, the task would often not have been suspended yet.
private final class Resumer: @unchecked Sendable {
    // Sendable because the semaphore orders the accesses to the continuation.
    private let isWaiting = DispatchSemaphore(value: 0)
    private var continuation: UnsafeContinuation<Void, Never>?

    init() {
        Thread.detachNewThread {
            while true {
                self.isWaiting.wait()
                guard let continuation = self.continuation else { return }
                let start = ContinuousClock.now
                while ContinuousClock.now - start < .microseconds(10) {}
                continuation.resume()
            }
        }
    }

    nonisolated(nonsending) func wait() async {
        await withUnsafeContinuation { continuation in
            self.continuation = continuation
            isWaiting.signal()
        }
    }

    func end() {
        continuation = nil
        isWaiting.signal()
    }
}
