import MessagingWire
import STOMPCore
import TestSupport
import Testing

@Suite(.heavy) struct ConnectTests {
    @Test func connectNamesVersionsAndHostFirst() throws {
        let client = try ScriptedEngine()
        client.open()
        #expect(client.takeOutput() == "CONNECT\naccept-version:1.0,1.1,1.2\nhost:h\n\n\0")
    }

    @Test func connectSaysAllThatTheOptionsSay() throws {
        let client = try ScriptedEngine {
            $0.versions = [.v12, .v11]
            $0.login = "u"
            $0.passcode = "p:w"
            $0.clientID = "c"
            $0.heartBeat = .init(outgoing: 60_000, incoming: 20_000)
            $0.headers = ["x": "y"]
            $0.usesSTOMPCommand = true
        }
        client.open()
        #expect(
            client.takeOutput()
                == "STOMP\naccept-version:1.1,1.2\nhost:h\nlogin:u\npasscode:p:w\nclient-id:c\nheart-beat:60000,20000\nx:y\n\n\0"
        )
    }

    @Test func connectIsNeverEscapedUnlessAskedTo() throws {
        let plain = try ScriptedEngine { $0.passcode = "a\\b" }
        plain.open()
        #expect(plain.takeOutput().contains("passcode:a\\b\n"))
        let escaped = try ScriptedEngine {
            $0.passcode = "a\\b"
            $0.escaping = .asRabbitMQReads
        }
        escaped.open()
        #expect(escaped.takeOutput().contains("passcode:a\\\\b\n"))
    }

    @Test(arguments: ["receipt", "accept-version", "host", "login", "content-length", "heart-beat"])
    func connectTakesNoReceiptAndNoHeaderTwice(_ name: String) {
        #expect(throws: STOMPUsageError.self) { try ScriptedEngine { $0.headers = [name: "x"] } }
    }

    @Test func connectRefusesOptionsThatCannotBeSaid() {
        #expect(throws: STOMPUsageError.self) { try ScriptedEngine { $0.passcode = "a\nb" } }
        #expect(throws: STOMPUsageError.self) { try ScriptedEngine { $0.versions = [] } }
        #expect(throws: STOMPUsageError.self) { try ScriptedEngine { $0.heartBeat = .init(outgoing: -1, incoming: 0) } }
    }

    @Test(arguments: STOMPVersion.allCases)
    func connectedChoosesTheVersion(_ version: STOMPVersion) throws {
        let client = try ScriptedEngine()
        client.open()
        client.receive("CONNECTED\nversion:\(version)\n\n\0")
        #expect(client.takeLog() == ["connected \(version)"])
        #expect(client.engine.version == version && client.engine.phase == .connected)
    }

    @Test func missingVersionMeansOneDotZero() throws {
        let client = try ScriptedEngine()
        client.open()
        client.receive("CONNECTED\nsession: x\n\n\0")
        #expect(client.takeLog() == ["connected 1.0"])
    }

    @Test(arguments: ["version:1.0\n", "version:1.3\n", "version:\n", ""])
    func versionThatWasNotOfferedFails(_ header: String) throws {
        let client = try ScriptedEngine { $0.versions = [.v11, .v12] }
        client.open()
        client.receive("CONNECTED\n\(header)\n\0")
        #expect(client.takeLog() == ["failed versionMismatch", "close"])
        #expect(client.engine.shouldClose == true)
    }

    @Test func malformedHeartBeatInConnectedFails() throws {
        let client = try ScriptedEngine()
        client.open()
        client.receive("CONNECTED\nversion:1.2\nheart-beat:soon\n\n\0")
        #expect(client.takeLog() == ["failed violation(invalidHeader)", "close"])
    }

    @Test func errorBeforeConnectedIsTransientUnlessItIsAboutCredentials() throws {
        let client = try ScriptedEngine()
        client.open()
        client.receive("ERROR\nmessage:Broker full\\t:\n\ntry later\0")
        #expect(client.takeLog() == ["error Broker full\\t:", "failed refused", "close"])
        client.close()
        #expect(client.takeLog() == [])
        client.open()
        client.receive("ERROR\nmessage:Bad CONNECT\n\nAccess refused for user 'x'\n\0")
        #expect(client.takeLog() == ["error Bad CONNECT", "failed credentialsRefused", "close"])
    }

    @Test func clientIDInUseIsTransient() throws {
        let client = try ScriptedEngine()
        client.open()
        client.receive("ERROR\nmessage:Broker: b - Client: c already connected from tcp://1\n\n\0")
        #expect(client.takeLog().contains("failed refused"))
    }

    @Test(arguments: [true, false])
    func endOfStreamBeforeConnectedNamesTheEscapingOptionWhereABackslashIs(_ hasBackslash: Bool) throws {
        let options = try ScriptedEngine { $0.passcode = hasBackslash ? "a\\b" : "ab" }
        options.open()
        options.engine.connectionClosed(at: 0, into: &options.effects)
        guard case .connectionFailed(let failure)? = options.effects.events.first?.kind else {
            Issue.record("no failure")
            return
        }
        #expect(failure.reason == .closedBeforeConnected)
        #expect(failure.message.contains("asRabbitMQReads") == hasBackslash)
    }

    @Test(arguments: [STOMPConnectOptions.Escaping.never, .asRabbitMQReads])
    func refusedCredentialsNameTheEscapingOptionUnlessItIsSet(_ escaping: STOMPConnectOptions.Escaping) throws {
        let client = try ScriptedEngine {
            $0.passcode = "a\\b"
            $0.escaping = escaping
        }
        client.open()
        let error = Array("ERROR\nmessage:User name [x] or password is invalid.\n\n\0".utf8)
        _ = client.engine.receive(error.span.bytes, at: 0, into: &client.effects)
        let failures = client.effects.events.compactMap { entry -> STOMPConnectionFailure? in
            if case .connectionFailed(let failure) = entry.kind { failure } else { nil }
        }
        #expect(failures.map(\.reason) == [.credentialsRefused])
        #expect(failures.first?.message.contains("asRabbitMQReads") == (escaping == .never))
    }

    @Test func connectTimeoutEndsAnAttempt() throws {
        let client = try ScriptedEngine()
        client.open()
        #expect(client.deadline == 30_000)
        client.advance(to: 29_999)
        #expect(client.takeLog() == [])
        client.advance(to: 30_000)
        #expect(client.takeLog() == ["failed connectTimeout", "close"])
        client.close()
        #expect(client.takeLog() == [] && client.deadline == nil)
    }

    @Test(arguments: [
        "HTTP/1.1 400 Bad Request\r\n", "\u{15}\u{3}\u{3}\n", "220 smtp.example\n", "HELLO\n", "MESSAGE\n", "CONNECT\n",
    ])
    func somebodyElseIsNoticedByTheFirstLine(_ greeting: String) throws {
        let client = try ScriptedEngine()
        client.open()
        client.receive(greeting)
        #expect(client.takeLog().last == "close")
        #expect(client.engine.phase == .closing)
    }

    @Test func secondConnectedFails() throws {
        let client = try ScriptedEngine.connected()
        client.receive("CONNECTED\nversion:1.2\n\n\0")
        #expect(client.takeLog() == ["failed violation(unexpectedFrame)", "close"])
    }

    @Test func profileComesFromTheServerHeaderUnlessOverruled() throws {
        #expect(try ScriptedEngine.connected(server: "RabbitMQ/3.10.8").engine.profile == .rabbitMQ)
        var configuration = STOMPEngineConfiguration()
        configuration.profile = .artemis
        let client = try ScriptedEngine.connected(server: "RabbitMQ/3.10.8", configuration: configuration)
        #expect(client.engine.profile == .artemis)
    }

    @Test func freshCredentialsGoIntoTheNextConnect() throws {
        let client = try ScriptedEngine { $0.passcode = "old" }
        client.open()
        #expect(client.takeOutput().contains("passcode:old"))
        client.close()
        var options = STOMPConnectOptions()
        options.passcode = "new"
        client.engine.configuration.connect = options
        client.open()
        #expect(client.takeOutput().contains("passcode:new"))
        #expect(client.engine.connection == 2)
    }

    @Test func nothingCanBeSentBeforeConnected() throws {
        let client = try ScriptedEngine()
        #expect(
            client.misuse { e throws(STOMPUsageError) in try e.engine.send(destination: "/q", body: [], at: 0) }
                == .notConnected)
        client.open()
        #expect(
            client.misuse { e throws(STOMPUsageError) in try e.engine.send(destination: "/q", body: [], at: 0) }
                == .notConnected)
        #expect(
            client.misuse { e throws(STOMPUsageError) in
                try e.engine.subscribe(id: "1", destination: "/q", token: 1, at: 0)
            } == .notConnected)
    }

    @Test func outputOfAnEarlierConnectionIsNotSentOnTheNext() throws {
        let client = try ScriptedEngine.connected()
        try client.engine.send(destination: "/q", body: [1], at: 0)
        client.close()
        client.open()
        #expect(client.takeOutput().hasPrefix("CONNECT\n"))
    }
}
