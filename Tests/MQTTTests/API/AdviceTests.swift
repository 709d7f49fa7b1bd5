import Foundation
import Synchronization
import TestSupport
import Testing
import Transport

@testable import MQTT
@testable import MQTTCore

/// What errors advise is what helps.
@Suite("Client: advice in errors", .turns)
struct AdviceTests {
    @Test func `a QoS 0 message without a connection names the ways to one, also while suspended`() async throws {
        let bench = try await Bench()
        let client = bench.client()
        func advice() async -> String {
            do throws(MQTTError) {
                try await client.publish("x", to: "a")
            } catch {
                return error.message
            }
            return "nothing was thrown"
        }
        #expect(await advice().contains("Call connect()"))
        try await client.connect()
        await client.suspend()
        #expect(await advice().contains("resume() if the client is suspended"))
        await client.disconnect()
        await bench.stop()
    }

    @Test func `a server that sends AUTH is not suspected to be older than 5_0`() {
        func message(_ clause: String) -> String {
            MQTTError(
                .violation(MQTTProtocolError(.protocolError, "wrong", clause: clause)), isAnswerToConnect5: true
            ).message
        }
        #expect(!message("MQTT-4.12.0-7").contains("older"))
        #expect(!message("MQTT 5.0 3.15.2.1").contains("older"))
        #expect(message("MQTT-3.2.0-1").contains("older than MQTT 5.0"))
    }

    @Test(arguments: ["HTTP/1.1 400 Bad Request", "ERROR"])
    func `a server of another protocol is not suspected to be older than 5_0`(line: String) {
        let message = MQTTError(.violation(.answersInText(line)), isAnswerToConnect5: true).message
        #expect(!message.contains("older"))
        #expect(message.hasSuffix("Check that the server speaks MQTT on this port."))
    }

