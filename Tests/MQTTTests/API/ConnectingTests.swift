import LoopbackBroker
import MQTT
import MQTTCore
import Synchronization
import TestSupport
import Testing
import Transport

@Suite("Client: versions, other servers, authentication", .turns)
struct ConnectingTests {
    /// Why the client has stopped.
    private func failure(_ client: MQTTClient) -> MQTTError? {
        if case .disconnected(let failure) = client.state { failure } else { nil }
    }

    @Test func `falls back to the versions that are allowed, and stays with what the server takes`() async throws {
        let server = ScriptedServer { step in
            guard case .connectReceived(let connect) = step.event else { return }
            if connect.version == .v5_0 { step.refuse(.unsupportedProtocolVersion) } else { step.accept() }
        }
        let client = server.client {
            $0.version = .v5_0
            $0.fallbackVersions = [.v3_1_1, .v3_1]
        }
        var events = client.events.makeAsyncIterator()
        try await client.connect()
        var seen: [String] = []
        while let event = await events.next() {
            if case .versionChanged(let version) = event { seen.append("\(version)") }
            if case .connected(let info) = event {
                seen.append("\(info.version)")
                break
            }
        }
        #expect(seen == ["\(MQTTVersion.v3_1_1)", "\(MQTTVersion.v3_1_1)"])
        #expect(server.connectionCount == 2)
        server.link?.dropConnection()
        #expect(await eventually { server.connectionCount == 3 && client.state.isConnected })
        await client.disconnect()
    }

