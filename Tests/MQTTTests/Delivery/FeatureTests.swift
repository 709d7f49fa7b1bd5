import LoopbackBroker
import MQTT
import TestSupport
import Testing

@Suite("Delivery: captures, several filters, requests", .turns)
struct FeatureTests {
    @Test func `captures are what the wildcards stand for`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = .v5_0 }
        let rooms = try await client.subscribe(to: "house/+/+/#")
        let shared = try await client.subscribe(to: "$share/group/garden/+")
        try await client.publish("x", to: "house/kitchen/lamp/left/state", qos: .atLeastOnce)
        try await client.publish("x", to: "house/hall/lamp", qos: .atLeastOnce)
        try await client.publish("x", to: "garden/pond", qos: .atLeastOnce)
        let captures = try await rooms.first(2).map(\.captures)
        #expect(captures == [["kitchen", "lamp", "left/state"], ["hall", "lamp", ""]])
        #expect(try await shared.first(1).first?.captures == ["pond"])
        await client.disconnect()
        await bench.stop()
    }

    @Test func `several filters are one packet and one sequence, and a message comes once`() async throws {
        let bench = try await Bench { $0.faults.refusedFilters = ["no/#"] }
        let client = try await bench.connected()
        let messages = try await client.subscribe(to: [
            .init(filter: "a/#", qos: .atLeastOnce), .init(filter: "no/#", qos: .atLeastOnce),
            .init(filter: "+/b", qos: .exactlyOnce),
        ])
        #expect(messages.reasonCodes.map(\.isError) == [false, true, false])
        #expect(messages.grantedQoS == .exactlyOnce && messages.filters.count == 3)
        for topic in ["a/b", "x/b", "a/c"] { try await client.publish("x", to: topic, qos: .atLeastOnce) }
        #expect(try await messages.first(3).map(\.topic) == ["a/b", "x/b", "a/c"])
        #expect(client.counters.messagesReceived == 3)
        await bench.cut()
        #expect(await eventually { client.counters.connections == 2 })
        #expect(
            await eventually {
                _ = try? await client.publish("y", to: "x/b", qos: .atLeastOnce)
                return client.counters.messagesReceived > 3
            })
        try await messages.unsubscribe()
        await #expect { _ = try await client.subscribe(to: [.init(filter: "no/#", qos: .atLeastOnce)]) } throws: {
            ($0 as? MQTTError)?.code == .refused
        }
        await #expect { _ = try await client.subscribe(to: []) } throws: { ($0 as? MQTTError)?.code == .invalidRequest }
        await client.disconnect()
        await bench.stop()
    }

    @Test func `requests get their own responses, in any order`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = .v5_0 }
        let server = try await bench.connected { $0.version = .v5_0 }
        let requests = try await server.subscribe(to: "double")
        let serving = Task {
            var held: MQTTMessage?
            for try await request in requests {
                // Every other answer is late.
                guard let earlier = held else {
                    held = request
                    continue
                }
                held = nil
                for message in [request, earlier] {
                    try await server.reply(to: message, with: message.bytes + message.bytes)
                }
            }
        }
        let answers = try await withThrowingTaskGroup(of: (Int, String?).self) { group in
            for number in 0..<20 {
                group.addTask {
                    (number, try await client.request(Array("\(number)".utf8), to: "double", timeout: .patience).text)
                }
            }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        #expect(answers == Dictionary(uniqueKeysWithValues: (0..<20).map { ($0, "\($0)\($0)") }))
        await #expect { try await client.request([1], to: "nobody", timeout: .patience) } throws: {
            ($0 as? MQTTError)?.reasonCode == .noMatchingSubscribers
        }
        // Its first request waits for a second one.
        await #expect { try await client.request([1], to: "double", timeout: .milliseconds(50)) } throws: {
            ($0 as? MQTTError)?.code == .timedOut
        }
        serving.cancel()
        await client.disconnect()
        await server.disconnect()
        await bench.stop()
    }

    @Test func `a request survives a lost connection, and ends with its task and with the client`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = .v5_0 }
        let server = try await bench.connected { $0.version = .v5_0 }
        var requests = try await server.subscribe(to: "ask").makeAsyncIterator()
        let surviving = Task { try await client.request([1], to: "ask", timeout: .patience) }
        let first = try #require(try await requests.next())
        let events = (client.events, server.events)
        await bench.cut()
        await events.0.untilResubscribed("responses/")
        await events.1.untilResubscribed("ask")
        // A message without Correlation Data is no reply, even to the only request.
        try await server.publish([9], to: try #require(first.properties.responseTopic), qos: .atLeastOnce)
        try await server.reply(to: first, with: [2])
        #expect(try await surviving.value.bytes == [2])
        let cancelled = Task { try await client.request([3], to: "ask", timeout: .patience) }
        _ = try await requests.next()
        cancelled.cancel()
        await #expect { try await cancelled.value } throws: { ($0 as? MQTTError)?.code == .cancelled }
        let stopped = Task { try await client.request([4], to: "ask", timeout: .patience) }
        _ = try await requests.next()
        await client.disconnect()
        await #expect { try await stopped.value } throws: { ($0 as? MQTTError)?.code == .disconnected }
        // The next connection has another subscription for responses.
        try await client.connect()
        let again = Task { try await client.request([5], to: "ask", timeout: .patience) }
        try await server.reply(to: try #require(try await requests.next()), with: [6])
        #expect(try await again.value.bytes == [6])
        await client.disconnect()
        await server.disconnect()
        await bench.stop()
    }

    @Test(arguments: MQTTVersion.allCases)
    func `requests whose topics tell the responses apart work with every version`(version: MQTTVersion) async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = version }
        let server = try await bench.connected { $0.version = version }
        try await server.publish("old", to: "answer", qos: .atLeastOnce, retain: true)
        let requests = try await server.subscribe(to: "ask/+")
        let serving = Task {
            var held: [MQTTMessage] = []
            for try await request in requests {
                held.append(request)
                guard held.count == 10 else { continue }
                // The last one is answered first.
                for request in held.reversed() {
                    let text = request.text ?? ""
                    try await server.publish(text + text, to: "answer/\(request.captures[0])", qos: .atLeastOnce)
                }
                break
            }
        }
        let answers = try await withThrowingTaskGroup(of: (Int, String?).self) { group in
            for number in 0..<10 {
                group.addTask {
                    let answer = try await client.request(
                        "\(number)", to: "ask/{id}", responseTopic: "answer/{id}", timeout: .patience)
                    return (number, answer.text)
                }
            }
            return try await group.reduce(into: [:]) { $0[$1.0] = $1.1 }
        }
        #expect(answers == Dictionary(uniqueKeysWithValues: (0..<10).map { ($0, "\($0)\($0)") }))
        try await serving.value
        // What was retained is no response.
        await #expect {
            try await client.request([1], to: "nobody", responseTopic: "answer", timeout: .milliseconds(50))
        } throws: {
            ($0 as? MQTTError)?.code == .timedOut
        }
        let cancelled = Task {
            try await client.request([1], to: "nobody", responseTopic: "answer", timeout: .patience)
        }
        cancelled.cancel()
        await #expect { try await cancelled.value } throws: { ($0 as? MQTTError)?.code == .cancelled }
        await client.disconnect()
        await server.disconnect()
        await bench.stop()
    }

    @Test func `a request expires with its timeout, unless it has an expiry of its own`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = .v5_0 }
        let server = try await bench.connected { $0.version = .v5_0 }
        let requests = try await server.subscribe(to: "ask")
        let asking = Task {
            _ = try await client.request([1], to: "ask", timeout: .seconds(3_600))
            _ = try await client.request([2], to: "ask", responseTopic: "answer", timeout: .seconds(3_600))
            var own = MQTTProperties()
            own.messageExpiryInterval = 86_400
            _ = try await client.request([3], to: "ask", timeout: .seconds(3_600), properties: own)
        }
        var expiries: [UInt32?] = []
        for try await request in requests {
            expiries.append(request.properties.messageExpiryInterval)
            if expiries.count == 2 {
                try await server.publish([0], to: "answer", qos: .atLeastOnce)
            } else {
                try await server.reply(to: request, with: [0])
            }
            if expiries.count == 3 { break }
        }
        try await asking.value
        // Time passes on the way.
        let limits: [ClosedRange<UInt32>] = [3_000...3_600, 3_000...3_600, 80_000...86_400]
        for (expiry, limit) in zip(expiries, limits) {
            #expect(expiry.map { limit.contains($0) } == true, "\(expiries)")
        }
        await client.disconnect()
        await server.disconnect()
        await bench.stop()
    }

    @Test func `requests need 5_0, and a message that asks for no response gets none`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = .v3_1_1 }
        await #expect { try await client.request([1], to: "a") } throws: {
            ($0 as? MQTTError)?.code == .invalidRequest
        }
        let messages = try await client.subscribe(to: "a")
        try await client.publish("x", to: "a", qos: .atLeastOnce)
        let message = try #require(try await messages.first(1).first)
        await #expect { try await client.reply(to: message, with: []) } throws: {
            ($0 as? MQTTError)?.code == .invalidRequest
        }
        await client.disconnect()
        await bench.stop()
    }
}

extension Updates<MQTTEvent> {
    /// Waits until the server has answered a filter with this prefix again.
    fileprivate func untilResubscribed(_ prefix: String) async {
        for await event in self {
            if case .resubscribed(let filter, _) = event, filter.hasPrefix(prefix) { return }
        }
    }
}
