import Synchronization
import TestSupport
import Testing
import Transport

@testable import MQTT
@testable import MQTTCore

/// Servers that do not keep to the specification, as real ones: the client works with them where it can, and names what
/// is wrong where it cannot.
@Suite("Client: what real servers send", .turns)
struct RealServerTests {
    private static let wrongAdvice = "speaks MQTT on this port"

    /// PUBLISH with this topic.
    private static func message(
        _ topic: [UInt8], _ version: MQTTVersion, qos: QoS = .atMostOnce, properties: [UInt8] = []
    ) -> [UInt8] {
        let body =
            [0, UInt8(topic.count)] + topic + (qos == .atMostOnce ? [] : [0x30, 0x39])
            + (version == .v5_0 ? [UInt8(properties.count)] + properties : []) + [0x78]
        return [0x31 | qos.rawValue << 1, UInt8(body.count)] + body
    }

    /// A server that accepts each connection and sends these bytes behind CONNACK.
    private static func server(behindConnack bytes: [UInt8]) -> ScriptedServer {
        ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            step.accept()
            step.perform { $0.engine.output += bytes }
        }
    }

    /// A server that answers CONNECT with these bytes, and closes the connection.
    private static func server(answeringConnect bytes: [UInt8]) -> ScriptedServer {
        ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            step.perform { machine in
                machine.engine.output += bytes
                machine.wantsClose = true
            }
        }
    }

    /// Why connections are lost that begin after the call, as many as `count`.
    private func losses(
        of client: MQTTClient, _ count: Int = 1, _ body: () async throws -> Void = {}
    ) async throws -> [MQTTError] {
        let events = client.events
        await client.start()
        try await body()
        var losses: [MQTTError] = []
        for await event in events {
            if case .connectionLost(let error) = event { losses.append(error) }
            if case .stateChanged(.disconnected(let error?)) = event, losses.count < count {
                Issue.record(error)
                break
            }
            if losses.count == count { break }
        }
        return losses
    }

    // MARK: Messages that break the protocol

    @Test(arguments: MQTTVersion.allCases)
    func `a message that breaks the protocol is named, and so is the option that drops it`(
        version: MQTTVersion
    ) async throws {
        let server = Self.server(behindConnack: Self.message(Array("rooms/".utf8) + [0xFF], version))
        let client = server.client {
            $0.version = version
            $0.reconnect.initialDelay = .seconds(60)
        }
        let lost = try await losses(of: client)[0]
        #expect(lost.code == .protocolError)
        #expect(
            lost.message.contains("a message to the topic 'rooms/\u{FFFD}': The topic name is not well-formed UTF-8."))
        #expect(lost.message.contains("dropsInvalidMessages"), "\(lost.message)")
        #expect(!lost.message.contains(Self.wrongAdvice))
        await client.disconnect()
    }

    @Test(arguments: MQTTVersion.allCases)
    func `three connections in a row that the same message ends stop a client without a session`(
        version: MQTTVersion
    ) async throws {
        let server = Self.server(behindConnack: Self.message(Array("a/+".utf8), version, qos: .atLeastOnce))
        let client = server.client { $0.version = version }
        var events = client.events.makeAsyncIterator()
        await client.start()
        var failure: MQTTError?
        while failure == nil, let event = await events.next() {
            if case .stateChanged(.disconnected(let error)) = event { failure = error }
        }
        #expect(failure?.code == .sessionBlocked)
        #expect(failure?.message.contains("'a/+'") == true, "\(String(describing: failure))")
        #expect(failure?.message.contains("dropsInvalidMessages") == true)
        #expect(failure?.message.contains("resumed") == false)
        #expect(failure?.message.contains("discardSession") == false)
        #expect(server.connectionCount == 3)
    }

    /// PUBLISH of 256 MiB, of which this much arrives: the header alone, a part of the topic, or more than that.
    @Test(arguments: [5, 8, 12])
    func `three connections in a row that end with a message that is too large stop a client`(count: Int) async throws {
        let bytes: [UInt8] = [0x30, 0xFF, 0xFF, 0xFF, 0x7F, 0, 3, 0x61, 0x2F, 0x62, 1, 2]
        // How much arrives with the header differs from connection to connection.
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            step.accept()
            step.perform { $0.engine.output += bytes.prefix(step.connection < 3 ? 5 : count) }
        }
        let client = server.client()
        let events = client.events
        await client.start()
        let ended = Mutex<MQTTError?>(nil)
        let reading = Task {
            for await event in events {
                if case .stateChanged(.disconnected(let error?)) = event { ended.withLock { $0 = error } }
            }
        }
        #expect(await eventually { ended.withLock { $0 != nil } })
        reading.cancel()
        let failure = ended.withLock { $0 }
        #expect(failure?.code == .sessionBlocked)
        #expect(failure?.message.contains("Raise maximumPacketSize") == true, "\(String(describing: failure))")
        #expect(failure?.message.contains(count == 12 ? "a message to the topic 'a/b'" : "with a message that") == true)
        #expect(server.connectionCount == 3)
        await client.disconnect()
    }

    @Test func `a message that ends connections from time to time does not stop a client without a session`()
        async throws
    {
        let clock = try ManualClock()
        let server = ScriptedServer(clock: clock) { step in
            if case .connectReceived = step.event { step.accept() }
        }
        let client = server.client { $0.keepAlive = .zero }
        try await client.connect()
        for _ in 0..<5 {
            await clock.advance(by: .seconds(30))
            #expect(client.state.isConnected)
            let count = server.connectionCount
            server.link?.perform { $0.engine.output += Self.message(Array("a/+".utf8), .v3_1_1) }
            for _ in 0..<100 where server.connectionCount == count { await clock.advance(by: .milliseconds(100)) }
        }
        #expect(server.connectionCount == 6)
        await client.disconnect()
    }

    // MARK: Other packets

    @Test func `a violation after CONNACK names the packet and does not doubt the port`() async throws {
        let cases: [(bytes: [UInt8], part: String)] = [
            ([0x20, 2, 0, 0], "second CONNACK"), ([0x92, 3, 0, 1, 0], "SUBACK"), ([0x40, 3, 0, 1, 0], "PUBACK"),
            ([0x00, 0], "packet type is 0"), ([0x30, 0xFF, 0xFF, 0xFF, 0x7F], "maximumPacketSize"),
        ]
        for (bytes, part) in cases {
            let client = Self.server(behindConnack: bytes).client { $0.reconnect.initialDelay = .seconds(60) }
            let lost = try await losses(of: client)[0]
            #expect(lost.code == .protocolError)
            #expect(lost.message.contains(part), "\(lost.message)")
            #expect(!lost.message.contains(Self.wrongAdvice), "\(lost.message)")
            await client.disconnect()
        }
    }

    @Test func `topic aliases that the server does not keep to are turned off with an option`() async throws {
        let poison = Self.message([], .v5_0, properties: [0x23, 0, 1])
        let client = Self.server(behindConnack: poison).client {
            $0.version = .v5_0
            $0.reconnect.initialDelay = .seconds(60)
        }
        let lost = try await losses(of: client)[0]
        #expect(lost.message.contains("Set topicAliasMaximum to 0"), "\(lost.message)")
        await client.disconnect()
    }

    @Test func `SUBACK with too few codes names filters, and the next connections send one filter at a time`()
        async throws
    {
        let sizes = Mutex<[[Int]]>([])
        let server = ScriptedServer { step in
            switch step.event {
            case .connectReceived:
                sizes.withLock { $0.append([]) }
                step.accept()
            case .subscribeReceived(let packet):
                sizes.withLock { $0[$0.count - 1].append(packet.subscriptions.count) }
                let id = packet.packetID
                step.perform { $0.engine.output += [0x90, 3, UInt8(id >> 8), UInt8(id & 0xFF), 0] }
            default: break
            }
        }
        let client = server.client()
        let events = client.events
        let subscription = client.subscription(to: ["rooms/1", "rooms/2", "rooms/3"].map { .init(filter: $0) })
        await client.start()
        var lost: [MQTTError] = []
        var granted: [String] = []
        for await event in events {
            if case .connectionLost(let error) = event { lost.append(error) }
            if case .subscribed(let filter, _) = event { granted.append(filter) }
            if granted.count == 3 || lost.count == 3 { break }
        }
        #expect(lost.count == 1)
        #expect(lost.first?.message.contains("SUBACK for 'rooms/1', 'rooms/2', 'rooms/3'") == true, "\(lost)")
        #expect(lost.first?.message.contains("maximumFiltersPerRequest") == true)
        #expect(lost.first?.message.contains(Self.wrongAdvice) == false)
        #expect(sizes.withLock { $0 } == [[3], [1, 1, 1]])
        await client.disconnect()
        _ = subscription
    }

    @Test func `SUBACK for one filter gets no advice about many`() {
        let violation = MQTTProtocolError(
            .protocolError, "SUBACK has 0 reason codes for 1 topic filter.", clause: MQTTEngine.clauseOfCodeCount)
        let packet = MQTTRefusedPacket(type: .suback, topic: "", fingerprint: 1, filters: ["a"])
        let message = MQTTError(violation, packet).message
        #expect(message.contains("SUBACK for 'a'") && !message.contains("maximumFiltersPerRequest"), "\(message)")
    }

    // MARK: CONNACK

    @Test(arguments: [MQTTVersion.v3_1, .v3_1_1])
    func `return codes that the version does not define are refusals`(version: MQTTVersion) async throws {
        func failure(_ code: UInt8) async -> MQTTError? {
            let client = Self.server(answeringConnect: [0x20, 2, 0, code]).client { $0.version = version }
            return await error { () throws(MQTTError) in try await client.connect() }
        }
        let limited = await failure(6)
        #expect(limited?.code == .refused)
        #expect(
            limited?.message.contains("return code 6, which MQTT \(version) does not define") == true, "\(limited!)")
        #expect(await failure(0xC0)?.message.contains("return code 192, which") == true)
        #expect(await failure(0x87)?.code == .badCredentials)
        #expect(await failure(0x89)?.message.contains("server busy (0x89)") == true)
    }

    @Test func `Maximum QoS 2 does not keep a client of 5_0 from connecting`() async throws {
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            step.perform { $0.engine.output += [0x20, 5, 0, 0, 2, 0x24, 2] }
        }
        let client = server.client { $0.version = .v5_0 }
        var events = client.events.makeAsyncIterator()
        try await client.connect()
        var found: MQTTConnectionInfo?
        while found == nil, let event = await events.next() {
            if case .connected(let info) = event { found = info }
        }
        #expect(found?.limits.maximumQoS == .exactlyOnce)
        #expect(found?.properties.maximumQoS == nil)
        await client.suspend()
    }

    @Test(arguments: [(UInt8(5), "not authorized (0x87)"), (3, "server unavailable (0x88)"), (6, "return code 6")])
    func `a second CONNACK names why the connection ends`(code: UInt8, part: String) async throws {
        let client = Self.server(behindConnack: [0x20, 2, 0, code]).client {
            $0.version = .v3_1_1
            $0.reconnect.initialDelay = .seconds(60)
        }
        let lost = try await losses(of: client)[0]
        #expect(lost.code == .connectionLost)
        #expect(lost.message.contains("second CONNACK") && lost.message.contains(part), "\(lost.message)")
        await client.disconnect()
    }

    @Test(arguments: [MQTTReasonCode.notAuthorized, .serverUnavailable])
    func `a message that the server answers with a second CONNACK is given up`(reason: MQTTReasonCode) async throws {
        let server = ScriptedServer { step in
            if case .connectReceived = step.event { step.accept() }
        }
        server.remark { $0.payloadCount == 9 ? [.connack(.init(reasonCode: reason))] : [] }
        let client = server.client {
            $0.version = .v3_1_1
            $0.reconnect.initialDelay = .milliseconds(1)
        }
        try await client.connect()
        let refused = await error { () throws(MQTTError) in
            try await client.publish("forbidden", to: "no", qos: .atLeastOnce)
        }
        #expect(refused?.code == .refused)
        #expect(refused?.message.contains("'no'") == true, "\(String(describing: refused))")
        try await client.publish("allowed", to: "yes", qos: .atLeastOnce)
        await client.disconnect()
    }

    // MARK: Connections that just end

    @Test func `DISCONNECT before 5_0 is the server's farewell`() async throws {
        let client = Self.server(behindConnack: [0xE0, 0]).client {
            $0.version = .v3_1_1
            $0.reconnect.initialDelay = .seconds(60)
        }
        let lost = try await losses(of: client)[0]
        #expect(lost.code == .connectionLost && lost.reasonCode == nil)
        #expect(
            lost.message.contains("ended the connection with DISCONNECT") && lost.message.contains("identifier"),
            "\(lost.message)")
        await client.disconnect()
    }

    @Test func `a 3_1_1 server that says so has taken the session over`() async throws {
        let client = Self.server(behindConnack: [0xE0, 1, 0x8E]).client { $0.version = .v3_1_1 }
        var events = client.events.makeAsyncIterator()
        await client.start()
        var failure: MQTTError?
        while failure == nil, let event = await events.next() {
            if case .stateChanged(.disconnected(let error)) = event { failure = error }
        }
        #expect(failure?.code == .takenOver)
    }

    @Test func `two clients with one identifier are suspected the second time`() async throws {
        let bench = try await Bench()
        let clients = (0..<2).map { _ in bench.client("same") { $0.version = .v3_1_1 } }
        let events = clients[0].events
        for client in clients { await client.start() }
        var losses: [MQTTError] = []
        for await event in events {
            if case .connectionLost(let error) = event { losses.append(error) }
            if losses.count == 2 { break }
        }
        #expect(losses[0].message == "The server ended the connection.")
        #expect(losses[1].message.contains("another client uses the client identifier 'same'"), "\(losses[1].message)")
        for client in clients { await client.disconnect() }
        await bench.stop()
    }

    @Test(arguments: ["", "random-%%"])
    func `a client with an identifier of its own is not suspected to share it`(id: String) async throws {
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            step.accept()
            step.perform { $0.wantsClose = true }
        }
        let client = server.client {
            $0.version = .v5_0
            $0.clientID = id
        }
        for lost in try await losses(of: client, 3) { #expect(!lost.message.contains("identifier"), "\(lost.message)") }
        await client.disconnect()
    }

    @Test(arguments: [(50, true), (40, true), (39, false)])
    func `an idle connection that just ends may have met a proxy's limit`(seconds: Int, isSuspected: Bool) async throws
    {
        let clock = try ManualClock()
        let server = ScriptedServer(clock: clock) { step in
            if case .connectReceived = step.event { step.accept() }
        }
        let client = server.client {
            $0.keepAlive = .seconds(60)
            $0.reconnect.initialDelay = .seconds(600)
        }
        let lost = Mutex<MQTTError?>(nil)
        let events = client.events
        Task {
            for await event in events { if case .connectionLost(let error) = event { lost.withLock { $0 = error } } }
        }
        try await client.connect()
        await clock.advance(by: .seconds(seconds))
        server.link?.perform { $0.wantsClose = true }
        for _ in 0..<1000 where lost.withLock({ $0 == nil }) {
            await clock.advance(by: .milliseconds(1))
            try await Task.sleep(for: .milliseconds(1))
        }
        let message = try #require(lost.withLock { $0?.message })
        #expect(message.contains("keepAlive") == isSuspected, "\(message)")
        #expect(message.contains("\(seconds) seconds") == isSuspected)
        await client.disconnect()
    }

    // MARK: Options

    @Test func `PINGREQ comes before the usual limits of 50 and 60 seconds`() {
        #expect(MQTTConfiguration().keepAlive == .seconds(45))
    }

    @Test func `3_1 over WebSocket offers both names of the protocol`() {
        var configuration = MQTTConfiguration()
        for (version, names) in [(MQTTVersion.v3_1, ["mqttv3.1", "mqtt"]), (.v3_1_1, ["mqtt"]), (.v5_0, ["mqtt"])] {
            configuration.version = version
            #expect(MQTTSettings.of(configuration).streams.value.subprotocols == names)
        }
    }
}
