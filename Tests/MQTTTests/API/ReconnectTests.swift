import ClientTestSupport
import LoopbackBroker
import MQTT
import MQTTCore
import Synchronization
import TestSupport
import Testing
import Transport

@Suite("Client: reconnecting", .turns)
struct ReconnectTests {
    @Test(arguments: [MQTTVersion.v3_1, .v3_1_1, .v5_0])
    func `subscriptions are made again without a session, and messages flow`(version: MQTTVersion) async throws {
        let bench = try await Bench()
        let client = try await bench.connected { $0.version = version }
        let sender = try await bench.connected()
        let messages = try await client.subscribe(to: "a/#", qos: .atLeastOnce)
        for round in 0..<3 {
            await bench.cut()
            #expect(await eventually { client.counters.connections == round + 2 && sender.state.isConnected })
            let publishing = Task {
                while !Task.isCancelled {
                    try await sender.publish("\(round)", to: "a/b", qos: .atLeastOnce)
                    try await Task.sleep(for: .milliseconds(10))
                }
            }
            while try await messages.first(1).first?.text != "\(round)" {}
            publishing.cancel()
            _ = await publishing.result
        }
        await client.disconnect()
        await sender.disconnect()
        await bench.stop()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0], [QoS.atLeastOnce, .exactlyOnce])
    func `cuts at any byte lose nothing and repeat nothing of QoS 2`(version: MQTTVersion, qos: QoS) async throws {
        let bench = try await Bench()
        let client = try await bench.connected("cut") {
            $0.version = version
            $0.cleanStart = version == .v5_0
            $0.sessionExpiry = .seconds(600)
            $0.reconnect.initialDelay = .milliseconds(1)
            $0.reconnect.maximumDelay = .milliseconds(2)
        }
        let receiver = try await bench.connected()
        let messages = try await receiver.subscribe(to: "a", qos: qos)
        var random = SeededGenerator(seed: Campaign.seed)
        let bytes = (0..<20).map { _ in Int.random(in: 1...400, using: &random) }
        let isOver = Atomic(false)
        let cutting = Task {
            for (index, count) in bytes.enumerated() {
                bench.damage(client) { $0.bytesUntilCut = count }
                #expect(await eventually { client.counters.connections > index + 1 })
            }
            isOver.store(true, ordering: .relaxed)
        }
        var sent = 0
        while !isOver.load(ordering: .relaxed) {
            try await client.publish("\(sent)", to: "a", qos: qos)
            sent += 1
        }
        await cutting.value
        try await client.publish("end", to: "a", qos: qos)
        var received: [Int] = []
        while let text = try await messages.first(1).first?.text, text != "end" { received.append(Int(text) ?? -1) }
        if qos == .exactlyOnce {
            #expect(received == Array(0..<sent))
        } else {
            #expect(Set(received) == Set(0..<sent))
        }
        await client.disconnect()
        await receiver.disconnect()
        await bench.stop()
    }

    @Test func `a subscription refused after a reconnect throws, and the event names it`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = try await client.subscribe(to: "a")
        var events = client.events.makeAsyncIterator()
        bench.broker.changeFaults { $0.refusedFilters = ["a"] }
        await bench.cut()
        await #expect { for try await _ in messages {} } throws: { ($0 as? MQTTError)?.code == .refused }
        var named: String?
        while named == nil, let event = await events.next() {
            if case .subscriptionLost(let filter, _) = event { named = filter }
        }
        #expect(named == "a")
        await client.disconnect()
        await bench.stop()
    }

    @Test func `a frozen server is noticed by its missing PINGRESP`() async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        let client = MQTTClient(broker.urls.mqtt ?? "", clock: clock)
        try await client.connect()
        let states = client.states
        await broker.freeze()
        await clock.advance(by: .seconds(54))
        #expect(client.state.isConnected)
        await clock.advance(by: .seconds(2))
        let lost = await states.first { if case .waiting = $0 { true } else { false } }
        #expect("\(String(describing: lost))".contains("PINGREQ"))
        await broker.thaw()
        await clock.advance(by: .seconds(1))
        #expect(client.state.isConnected)
        await client.disconnect()
        await broker.stop()
    }

    @Test func `credentials are asked for before every attempt`() async throws {
        let bench = try await Bench { $0.users = [.init(name: "ann", password: "2")] }
        let client = bench.client {
            $0.reconnect.firstConnectAttempts = nil
            $0.credentialsProvider = { request in
                // A token that cannot be had now may be there a moment later.
                if request.attempt < 2 { throw CancellationError() }
                return Credentials(userName: "ann", password: "\(request.attempt)")
            }
        }
        try await client.connect()
        await client.disconnect()
        let impatient = bench.client { $0.credentialsProvider = { _ in throw CancellationError() } }
        await #expect { try await impatient.connect() } throws: { ($0 as? MQTTError)?.code == .noCredentials }
        await bench.stop()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0]) func `each CONNECT may be changed`(version: MQTTVersion) async throws
    {
        let bench = try await Bench()
        let watcher = try await bench.connected("watcher")
        var wills = try await watcher.subscribe(to: "will").makeAsyncIterator()
        let births = Mutex(0)
        let client = bench.client("node") {
            $0.version = version
            $0.sessionExpiry = .seconds(60)
            $0.will = MQTTWill("unborn", to: "will")
            $0.connectProvider = { options in
                let birth = births.withLock { births in
                    births += 1
                    return births
                }
                #expect(options.keepAlive == .seconds(45))
                #expect(options.will?.payload.elementsEqual("unborn".utf8) == true)
                options.will?.payload = Array("\(birth)".utf8)
                options.keepAlive = .seconds(100 + birth)
                options.cleanStart = birth == 3
                if version == .v5_0 { options.properties = [.userProperty("birth", "\(birth)")] }
            }
        }
        var events = client.events.makeAsyncIterator()
        try await client.connect()
        for birth in 1...3 {
            while let event = await events.next() {
                guard case .connected(let info) = event else { continue }
                #expect(info.keepAlive == 100 + UInt16(birth))
                // The third begins a new session.
                #expect(info.sessionPresent == (birth == 2))
                break
            }
            await bench.broker.dropConnection(of: "node")
            #expect(try await wills.next()?.text == "\(birth)")
        }
        await client.disconnect()
        await watcher.disconnect()
        await bench.stop()
    }

    @Test func `what a changed CONNECT cannot have stops connecting, and an error only fails the attempt`() async throws
    {
        let bench = try await Bench()
        let reserved = bench.client {
            $0.version = .v5_0
            $0.connectProvider = { $0.properties = [.receiveMaximum(1)] }
        }
        await #expect { try await reserved.connect() } throws: { ($0 as? MQTTError)?.code == .invalidRequest }
        // It is asked again by a later connect.
        let calls = Mutex(0)
        let mended = bench.client {
            $0.version = .v5_0
            $0.connectProvider = { options in
                let call = calls.withLock { calls in
                    calls += 1
                    return calls
                }
                options.properties = call == 1 ? [.receiveMaximum(1)] : [.userProperty("call", "\(call)")]
            }
        }
        await #expect { try await mended.connect() } throws: { ($0 as? MQTTError)?.code == .invalidRequest }
        try await mended.connect()
        await mended.disconnect()
        let late = bench.client { $0.connectProvider = { $0.will = MQTTWill("x", to: "a", delay: .seconds(5)) } }
        await #expect { try await late.connect() } throws: { ($0 as? MQTTError)?.code == .invalidRequest }
        let second = bench.client {
            $0.reconnect.firstConnectAttempts = nil
            $0.connectProvider = { if $0.attempt < 2 { throw CancellationError() } }
        }
        try await second.connect()
        await second.disconnect()
        let impatient = bench.client { $0.connectProvider = { _ in throw CancellationError() } }
        await #expect { try await impatient.connect() } throws: {
            ($0 as? MQTTError)?.code == .connectFailed && "\($0)".contains("connectProvider")
        }
        await bench.stop()
    }

    @Test func `another client with the same identifier takes over, which is not fought`() async throws {
        let bench = try await Bench()
        let first = try await bench.connected("same") { $0.version = .v5_0 }
        let messages = try await first.subscribe(to: "a")
        let second = try await bench.connected("same") { $0.version = .v5_0 }
        await #expect { for try await _ in messages {} } throws: { ($0 as? MQTTError)?.code == .takenOver }
        #expect(!first.state.isConnected)
        try await Task.sleep(for: .milliseconds(100))
        #expect(second.state.isConnected)
        await second.disconnect()
        await bench.stop()
    }

    @Test(arguments: [
        ("$share/g/a", MQTTReasonCode.sharedSubscriptionsNotSupported), ("a/#", .wildcardSubscriptionsNotSupported),
    ])
    func `a subscription that the next server does not support is reported as lost`(
        filter: String, reason: MQTTReasonCode
    ) async throws {
        let server = ScriptedServer { step in
            switch step.event {
            case .connectReceived:
                var properties = MQTTProperties()
                if step.connection > 1 {
                    properties.sharedSubscriptionAvailable = false
                    properties.wildcardSubscriptionAvailable = false
                }
                step.accept(properties: properties)
            case .subscribeReceived(let packet):
                step.perform {
                    try? $0.engine.acknowledgeSubscribe(
                        packet.packetID, codes: packet.subscriptions.map { _ in .grantedQoS0 },
                        at: step.link.loop.now)
                }
            default: break
            }
        }
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        var events = client.events.makeAsyncIterator()
        let subscription = try await client.subscribe(to: filter)
        server.link?.dropConnection()
        await #expect { for try await _ in subscription {} } throws: { ($0 as? MQTTError)?.code == .notAllowed }
        #expect(await eventually { client.state.isConnected })
        await client.disconnect()
        var lost: [String: MQTTReasonCode] = [:]
        while let event = await events.next() {
            if case .subscriptionLost(let filter, let code) = event { lost[filter] = code }
            if case .stateChanged(.disconnected) = event { break }
        }
        #expect(lost == [filter: reason])
    }
}