    @Test func `connections that end before CONNACK do not rule a version out for later attempts`() async throws {
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            if step.connection > 3 { step.accept() } else { step.perform { $0.wantsClose = true } }
        }
        let client = server.client {
            $0.version = .v5_0
            $0.fallbackVersions = [.v3_1_1]
        }
        await client.start()
        #expect(await eventually { client.state.isConnected })
        #expect(server.versions == [.v5_0, .v5_0, .v3_1_1, .v5_0])
        await client.disconnect()
    }

    @Test func `an attempt with other credentials asks for the version whose credentials were refused`() async throws {
        let server = ScriptedServer { step in
            guard case .connectReceived(let connect) = step.event else { return }
            if connect.version == .v5_0 { return step.refuse(.unsupportedProtocolVersion) }
            if connect.password == Array("new".utf8) { step.accept() } else { step.refuse(.badUserNameOrPassword) }
        }
        let client = server.client {
            $0.version = .v5_0
            $0.fallbackVersions = [.v3_1_1]
            $0.credentialsProvider = { Credentials(userName: "ann", password: $0.wereRefused ? "new" : "old") }
        }
        try await client.connect()
        #expect(server.versions == [.v5_0, .v3_1_1, .v3_1_1])
        await client.disconnect()
    }

    @Test func `a will with a delay does not prevent falling back to a version without delays`() async throws {
        let server = ScriptedServer { step in
            guard case .connectReceived(let connect) = step.event else { return }
            if connect.version == .v5_0 { return step.refuse(.unsupportedProtocolVersion) }
            #expect(connect.will?.properties == [])
            step.accept()
        }
        let client = server.client {
            $0.version = .v5_0
            $0.fallbackVersions = [.v3_1_1]
            $0.sessionExpiry = .seconds(60)
            $0.will = MQTTWill("gone", to: "wills", delay: .seconds(5))
        }
        try await client.connect()
        #expect(server.connectionCount == 2)
        await client.disconnect()
    }

    @Test(arguments: [true, false])
    func `goes where the server sends it, if that is allowed`(allowed: Bool) async throws {
        let bench = try await Bench { $0.mqttPort = .free }
        let port = try #require(bench.broker.ports.mqtt)
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            step.refuse(.serverMoved, referringTo: "localhost:\(port) other.example")
        }
        let client = server.client {
            $0.version = .v5_0
            $0.followsRedirects = allowed
        }
        if allowed {
            try await client.connect()
            try await client.publish("x", to: "a", qos: .atLeastOnce)
            #expect(bench.broker.statistics.messagesIn == 1)
            // It moved for good: back to it, without asking at the old place.
            await bench.cut()
            #expect(await eventually { client.counters.connections == 2 })
            #expect(server.connectionCount == 1)
        } else {
            await #expect { try await client.connect() } throws: { ($0 as? MQTTError)?.reasonCode == .serverMoved }
        }
        await client.disconnect()
        await bench.stop()
    }

    @Test func `a reference that is a URL is followed if it has the scheme of the client's own`() async throws {
        let bench = try await Bench { $0.mqttPort = .free }
        let port = try #require(bench.broker.ports.mqtt)
        func client(referredTo reference: String, follows: Bool = true) -> MQTTClient {
            let server = ScriptedServer { step in
                if case .connectReceived = step.event { step.refuse(referringTo: reference) }
            }
            return server.client {
                $0.version = .v5_0
                $0.followsRedirects = follows
            }
        }
        let followed = client(referredTo: "mqtt://localhost:\(port)")
        #expect(await error { () throws(MQTTError) in try await followed.connect() } == nil)
        await followed.disconnect()
        for (reference, follows, advice) in [
            ("mqtts://localhost:\(port)", true, "a URL with the scheme"),
            ("localhost:\(port)", false, "set followsRedirects"),
        ] {
            let client = client(referredTo: reference, follows: follows)
            let refused = await error { () throws(MQTTError) in try await client.connect() }
            #expect(refused?.code == .refused && refused?.message.contains("'\(reference)'") == true)
            #expect(refused?.message.contains(advice) == true, "\(String(describing: refused))")
        }
        await bench.stop()
    }

    @Test(arguments: [MQTTReasonCode.serverMoved, .useAnotherServer])
    func `of several servers that it is sent to the first that can be used is tried`(reason: MQTTReasonCode)
        async throws
    {
        let bench = try await Bench { $0.mqttPort = .free }
        let port = try #require(bench.broker.ports.mqtt)
        let bad = try BadServer.start(.closed)
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            step.refuse(reason, referringTo: ":0 mqtts://localhost 127.0.0.1:\(port) 127.0.0.1:\(bad.port)")
        }
        let client = server.client {
            $0.version = .v5_0
            $0.followsRedirects = true
        }
        var events = client.events.makeAsyncIterator()
        // The default allows not even one failed attempt: this is none.
        try await client.connect()
        await bench.cut()
        #expect(await eventually { client.counters.connections == 2 && client.state.isConnected })
        await client.disconnect()
        var tried: [UInt16] = []
        while let event = await events.next() {
            if case .connecting(let url) = event, case .host(_, let port) = url.endpoint { tried.append(port) }
            if case .stateChanged(.disconnected) = event { break }
        }
        #expect(tried.filter { $0 == port || $0 == bad.port } == [UInt16(port), UInt16(port)])
        // Where it has moved for good, the next connection is to the one that accepted.
        #expect(server.connectionCount == (reason == .serverMoved ? 1 : 2))
        await bench.stop()
        _ = bad
    }

    @Test func `a server that has moved to where nobody listens is asked again`() async throws {
        let bad = try BadServer.start(.closed)
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            guard step.connection == 1 else { return step.accept() }
            step.refuse(.serverMoved, referringTo: "127.0.0.1:\(bad.port)")
        }
        let client = server.client {
            $0.version = .v5_0
            $0.followsRedirects = true
        }
        await client.start()
        #expect(await eventually { server.connectionCount == 2 && client.state.isConnected })
        await client.disconnect()
        _ = bad
    }

    @Test func `a farewell that names another server is followed once`() async throws {
        let bench = try await Bench { $0.mqttPort = .free }
        let port = try #require(bench.broker.ports.mqtt)
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            step.accept()
            guard step.connection == 1 else { return }
            step.disconnect(referringTo: "127.0.0.1:\(port)")
        }
        let client = server.client {
            $0.version = .v5_0
            $0.followsRedirects = true
        }
        try await client.connect()
        #expect(await eventually { client.counters.connections == 2 && bench.broker.connectionCount == 1 })
        await bench.cut()
        #expect(await eventually { server.connectionCount == 2 && client.state.isConnected })
        await client.disconnect()
        await bench.stop()
    }

    @Test func `authenticates in steps, and renews it, also when the server asks`() async throws {
        let server = ScriptedServer { step in
            switch step.event {
            case .connectReceived(let connect):
                #expect(connect.properties.authenticationData == [1])
                step.authenticate(.continueAuthentication, [2])
            case .authenticationReceived(let packet):
                switch packet.properties.authenticationData {
                case [102]: step.accept()
                case [1]: step.authenticate(.continueAuthentication, [3])
                case [103]: step.authenticate(.success, [])
                default: Issue.record("\(packet)")
                }
            default: break
            }
        }
        let client = server.client {
            $0.version = .v5_0
            $0.authentication = MQTTAuthentication(method: "PLUS-100") {
                [1]
            } respond: { challenge in
                (challenge ?? []).map { $0 + 100 }
            }
        }
        try await client.connect()
        #expect(client.state.isConnected)
        try await client.reauthenticate()
        try await client.publish("x", to: "a", qos: .exactlyOnce)
        await client.disconnect()
    }

    @Test func `an authentication that fails on this side ends the attempt for good`() async throws {
        struct NoKey: Error {}
        let server = ScriptedServer { step in
            if case .connectReceived = step.event { step.authenticate(.continueAuthentication, [2]) }
        }
        let client = server.client {
            $0.version = .v5_0
            $0.reconnect.firstConnectAttempts = nil
            $0.authentication = MQTTAuthentication(method: "X") {
                nil
            } respond: { _ in
                throw NoKey()
            }
        }
        await #expect { try await client.connect() } throws: {
            ($0 as? MQTTError)?.code == .badCredentials && ($0 as? MQTTError)?.underlying is NoKey
        }
        #expect(server.connectionCount == 1)
    }

    /// CONNACK arrives together with AUTH, or while the app makes its response, which may fail.
    @Test(arguments: [true, false], [true, false])
    func `a server may accept a client without waiting for the response that it has asked for`(
        atOnce: Bool, fails: Bool
    ) async throws {
        struct NoKey: Error {}
        let clock = try ManualClock()
        let connect = Mutex<ScriptedServer.Step?>(nil)
        let connected = PendingCall<Void>()
        let server = ScriptedServer(clock: clock) { step in
            switch step.event {
            case .connectReceived:
                connect.withLock { $0 = step }
                step.authenticate(.continueAuthentication, [2])
                if atOnce { step.accept() }
            case .authenticationReceived: Issue.record("The client has sent a response that is too late.")
            default: break
            }
        }
        let client = server.client {
            $0.version = .v5_0
            $0.authentication = MQTTAuthentication(method: "X") {
                nil
            } respond: { _ in
                if !atOnce { connect.withLock { $0 }?.accept() }
                await connected.answer()
                if fails { throw NoKey() }
                return [1]
            }
        }
        try await client.connect()
        connected.end(())
        // Until the response has been handled.
        await clock.advance(by: .milliseconds(1))
        #expect(client.state.isConnected && server.connectionCount == 1)
        await client.disconnect()
    }

    /// While the client connects, and when it is connected, with the server's Maximum Packet Size.
    @Test(arguments: [false, true])
    func `a response that is too long for AUTH fails the authentication at once, and the error says why`(
        isRenewal: Bool
    ) async throws {
        let size: UInt32 = isRenewal ? 100 : 16 << 20
        let server = ScriptedServer(maximumPacketSize: size, clock: try ManualClock()) { step in
            switch step.event {
            case .connectReceived where isRenewal: step.accept()
            case .connectReceived: step.authenticate(.continueAuthentication, [2])
            case .authenticationReceived: step.authenticate(.continueAuthentication, [2])
            default: break
            }
        }
        let client = server.client {
            $0.version = .v5_0
            $0.reconnect.firstConnectAttempts = nil
            $0.authentication = MQTTAuthentication(method: "X") {
                nil
            } respond: { _ in
                [UInt8](repeating: 1, count: isRenewal ? 101 : 65_536)
            }
        }
        if isRenewal { try await client.connect() }
        let error = await #expect(throws: MQTTError.self) {
            // Without a step of the clock.
            try await withTimeout(.patience, "the authentication") {
                if isRenewal { try await client.reauthenticate() } else { try await client.connect() }
            }
        }
        #expect(error?.code == .badCredentials && error?.underlying is MQTTUsageError, "\(error as Any)")
        #expect(error?.message.contains("configuration.authentication") == true)
        await client.disconnect()
    }

    @Test func `a first step that fails, or that the server refuses once, is tried again`() async throws {
        struct NoTicket: Error {}
        let calls = Mutex(0)
        let refused = Mutex(false)
        let server = ScriptedServer { step in
            guard case .connectReceived(let connect) = step.event else { return }
            let isRefused = refused.withLock { refused in
                let isFirst = connect.properties.authenticationData == [3] && !refused
                if isFirst { refused = true }
                return isFirst
            }
            if isRefused { step.refuse(.notAuthorized) } else { step.accept() }
        }
        let client = server.client {
            $0.version = .v5_0
            $0.authentication = MQTTAuthentication(method: "TICKET") {
                let number = calls.withLock { calls in
                    calls += 1
                    return calls
                }
                if number == 2 { throw NoTicket() }
                return [UInt8(number)]
            } respond: { _ in
                nil
            }
        }
        var events = client.events.makeAsyncIterator()
        try await client.connect()
        server.link?.dropConnection()
        // The second call throws, the server refuses what the third returns, and accepts that of the fourth.
        #expect(await eventually { client.counters.connections == 2 && client.state.isConnected })
        #expect(calls.withLock { $0 } == 4 && server.connectionCount == 3)
        await client.disconnect()
        var failures: [MQTTError] = []
        while let event = await events.next() {
            if case .attemptFailed(_, let error) = event { failures.append(error) }
            if case .stateChanged(.disconnected) = event { break }
        }
        #expect(failures.map(\.code) == [.noCredentials, .badCredentials])
        #expect(failures.first?.underlying is NoTicket)
    }

    @Test func `the server's farewell is told with its reason`() async throws {
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            step.accept()
            guard step.connection == 1 else { return }
            var properties = MQTTProperties()
            properties.reasonString = "maintenance"
            step.disconnect(.serverShuttingDown, properties: properties)
        }
        let client = server.client { $0.version = .v5_0 }
        var events = client.events.makeAsyncIterator()
        try await client.connect()
        while let event = await events.next() {
            if case .disconnectedByServer(let reason, let properties) = event {
                #expect(reason == .serverShuttingDown && properties.reasonString == "maintenance")
                break
            }
        }
        #expect(await eventually { server.connectionCount == 2 && client.state.isConnected })
        await client.disconnect()
    }

    @Test func `the identifier that the server assigned is kept for the next connection`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected("") { $0.version = .v5_0 }
        let assigned = client.clientID
        #expect(!assigned.isEmpty)
        await bench.cut()
        #expect(await eventually { client.counters.connections == 2 })
        #expect(client.clientID == assigned)
        await client.disconnect()
        await bench.stop()
    }

    @Test func `an assigned identifier that the server refuses is replaced by another one`() async throws {
        let identifiers = Mutex<[String]>([])
        let server = ScriptedServer { step in
            switch step.event {
            case .connectReceived(let connect):
                identifiers.withLock { $0.append(connect.clientID) }
                guard connect.clientID.isEmpty else { return step.refuse(.clientIdentifierNotValid) }
                #expect(connect.cleanStart)
                step.accept(properties: [.assignedClientIdentifier("$GEN/\(step.connection)")])
            case .subscribeReceived(let packet):
                step.perform {
                    try? $0.engine.acknowledgeSubscribe(
                        packet.packetID, codes: [.grantedQoS0], at: step.link.loop.now)
                }
            default: break
            }
        }
        let client = server.client {
            $0.clientID = ""
            $0.version = .v5_0
            $0.sessionExpiry = .seconds(60)
            $0.reconnect.initialDelay = .milliseconds(1)
        }
        try await client.connect()
        let subscription = try await client.subscribe(to: "a", qos: .atMostOnce)
        for number in [1, 3] {
            #expect(client.clientID == "$GEN/\(number)")
            server.link?.dropConnection()
            #expect(await eventually { server.connectionCount == number + 2 && client.state.isConnected })
        }
        #expect(client.clientID == "$GEN/5")
        #expect(identifiers.withLock { $0 } == ["", "$GEN/1", "", "$GEN/3", ""])
        if let link = server.link {
            link.perform { machine in
                _ = try? machine.engine.publish(
                    topic: "a", payload: [1], qos: .atMostOnce, retain: false, properties: [], token: 1,
                    at: link.loop.now)
            }
        }
        #expect(try await subscription.first(1).map(\.topic) == ["a"])
        await client.disconnect()
    }

    @Test func `the broker that plays AWS refuses the identifiers that it has assigned`() async throws {
        let bench = try await Bench { $0.faults = LoopbackBrokerOptions.awsIoT.faults }
        let client = try await bench.connected("") { $0.version = .v5_0 }
        let assigned = client.clientID
        #expect(assigned.hasPrefix("$GEN/"))
        await bench.cut()
        #expect(await eventually { client.counters.connections == 2 && client.state.isConnected })
        #expect(client.clientID.hasPrefix("$GEN/") && client.clientID != assigned)
        #expect(bench.broker.statistics.connections == 3)
        await client.disconnect()
        await bench.stop()
    }

    @Test func `a server that refuses the empty identifier too stops the client`() async throws {
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            guard step.connection == 1 else { return step.refuse(.clientIdentifierNotValid) }
            step.accept(properties: [.assignedClientIdentifier("$GEN/1")])
        }
        let client = server.client {
            $0.clientID = ""
            $0.version = .v5_0
        }
        try await client.connect()
        server.link?.dropConnection()
        #expect(await eventually { failure(client)?.reasonCode == .clientIdentifierNotValid })
        #expect(server.connectionCount == 3)
    }

    @Test(arguments: [false, true])
    func `a refusal before 5_0 that may be a limit does not stop a client that was accepted`(
        hasProvider: Bool
    ) async throws {
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            if (2...9).contains(step.connection) { step.refuse(.notAuthorized) } else { step.accept() }
        }
        let client = server.client {
            $0.reconnect.initialDelay = .milliseconds(1)
            $0.reconnect.maximumDelay = .milliseconds(1)
            $0.credentials = Credentials(userName: "ann", password: "right")
            if hasProvider { $0.credentialsProvider = { _ in Credentials(userName: "ann", password: "right") } }
        }
        try await client.connect()
        server.link?.dropConnection()
        #expect(await eventually { server.connectionCount == 10 && client.state.isConnected })
        await client.disconnect()
    }

    @Test(arguments: [MQTTVersion.v3_1_1, .v5_0], [MQTTReasonCode.notAuthorized, .badUserNameOrPassword])
    func `refused credentials stop a client that was accepted, after a few refusals where they may be a limit`(
        version: MQTTVersion, reason: MQTTReasonCode
    ) async throws {
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            if step.connection == 1 { step.accept() } else { step.refuse(reason) }
        }
        let client = server.client {
            $0.version = version
            $0.reconnect.initialDelay = .milliseconds(1)
            $0.reconnect.maximumDelay = .milliseconds(1)
            $0.reconnect.firstConnectAttempts = nil
            $0.credentials = Credentials(userName: "ann", password: "right")
        }
        try await client.connect()
        server.link?.dropConnection()
        #expect(await eventually { failure(client)?.code == .badCredentials })
        let mayBeLimit = version == .v3_1_1 && reason == .notAuthorized
        #expect(server.connectionCount == (mayBeLimit ? 11 : 2))
        #expect(failure(client)?.message.contains("limit on connections") == mayBeLimit)
        // A client that begins again has not been accepted since.
        let error = await error { () throws(MQTTError) in try await client.connect() }
        #expect(error?.code == .badCredentials)
        #expect(server.connectionCount == (mayBeLimit ? 12 : 3))
    }

    @Test func `one connection that ends before CONNACK does not lower the version`() async throws {
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            if step.connection > 1 { step.accept() } else { step.perform { $0.wantsClose = true } }
        }
        let client = server.client {
            $0.version = .v5_0
            $0.fallbackVersions = [.v3_1_1]
        }
        var events = client.events.makeAsyncIterator()
        // The default allows not even one failed attempt: this is none.
        try await client.connect()
        #expect(server.versions == [.v5_0, .v5_0])
        await client.disconnect()
        while let event = await events.next() {
            if case .versionChanged(let version) = event { Issue.record("\(version)") }
            if case .stateChanged(.disconnected) = event { break }
        }
    }

    @Test func `a connection that ends before CONNACK again lowers the version at once`() async throws {
        let server = ScriptedServer { step in
            guard case .connectReceived(let connect) = step.event else { return }
            if connect.version == .v3_1 { step.accept() } else { step.perform { $0.wantsClose = true } }
        }
        let client = server.client {
            $0.version = .v5_0
            $0.fallbackVersions = [.v3_1_1, .v3_1]
        }
        try await client.connect()
        #expect(server.versions == [.v5_0, .v5_0, .v3_1_1, .v3_1])
        await client.disconnect()
    }

    @Test func `the server's last data are verified before the app trusts it`() async throws {
        struct WrongSignature: Error {}
        let seen = Mutex<[[UInt8]?]>([])
        let subscriptions = Mutex(0)
        let server = ScriptedServer { step in
            switch step.event {
            case .connectReceived:
                step.accept(properties: [.authenticationData(step.connection == 1 ? [9] : [7])])
                step.perform { machine in
                    _ = try? machine.engine.publish(
                        topic: "a", payload: [1], qos: .atMostOnce, retain: false, properties: [], token: 1,
                        at: step.link.loop.now)
                }
            case .authenticationReceived: step.authenticate(.success, [9])
            case .subscribeReceived: subscriptions.withLock { $0 += 1 }
            default: break
            }
        }
        let client = server.client {
            $0.version = .v5_0
            $0.reconnect.firstConnectAttempts = nil
            $0.authentication = MQTTAuthentication(method: "SCRAM") {
                [1]
            } respond: { _ in
                nil
            } verify: { data in
                seen.withLock { $0.append(data) }
                if data != [7] { throw WrongSignature() }
            }
        }
        _ = client.subscription(to: "a")
        func fails(_ call: () async throws(MQTTError) -> Void) async {
            let error = await error { () throws(MQTTError) in try await call() }
            #expect(error?.code == .badCredentials && error?.underlying is WrongSignature)
            #expect(await eventually { failure(client)?.underlying is WrongSignature })
        }
        var events = client.events.makeAsyncIterator()
        await fails { () throws(MQTTError) in try await client.connect() }
        #expect(server.connectionCount == 1 && subscriptions.withLock { $0 } == 0)
        #expect(client.counters.messagesReceived == 0)
        while let event = await events.next() {
            if case .connected = event { Issue.record("The server was trusted.") }
            if case .stateChanged(.disconnected) = event { break }
        }
        try await client.connect()
        await fails { () throws(MQTTError) in try await client.reauthenticate() }
        #expect(server.connectionCount == 2)
        #expect(seen.withLock { $0 } == [[9], [7], [9]])
        while let event = await events.next() {
            if case .reauthenticated = event { Issue.record("The server was trusted.") }
            if case .stateChanged(.disconnected) = event { break }
        }
    }

    @Test func `a server without last data fails the verification, and one before 5_0 is not verified`() async throws {
        struct NoSignature: Error {}
        let server = ScriptedServer { step in
            if case .connectReceived = step.event { step.accept() }
        }
        func client(_ version: MQTTVersion) -> MQTTClient {
            server.client {
                $0.version = version
                $0.authentication = MQTTAuthentication(method: "SCRAM") {
                    [1]
                } respond: { _ in
                    nil
                } verify: { data in
                    if data == nil { throw NoSignature() }
                }
            }
        }
        await #expect { try await client(.v5_0).connect() } throws: { ($0 as? MQTTError)?.underlying is NoSignature }
        let older = client(.v3_1_1)
        try await older.connect()
        await older.disconnect()
    }
}
