import MQTT

/// What a second thread for the clients of a process brings, beside the same clients on one.
struct ThreadRows {
    let port: String
    let rounds: Int
    let scale: Double

    func rows() async throws -> [Row] {
        let (publishing, receiving) = (64, 8)
        let messages = max(1, Int(5_000 * scale))
        let traffic = Traffic(count: messages * 5, topics: 100, payload: nil, qos: .atLeastOnce, window: 20)
        return [
            try await row("QoS 1 over \(publishing) connections", publishing, messages) { client in
                try await Self.publish(messages, with: client)
            },
            try await row("QoS 1 over \(publishing) connections on their executors", publishing, messages) { client in
                try await client.withExecutor { try await Self.publish(messages, with: client) }
            },
            try await row("receive and hash over \(receiving) connections", receiving, traffic.count) { client in
                try await Self.receive(traffic, with: client)
            },
            try await row(
                "receive and hash over \(receiving) connections on their executors", receiving, traffic.count
            ) { client in
                try await client.withExecutor { try await Self.receive(traffic, with: client) }
            },
        ]
    }

    /// - Parameters:
    ///   - each: how many messages each client has.
    ///   - run: what each of them does, in a task of its own.
    private func row(
        _ name: String, _ clients: Int, _ each: Int, _ run: @escaping @Sendable (MQTTClient) async throws -> Void
    ) async throws -> Row {
        var row = Row("\(name), threadCount 2; limit: threadCount 1", unit: "msg/s", goal: "–")
        for _ in 0..<rounds {
            let count = clients * each
            let one = try await costs(of: clients, threads: 1, run)
            row.add(try await costs(of: clients, threads: 2, run), count, limit: Double(count) / one.seconds)
        }
        return row
    }

    private func costs(
        of count: Int, threads: Int, _ run: @escaping @Sendable (MQTTClient) async throws -> Void
    ) async throws -> Costs {
        var configuration = MQTTConfiguration()
        configuration.threadCount = threads
        // What the broker sent would be missing on another connection, and the row would wait for it for ever.
        configuration.reconnect = .never
        var clients: [MQTTClient] = []
        for _ in 0..<count {
            let client = MQTTClient("mqtt://127.0.0.1:\(port)", configuration: configuration)
            try await client.connect()
            clients.append(client)
        }
        let costs = try await measured { [clients] in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for client in clients { group.addTask { try await run(client) } }
                try await group.waitForAll()
            }
        }
        for client in clients { await client.disconnect() }
        return costs
    }

    /// One message is under way at a time.
    private static func publish(_ count: Int, with client: MQTTClient) async throws {
        for _ in 0..<count { try await client.publish([1, 2, 3, 4], to: MQTTRows.topic, qos: .atLeastOnce) }
    }

    /// Payloads of up to 4 KiB, of which the task looks at each byte, as one that decodes them.
    private static func receive(_ traffic: Traffic, with client: MQTTClient) async throws {
        let messages = try await client.subscribe(to: "growth/#", qos: .atLeastOnce)
        let flood = Task { try await client.subscribe(to: "traffic/" + traffic.description, qos: .atLeastOnce) }
        var (seen, hash) = (0, UInt64(0xcbf2_9ce4_8422_2325))
        for try await message in messages {
            for byte in message.payload { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
            seen += 1
            if seen == traffic.count { break }
        }
        precondition(seen == traffic.count, "the broker sent \(seen) messages of \(traffic.count); hash \(hash)")
        _ = try await flood.value
    }
}