    @Test func `a refused client that sent no credentials is told so`() async throws {
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            step.refuse(.notAuthorized)
        }
        let without = await error { () throws(MQTTError) in try await server.client().connect() }
        #expect(without?.code == .badCredentials)
        #expect(without?.message.contains("sent neither user name nor password: set credentials") == true)
        let client = server.client { $0.credentials = Credentials(userName: "ann") }
        let with = await error { () throws(MQTTError) in try await client.connect() }
        #expect(with?.message.contains("Check user name and password") == true)
        let other = server.client {
            $0.version = .v5_0
            $0.authentication = MQTTAuthentication(method: "PLUS") {
                [1]
            } respond: { _ in
                nil
            }
        }
        let authenticated = await error { () throws(MQTTError) in try await other.connect() }
        #expect(authenticated?.code == .badCredentials)
        #expect(authenticated?.message.contains("neither") == false)
    }

    @Test func `a will with wildcards in its topic is called a will`() async throws {
        let server = ScriptedServer { _ in }
        let client = server.client { $0.will = MQTTWill("x", to: "a/#") }
        let refused = await error { () throws(MQTTError) in try await client.connect() }
        #expect(refused?.code == .invalidRequest)
        #expect(refused?.message.hasPrefix("The will has no valid topic. 'a/#' is not a topic name.") == true)
    }

    @Test func `a request before 5_0 learns of the way that 3_1_1 has`() async throws {
        let bench = try await Bench()
        let client = bench.client()
        try await client.connect()
        let refused = await error { () throws(MQTTError) in _ = try await client.request("now", to: "clock") }
        #expect(refused?.code == .invalidRequest)
        #expect(refused?.message.hasSuffix("Set version to .v5_0, or pass a responseTopic.") == true)
        await client.disconnect()
        await bench.stop()
    }

    @Test(arguments: [("a/+", "1 wildcard, and"), ("a/+/+", "2 wildcards, and")])
    func `levels that do not fit a topic are counted in plain English`(filter: String, count: String) {
        #expect {
            try MQTTTopic.text(filter).at("x", "y", "z")
        } throws: {
            "\($0)".contains("'\(filter)' has \(count) at(_:) got 3 levels.")
        }
    }

    @Test func `an ordinary DISCONNECT of the server is a normal disconnection and no success`() {
        #expect(
            MQTTError(disconnect: .normalDisconnection, properties: []).message.contains("normal disconnection (0x00)"))
        let reason: MQTTProperties = [MQTTProperty(.reasonString, .string("bye"))]
        let message = MQTTError(disconnect: .normalDisconnection, properties: reason).message
        #expect(message.contains(": normal disconnection (0x00): bye. "))
        #expect(MQTTError(disconnect: .serverBusy, properties: []).message.contains("server busy"))
    }

    @Test(arguments: ["bad user name or password", "Bad User Name or Password.", "bad_user_name_or_password", ""])
    func `a Reason String that repeats the name of its code is not shown again`(reason: String) {
        let error = MQTTError(
            connack: .badUserNameOrPassword, properties: [MQTTProperty(.reasonString, .string(reason))])
        #expect(
            error.message
                == "The server refused the connection: bad user name or password (0x86). Check user name and password.")
        #expect(error.description == error.message && error.localizedDescription == error.message)
        let detailed = MQTTError(
            connack: .badUserNameOrPassword, properties: [MQTTProperty(.reasonString, .string("user ann is locked"))])
        #expect(detailed.message.contains(" (0x86): user ann is locked. "))
    }

    @Test func `a refused authentication method does not blame user name and password`() {
        let error = MQTTError(connack: .badAuthenticationMethod, properties: [])
        #expect(error.code == .badCredentials)
        #expect(error.message.contains("authentication method") && !error.message.contains("password"))
    }

    @Test func `a message that was sent before and is not allowed any more may have arrived`() {
        let sent = MQTTError(undelivered: .unsendableAgain, .packetTooLarge, [])
        #expect(sent.code == .connectionLost && sent.reasonCode == .packetTooLarge)
        #expect(sent.message.contains("Whether it arrived is unknown"))
        #expect(MQTTError(undelivered: .unsendable, .packetTooLarge, []).code == .notAllowed)
    }

    @Test func `a server's text neither forges lines of a log nor fills them`() {
        let forged = "bye\n2026-01-01 ERROR \u{1b}[31m" + String(repeating: "x", count: 3_000)
        let properties: MQTTProperties = [MQTTProperty(.reasonString, .string(forged))]
        let errors = [
            MQTTError(connack: .notAuthorized, properties: properties),
            MQTTError(disconnect: .normalDisconnection, properties: properties),
            MQTTError(disconnect: .serverBusy, properties: properties),
            MQTTError(undelivered: .acknowledged, .quotaExceeded, properties),
        ]
        for error in errors {
            for text in [error.message, "\(error)", error.localizedDescription] {
                #expect(!text.unicodeScalars.contains { $0.value < 0x20 })
                #expect(text.contains("bye\\n2026"))
                #expect(text.count < 700)
            }
            // What the server sent is there as it was sent.
            #expect(error.properties.reasonString == forged)
        }
        #expect("\(MQTTError(.refused, "one\ntwo"))" == "one\\ntwo")
        #expect(MQTTError(.refused, "one\ntwo").message == "one\ntwo")
    }

    @Test func `the descriptions of events name the event and what the server sent`() {
        #expect("\(MQTTEvent.pingSent)" == "pingSent")
        #expect("\(MQTTEvent.reauthenticated)" == "reauthenticated")
        #expect("\(MQTTEvent.exactlyOnceUnavailable)" == "exactlyOnceUnavailable")
        let properties: MQTTProperties = [MQTTProperty(.reasonString, .string("maintenance at nine"))]
        #expect(
            "\(MQTTEvent.disconnectedByServer(.serverShuttingDown, properties))"
                == "disconnectedByServer(server shutting down (0x8B): maintenance at nine)")
    }

    @Test func `a packet that is too large gets advice for its kind`() async throws {
        let server = ScriptedServer(maximumPacketSize: 100) { step in
            if case .connectReceived = step.event { step.accept() }
        }
        let client = server.client { $0.version = .v5_0 }
        try await client.connect()
        let long = String(repeating: "x", count: 200)
        let subscribing = await error { () throws(MQTTError) in _ = try await client.subscribe(to: long) }
        #expect(subscribing?.code == .notAllowed)
        #expect(subscribing?.message.contains("Shorten the filters") == true)
        #expect(subscribing?.message.contains("payload") == false)
        let publishing = await error { () throws(MQTTError) in try await client.publish(long, to: "a") }
        #expect(publishing?.code == .notAllowed)
        #expect(publishing?.message.contains("would have 207 bytes; the maximum packet size is 100.") == true)
        #expect(publishing?.message.contains("Split the payload.") == true)
        #expect(client.state.isConnected)
        await client.disconnect()
    }

    @Test func `start() is proposed after failures that may pass, and after no other`() {
        func advice(_ code: MQTTError.Code) -> String {
            MQTTClientCore.firstFailure(MQTTError(code, "It failed.")).message
        }
        for code in [MQTTError.Code.connectionRefused, .timedOut, .unknownHost, .unreachable, .connectionLost] {
            #expect(advice(code).contains("start()"))
        }
        for code in [MQTTError.Code.protocolError, .tlsVersion, .certificateExpired, .badCredentials] {
            #expect(advice(code) == "It failed.")
        }
    }

    @Test func `a server that closes the connection to MQTT 5_0 is suspected not to support it`() async throws {
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            step.perform { $0.wantsClose = true }
        }
        let newer = server.client { $0.version = .v5_0 }
        let closed = await error { () throws(MQTTError) in try await newer.connect() }
        #expect(closed?.message.contains("set version to .v3_1_1, or fallbackVersions") == true)
        let older = server.client { $0.version = .v3_1_1 }
        let other = await error { () throws(MQTTError) in try await older.connect() }
        #expect(other?.message.contains("fallbackVersions") == false)
        // It is not advised to set what is set.
        let both = server.client {
            $0.version = .v5_0
            $0.fallbackVersions = [.v3_1_1]
        }
        var events = both.events.makeAsyncIterator()
        _ = await error { () throws(MQTTError) in try await both.connect() }
        var failures: [MQTTError] = []
        while failures.count < 2, let event = await events.next() {
            if case .attemptFailed(_, let failure) = event { failures.append(failure) }
        }
        #expect(failures.allSatisfy { !$0.message.contains("fallbackVersions") })
    }

    @Test func `a request that timed out without a connection names why there was none`() async throws {
        let clock = try ManualClock()
        var configuration = MQTTConfiguration()
        configuration.version = .v5_0
        // Nothing listens there.
        let client = MQTTClient("mqtt://127.0.0.1:1", configuration: configuration, clock: clock)
        await client.start()
        #expect(await eventually { client.state.isWaiting })
        let isOver = Mutex(false)
        let request = Task {
            defer { isOver.withLock { $0 = true } }
            return try await client.request("x", to: "a", timeout: .seconds(10))
        }
        // Its time begins with the call.
        while !isOver.withLock({ $0 }) { await clock.advance(by: .seconds(1)) }
        let failure = await request.result
        guard case .failure(let error as MQTTError) = failure else {
            Issue.record("\(failure)")
            return
        }
        #expect(error.code == .timedOut)
        #expect(error.message.contains("The client was not connected: "))
        #expect(!error.message.contains("Check that a client answers there"))
        await client.disconnect()
    }

    @Test(arguments: [0, 1]) func `wrong credentials have one code, before and after the client stops`(
        waits: Int
    ) async throws {
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            step.refuse(.badUserNameOrPassword)
        }
        let client = server.client { $0.version = .v5_0 }
        await client.start()
        if waits == 0 { #expect(await eventually { client.state.isDisconnected }) }
        let subscribing = await error { () throws(MQTTError) in _ = try await client.subscribe(to: "a") }
        #expect(subscribing?.code == .badCredentials)
        #expect(subscribing?.reasonCode == .badUserNameOrPassword)
    }

    @Test(arguments: [
        ("localhost:1883", "mqtt://localhost:1883"), ("tcp://localhost:1883", "mqtt://localhost:1883"),
        ("ssl://broker.example", "mqtts://broker.example"), ("tls://broker.example", "mqtts://broker.example"),
        ("mqtt+ssl://broker.example", "mqtts://broker.example"), ("mqtt+nio://broker.example", "mqtt://broker.example"),
        ("wss+tls://broker.example", "wss://broker.example"),
        ("localhost", "mqtt://localhost"), ("tcp://ann:secret@localhost", "mqtt://•••@localhost"),
    ])
    func `a URL in another client's form is answered with ours, without its password`(
        url: String, proposal: String
    ) async throws {
        let client = MQTTClient(url)
        let refused = await error { () throws(MQTTError) in try await client.connect() }
        #expect(refused?.code == .badURL)
        #expect(refused?.message.contains(proposal) == true)
        #expect(refused?.message.contains("secret") == false)
        // A sentence, as every message is.
        #expect(refused?.message.last == ".")
    }

    @Test(arguments: ["mqtt://local host", "mqtt://local\nhost:1883", "mqtt://a/b@c d", "mqtt://a%20b", "mqtt://"])
    func `a host that no name can be is a mistake in the URL`(url: String) async throws {
        let client = MQTTClient(url)
        let refused = await error { () throws(MQTTError) in try await client.connect() }
        #expect(refused?.code == .badURL, "\(String(describing: refused))")
        #expect(refused?.message.contains("start()") == false)
        #expect(refused?.message.contains("\n") == false)
    }

    @Test(arguments: [
        ("mqtt://[fe80::1%eth0]", "must be written as %25: [fe80::1%25eth0]"),
        ("mqtt://[fe80::1%2]:1883", "must be written as %25: [fe80::1%252]"),
        ("mqtt://[fe80::1%25]", "must be written as %25: [fe80::1%2525]"),
        ("mqtt://h%zz", "its host 'h%zz' is not percent-encoded UTF-8"), ("mqtt://:1883", "it names no host"),
    ])
    func `a wrong percent sign in the host is named`(url: String, words: String) async throws {
        let client = MQTTClient(url)
        let refused = await error { () throws(MQTTError) in try await client.connect() }
        #expect(refused?.code == .badURL)
        #expect(refused?.message.contains(words) == true, "\(String(describing: refused))")
        #expect(throws: Never.self) { try BrokerURL("mqtt://[fe80::1%25eth0]") }
    }

    @Test func `an empty URL is answered with a whole one`() async throws {
        let client = MQTTClient("")
        let refused = await error { () throws(MQTTError) in try await client.connect() }
        #expect(refused?.message.contains("mqtt://localhost") == true)
    }

    @Test func `an attempt that did not connect has lost no connection`() async throws {
        let attempts = Mutex(0)
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            let attempt = attempts.withLock { number in
                number += 1
                return number
            }
            // It refuses the first attempt, and ends the second.
            if attempt == 1 { return step.refuse(.serverUnavailable) }
            if attempt == 2 { return step.perform { $0.wantsClose = true } }
            step.accept()
        }
        let client = server.client { $0.version = .v3_1_1 }
        var events = client.events.makeAsyncIterator()
        await client.start()
        var failures = 0
        while let event = await events.next() {
            if case .connectionLost(let error) = event { Issue.record(error) }
            if case .attemptFailed = event { failures += 1 }
            if case .connected = event { break }
        }
        #expect(failures == 2)
        await client.disconnect()
    }

    @Test(arguments: [MQTTReasonCode.serverUnavailable, .serverBusy, .connectionRateExceeded, .quotaExceeded])
    func `a server that is away for a time does not blame the configuration`(reason: MQTTReasonCode) {
        let message = MQTTError(connack: reason, properties: []).message
        #expect(!message.contains("configuration"))
        #expect(message.contains("later"))
    }

    @Test func `a message to a topic with places to fill is told how to fill them`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let topic = MQTTTopic<String>.text("rooms/+/lamp")
        let error = await error { () throws(MQTTError) in try await client.publish("on", to: topic) }
        #expect(error?.code == .invalidRequest)
        #expect(error?.message.contains("at(") == true)
        #expect(throws: MQTTError.self) { try MQTTWill("off", to: topic) }
        await client.disconnect()
        await bench.stop()
    }

    @Test func `a refused message of QoS 2 gets the advice to try a lower one`() {
        func message(_ qos: QoS) -> String {
            MQTTError(MQTTRefusal(.message(topic: "a", qos), token: 0, disconnect: nil, isSilence: false)).message
        }
        #expect(message(.exactlyOnce).contains("lower QoS"))
        #expect(!message(.atLeastOnce).contains("lower QoS"))
    }

    @Test func `only a server that is silent about QoS 2 gets the advice to try a lower one`() {
        func message(_ qos: QoS) -> String {
            MQTTError(MQTTConnectionFailure.acknowledgementTimeout(topic: "a", qos, after: 30_000_000_000)).message
        }
        #expect(message(.exactlyOnce).contains("lower QoS"))
        #expect(!message(.atLeastOnce).contains("lower QoS"))
        #expect(message(.atLeastOnce).contains("Check the server, or raise acknowledgementTimeout"))
    }

    @Test func `any sequence of bytes is published`() async throws {
        let bench = try await Bench()
        let client = try await bench.connected()
        let messages = try await client.subscribe(to: "bytes")
        try await client.publish(Data([1, 2, 3]), to: "bytes", qos: .atLeastOnce)
        try await client.publish([1, 2, 3].lazy.map { $0 + 1 }, to: "bytes", qos: .atLeastOnce)
        try await client.publish(MQTTOutgoingMessage(Data([3]), to: "bytes", qos: .atLeastOnce))
        var iterator = messages.makeAsyncIterator()
        #expect(try await iterator.next()?.payload == [1, 2, 3])
        #expect(try await iterator.next()?.payload == [2, 3, 4])
        #expect(try await iterator.next()?.payload == [3])
        await client.disconnect()
        await bench.stop()
    }

    struct RefusedMessage: Sendable {
        let code: MQTTReasonCode
        let expected: String
    }

    @Test(arguments: [
        RefusedMessage(code: .notAuthorized, expected: "this user may publish"),
        RefusedMessage(code: .quotaExceeded, expected: "limit"),
        RefusedMessage(code: .topicNameInvalid, expected: "topic"),
        RefusedMessage(code: .payloadFormatInvalid, expected: "Payload Format Indicator"),
        RefusedMessage(code: .packetTooLarge, expected: "smaller"),
        RefusedMessage(code: .retainNotSupported, expected: "retain"),
        RefusedMessage(code: .qosNotSupported, expected: "QoS"),
        RefusedMessage(code: .implementationSpecificError, expected: "server's log"),
        RefusedMessage(code: .serverBusy, expected: "later"),
    ])
    func `a refused message gets the advice for its reason`(row: RefusedMessage) {
        let answered = MQTTError(undelivered: .refused, row.code, [])
        let disconnect = MQTTPacket.Disconnect(reasonCode: row.code)
        let ended = MQTTError(
            MQTTRefusal(.message(topic: "a", .atLeastOnce), token: 0, disconnect: disconnect, isSilence: false))
        for error in [answered, ended] {
            #expect(error.message.contains(row.expected), "\(error)")
            let isPermission = row.code == .notAuthorized || row.code == .implementationSpecificError
            #expect(error.message.contains("this user may") == isPermission, "\(error)")
        }
    }

    @Test(arguments: [
        RefusedMessage(code: .notAuthorized, expected: "this user may subscribe"),
        RefusedMessage(code: .unspecifiedError, expected: "this user may subscribe"),
        RefusedMessage(code: .quotaExceeded, expected: "limit"),
        RefusedMessage(code: .topicFilterInvalid, expected: "filter"),
        RefusedMessage(code: .sharedSubscriptionsNotSupported, expected: "without $share"),
        RefusedMessage(code: .subscriptionIdentifiersNotSupported, expected: "subscription identifier"),
        RefusedMessage(code: .wildcardSubscriptionsNotSupported, expected: "without + and #"),
    ])
    func `a refused subscription gets the advice for its reason`(row: RefusedMessage) async throws {
        let server = SubscribingServer()
        server.setWithholding(true)
        let client = server.scriptedServer.client { $0.version = .v5_0 }
        try await client.connect()
        async let subscribed = error { () throws(MQTTError) in _ = try await client.subscribe(to: "a") }
        #expect(await eventually { server.unansweredCount == 1 })
        server.answer(row.code)
        let answered = await subscribed
        let disconnect = MQTTPacket.Disconnect(reasonCode: row.code)
        let ended = MQTTError(
            MQTTRefusal(.subscription(filters: ["a"]), token: 0, disconnect: disconnect, isSilence: false))
        for error in [answered, ended] {
            #expect(error?.message.contains(row.expected) == true, "\(String(describing: error))")
            let isPermission = row.code == .notAuthorized || row.code == .unspecifiedError
            #expect(error?.message.contains("this user may") == isPermission, "\(String(describing: error))")
        }
        await client.disconnect()
    }

    @Test func `a request that the server ends connections for without a reason is measured against usual limits`() {
        func message(_ request: MQTTRefusal.Request, _ byteCount: Int = 0) -> String {
            MQTTError(MQTTRefusal(request, token: 0, disconnect: nil, isSilence: false, byteCount: byteCount)).message
        }
        let published = message(.message(topic: "a/b/c/d/e/f/g/h/i", .atLeastOnce), 200_000)
        #expect(published.contains("17 bytes and 8 slashes") && published.contains("200000 bytes"))
        #expect(published.contains("this user may publish"))
        let subscribed = message(.subscription(filters: ["a", "a/b/#", "long-name"]))
        #expect(subscribed.contains("9 bytes and 2 slashes") && subscribed.contains("this user may subscribe"))
    }

    @Test(arguments: [(MQTTVersion.v3_1_1, true), (.v5_0, false)])
    func `a refused client identifier names the option, and before 5_0 what else the code may mean`(
        version: MQTTVersion, isVague: Bool
    ) {
        let error = MQTTError(connack: .clientIdentifierNotValid, properties: [], version: version)
        #expect(error.message.contains("clientID") && error.message.contains("23 bytes"))
        #expect(error.message.contains("keepAlive") == isVague)
    }

    @Test func `a client that publishes too fast learns of the option`() {
        let error = MQTTError(disconnect: .messageRateTooHigh, properties: [])
        #expect(error.message.contains("maximumPublishesPerSecond"))
    }
}

extension MQTTConnectionState {
    fileprivate var isWaiting: Bool { if case .waiting = self { true } else { false } }
    fileprivate var isDisconnected: Bool { if case .disconnected = self { true } else { false } }
}
