// The code of Sources/MessagingShell/MessagingShell.docc/Workers.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import Foundation
import MQTT
import STOMP

struct PizzaOrder: Codable, Sendable, Equatable {
    var number: Int
    var pizza: String
}

struct Bill: Codable, Sendable, Equatable {
    var order: Int
    var euros: Double
}

extension STOMPDestination<PizzaOrder> {
    static let pizzaOrders = STOMPDestination("/queue/pizza-orders", as: .json)
}

extension STOMPDestination<Bill> {
    static let bills = STOMPDestination("/queue/bills", as: .json)
}

/// Bills orders until its task is cancelled.
func billOrders(_ client: STOMPClient) async throws {
    do {
        let orders = try await client.subscribe(
            to: .pizzaOrders, acknowledgement: .clientIndividual, options: STOMPSubscribeOptions(prefetch: 10))
        // After a reconnect the buffer may hold orders that the broker delivers again.
        for try await order in orders where !order.isStale { try await bill(order, client) }
    } catch {
        guard (error as? STOMPError)?.code == .cancelled else { throw error }
    }
}

/// Bills one order.
func bill(_ order: STOMPDecodedMessage<PizzaOrder>, _ client: STOMPClient) async throws {
    do {
        let bill = Bill(order: try order.value.number, euros: 9.5)
        try await client.withTransaction { transaction in
            try await client.send(bill, to: .bills, in: transaction)
            try order.acknowledge(in: transaction)
        }
    } catch let failure as DecodeFailure {
        print("Not an order:", failure.message)
        // Throws if the connection is lost now: the message is then delivered and rejected once more.
        try? order.reject(requeue: false)
    } catch {
        guard let error = error as? STOMPError,
            [.notConnected, .connectionLost, .stale, .timedOut].contains(error.code)
        else { throw error }
        // The client reconnects automatically, and the broker delivers the order again, unless it was billed.
        print("Order postponed:", error.message)
    }
}

/// Works until the process receives SIGTERM.
func runWorker(_ url: String) async throws {
    let client = STOMPClient(url)
    await client.start()
    let worker = Task { try await billOrders(client) }
    let termination = DispatchSource.makeSignalSource(signal: SIGTERM)
    termination.setEventHandler { @Sendable in worker.cancel() }
    // Until Dispatch has registered the source, a signal ends the program as usual, and none is lost.
    await withCheckedContinuation { registered in
        termination.setRegistrationHandler { @Sendable in registered.resume() }
        termination.activate()
    }
    defer { termination.cancel() }
    #if canImport(Darwin)
        // There the signal would end the program now too. Dispatch sees it nevertheless.
        signal(SIGTERM, SIG_IGN)
    #endif
    try await worker.value
    await client.disconnect()
}

/// Bills one order at least once; use it in place of `bill`.
func billAtLeastOnce(_ order: STOMPDecodedMessage<PizzaOrder>, _ client: STOMPClient) async throws {
    do {
        let bill = Bill(order: try order.value.number, euros: 9.5)
        try await client.sendAndConfirm(bill, to: .bills)
        try order.acknowledge()
    } catch let failure as DecodeFailure {
        print("Not an order:", failure.message)
        try? order.reject(requeue: false)
    } catch {
        guard let error = error as? STOMPError,
            [.notConnected, .connectionLost, .stale, .timedOut].contains(error.code)
        else { throw error }
        // The broker delivers the order again, and it may be billed twice.
        print("Order postponed:", error.message)
    }
}

/// Handles at most `limit` orders at the same time. When its task is cancelled it takes no further order, and returns when
/// those in progress are finished.
func handleOrders(
    _ client: STOMPClient, atOnce limit: Int = 8,
    by handle: @escaping @Sendable (STOMPDecodedMessage<PizzaOrder>) async throws -> Void
) async throws {
    let orders = try await client.subscribe(
        to: .pizzaOrders, acknowledgement: .clientIndividual, options: STOMPSubscribeOptions(prefetch: limit))
    try await withThrowingTaskGroup(of: Void.self) { group in
        do {
            var inHand = 0
            for try await order in orders {
                // A cancelled reader is still given what has arrived; left unanswered, it stays with the broker.
                if Task.isCancelled { break }
                if inHand == limit {
                    try await group.next()
                    inHand -= 1
                }
                // The inner task is not cancelled with the reader.
                group.addTask { try await Task { try await handle(order) }.value }
                inHand += 1
            }
        } catch {
            guard (error as? STOMPError)?.code == .cancelled else { throw error }
        }
        try await group.waitForAll()
    }
    // An order can be acknowledged only as long as the subscription exists.
    withExtendedLifetime(orders) {}
}

/// Bills several orders at once until its task is cancelled.
func billOrdersAtOnce(_ client: STOMPClient) async throws {
    try await handleOrders(client) { order in try await bill(order, client) }
}

/// Copies readings to a queue until its task is cancelled, then disconnects.
func runBridge(from mqtt: MQTTClient, to stomp: STOMPClient) async throws {
    // Before the client connects: what the session holds comes to this sequence.
    let readings = mqtt.subscription(to: "home/+/reading", acknowledgement: .manual)
    await mqtt.start()
    await stomp.start()
    var failure: (any Error)?
    do {
        try await carry(readings, to: stomp)
    } catch {
        failure = error
    }
    await mqtt.disconnect()
    await stomp.disconnect()
    // Released while it is connected, the subscription would end for the session too, and readings would be lost.
    withExtendedLifetime(readings) {}
    if let failure { throw failure }
}

func carry(_ readings: MQTTSubscription, to stomp: STOMPClient) async throws {
    do {
        // Waits for the broker. Throws if it refuses the password, which would otherwise be noticed with the first reading.
        try await stomp.connect()
        for try await reading in readings {
            try await deliver(reading, to: stomp)
            reading.acknowledge()
        }
    } catch {
        guard (error as? MQTTError)?.code == .cancelled || (error as? STOMPError)?.code == .cancelled
        else { throw error }
    }
}

/// Returns when the broker has confirmed the reading, over a reconnect if need be.
func deliver(_ reading: MQTTMessage, to stomp: STOMPClient) async throws {
    let options = STOMPSendOptions(persistent: true, headers: ["topic": reading.topic])
    while true {
        do throws(STOMPError) {
            return try await stomp.sendAndConfirm(reading.bytes, to: "/queue/readings", options: options)
        } catch {
            guard [.notConnected, .connectionLost, .timedOut].contains(error.code) else { throw error }
            // Returns when the client is connected again, and throws when it has stopped connecting.
            try await stomp.connect()
        }
    }
}

/// Makes the two ends of the bridge.
func makeBridge(_ mqttURL: String, _ stompURL: String) -> (mqtt: MQTTClient, stomp: STOMPClient) {
    var configuration = MQTTConfiguration(clientID: "bridge-1")
    configuration.version = .v5_0
    configuration.cleanStart = false
    configuration.sessionExpiry = .seconds(86_400)
    return (MQTTClient(mqttURL, configuration: configuration), STOMPClient(stompURL))
}
