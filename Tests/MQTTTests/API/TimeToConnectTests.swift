import Foundation
import MQTT
import MQTTCore
import Synchronization
import TestSupport
import Testing
import Transport

/// One time for an attempt to connect, whatever a server or the application's own closures do meanwhile.
@Suite("Client: time to connect", .turns)
struct TimeToConnectTests {
    @Test func `credentials and the first step of an authentication that never come fail the attempt`() async throws {
        let server = ScriptedServer { _ in }
        let waiting = server.client {
            $0.connectTimeout = .milliseconds(100)
            $0.credentialsProvider = { _ in
                await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
                return nil
            }
        }
        await #expect { try await waiting.connect() } throws: { ($0 as? MQTTError)?.code == .noCredentials }
        let beginning = server.client {
            $0.version = .v5_0
            $0.connectTimeout = .milliseconds(100)
            $0.authentication = MQTTAuthentication(method: "M") {
                await withUnsafeContinuation { (_: UnsafeContinuation<Void, Never>) in }
                return nil
            } respond: { _ in
                nil
            }
        }
        await #expect { try await beginning.connect() } throws: { ($0 as? MQTTError)?.code == .timedOut }
        #expect(server.connectionCount == 0)
    }

    @Test func `an answer of our own that does not come in time is not blamed on the server`() async throws {
        let clock = try ManualClock()
        let server = ScriptedServer(clock: clock) { step in
            if case .connectReceived = step.event { step.authenticate(.continueAuthentication, [2]) }
        }
        let responding = PendingCall<Void>()
        let client = server.client {
            $0.version = .v5_0
            $0.connectTimeout = .seconds(2)
            $0.authentication = MQTTAuthentication(method: "M") {
                [1]
            } respond: { _ in
                _ = responding.end(())
                try await clock.sleep(for: .seconds(3600))
                return nil
            }
        }
        let connecting = Task { try await client.connect() }
        await responding.answer()
        await clock.advance(by: .seconds(2))
        await #expect { try await connecting.value } throws: {
            ($0 as? MQTTError)?.message.contains("authentication.respond") == true
        }
        await client.disconnect()
    }

    @Test func `a TLS file that is not read in time fails the attempt, and later ones wait for the same reading`()
        async throws
    {
        let scratch = try ScratchDirectory()
        let path = scratch.file("authorities.pem")
        // Opening it waits for a writer.
        #expect(mkfifo(path, 0o600) == 0)
        var configuration = MQTTConfiguration()
        configuration.connectTimeout = .milliseconds(100)
        configuration.reconnect.initialDelay = .milliseconds(1)
        configuration.reconnect.maximumDelay = .milliseconds(1)
        // More than there are threads for tasks: each of them would hold one.
        configuration.reconnect.firstConnectAttempts = ProcessInfo.processInfo.activeProcessorCount + 1
        configuration.tls.trust = .authorities([.file(path)])
        let client = MQTTClient("mqtts://127.0.0.1:1", configuration: configuration)
        let error = await #expect(throws: MQTTError.self) {
            try await withTimeout(.patience, "an attempt whose files hang") { try await client.connect() }
        }
        #expect(error?.code == .timedOut && error?.message.contains("certificates") == true, "\(error as Any)")
        // Until something reads it. On a busy machine the time of all attempts may pass before one begins to read.
        var writer: Int32 = -1
        #expect(
            await eventually {
                writer = open(path, O_WRONLY | O_NONBLOCK)
                if writer < 0 { try? await client.connect() }
                return writer >= 0
            })
        close(writer)
        await client.disconnect()
    }

    @Test func `tasks of the app continue while the TLS files of more clients than there are threads hang`() async {
        // In a process of its own, whose threads are nobody else's.
        await #expect(processExitsWith: .success) {
            // The process ends if nothing in it continues.
            alarm(600)
            let scratch = try ScratchDirectory()
            let path = scratch.file("authorities.pem")
            #expect(mkfifo(path, 0o600) == 0)
            var configuration = MQTTConfiguration()
            configuration.connectTimeout = .milliseconds(10)
            configuration.reconnect.firstConnectAttempts = 1
            configuration.tls.trust = .authorities([.file(path)])
            for _ in 0...ProcessInfo.processInfo.activeProcessorCount {
                let client = MQTTClient("mqtts://127.0.0.1:1", configuration: configuration)
                let error = await #expect(throws: MQTTError.self) { try await client.connect() }
                #expect(error?.code == .timedOut, "\(error as Any)")
            }
            await Task.detached {}.value
        }
    }

    #if os(Linux)
        @Test func `files that hang take one thread for equal TLS options, and sixteen for all`() async {
            // In a process of its own, whose threads are nobody else's.
            await #expect(processExitsWith: .success) {
                let scratch = try ScratchDirectory()
                let path = scratch.file("authorities.pem")
                #expect(mkfifo(path, 0o600) == 0)
                func connect(_ server: @escaping @Sendable (Int) -> String) async {
                    await withTaskGroup { group in
                        for number in 0..<200 {
                            group.addTask {
                                var configuration = MQTTConfiguration()
                                configuration.connectTimeout = .milliseconds(500)
                                configuration.reconnect.firstConnectAttempts = 1
                                configuration.tls.trust = .authorities([.file(path)])
                                configuration.tls.serverName = server(number)
                                let client = MQTTClient("mqtts://127.0.0.1:1", configuration: configuration)
                                let error = await #expect(throws: MQTTError.self) { try await client.connect() }
                                #expect(error?.code == .timedOut, "\(error as Any)")
                            }
                        }
                    }
                }
                await connect { _ in "one.example" }
                #expect(ThreadCount.named("messaging-files") == 1)
                await connect { "\($0).example" }
                #expect(ThreadCount.named("messaging-files") <= 16)
            }
        }
    #endif

    @Test func `on a manual clock no time passes while an authentication responds, unless it sleeps on the clock`()
        async throws
    {
        let clock = try ManualClock()
        let server = ScriptedServer(clock: clock) { step in
            switch step.event {
            case .connectReceived: step.authenticate(.continueAuthentication, [2])
            case .authenticationReceived: step.accept()
            default: break
            }
        }
        let (responding, gate) = (PendingCall<Void>(), PendingCall<Void>())
        let client = server.client {
            $0.version = .v5_0
            $0.authentication = MQTTAuthentication(method: "M") {
                [1]
            } respond: { _ in
                if responding.end(()) {
                    await gate.answer()
                    try await clock.sleep(for: .seconds(5))
                }
                return [3]
            }
        }
        await client.start()
        await responding.answer()
        let start = clock.now
        async let advancing: Void = clock.advance(by: .seconds(3600))
        // The advance has begun, and the loop has had nothing to do for a while.
        for _ in 0..<100 {
            await clock.loop.result {}
            await clock.waitUntilQuiet()
        }
        #expect(clock.now == start)
        gate.end(())
        await advancing
        #expect(client.state.isConnected)
        #expect(server.connectionCount == 1)
        await client.disconnect()
    }

    @Test func `a server that keeps sending AUTH does not extend the time to connect`() async throws {
        let server = ScriptedServer { step in
            switch step.event {
            case .connectReceived, .authenticationReceived: step.authenticate(.continueAuthentication, [2])
            default: break
            }
        }
        let client = server.client {
            $0.version = .v5_0
            // Not so soon that the server's AUTH has not arrived on a busy machine.
            $0.connectTimeout = .seconds(2)
            $0.authentication = MQTTAuthentication(method: "M") {
                [1]
            } respond: { _ in
                [3]
            }
        }
        await #expect { try await client.connect() } throws: { ($0 as? MQTTError)?.code == .timedOut }
    }

    @Test func `one AUTH is answered at a time, and the answer ends with its connection`() async throws {
        let counts = Mutex((begun: 0, cancelled: 0))
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            step.perform { machine in
                var properties = MQTTProperties()
                properties.authenticationMethod = "M"
                for _ in 0..<100 {
                    try? MQTTPacket.auth(.init(reasonCode: .continueAuthentication, properties: properties))
                        .encode(into: &machine.engine.output, version: .v5_0)
                }
            }
        }
        let client = server.client {
            $0.version = .v5_0
            $0.authentication = MQTTAuthentication(method: "M") {
                nil
            } respond: { _ in
                counts.withLock { $0.begun += 1 }
                do { try await Task.sleep(for: .seconds(3600)) } catch { counts.withLock { $0.cancelled += 1 } }
                return nil
            }
        }
        await #expect { try await client.connect() } throws: { ($0 as? MQTTError)?.code == .protocolError }
        #expect(await eventually { counts.withLock { $0.begun == $0.cancelled } })
        #expect(counts.withLock { $0.begun } <= 1)
    }

    @Test func `redirects without a stable connection between them wait after the eighth`() async throws {
        let connections = try await Self.connectionsUntilWait {
            $0.reconnect.stableAfter = .seconds(600)
            $0.reconnect.spread = .seconds(300)
        } answer: { step, itself in
            step.accept()
            step.disconnect(referringTo: itself)
        }
        #expect(connections == 9)
    }

    @Test func `a redirect that ends a stable connection is the first of those in a row`() async throws {
        let connections = try await Self.connectionsUntilWait {
            $0.reconnect.stableAfter = .zero
        } answer: { step, itself in
            guard step.connection == 1 else { return step.refuse(referringTo: itself) }
            step.accept()
            step.disconnect(referringTo: itself)
        }
        // Eight are followed at once.
        #expect(connections == 9)
    }

    /// The number of connections that a client makes before it waits.
    ///
    /// - Parameter answer: answers CONNECT; it gets the address of the same server.
    private static func connectionsUntilWait(
        _ change: (inout MQTTConfiguration) -> Void,
        answer: @escaping @Sendable (_ step: ScriptedServer.Step, _ itself: String) -> Void
    ) async throws -> Int {
        let port = Mutex(0)
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            answer(step, "127.0.0.1:\(port.withLock { $0 })")
        }
        let listener = try await server.listen()
        port.withLock { $0 = Int(listener.port) }
        let client = server.client {
            $0.version = .v5_0
            $0.followsRedirects = true
            $0.reconnect.initialDelay = .seconds(300)
            $0.reconnect.maximumDelay = .seconds(300)
            change(&$0)
        }
        var states = client.states.makeAsyncIterator()
        let connecting = Task { try? await client.connect() }
        while let state = await states.next() {
            if case .waiting = state { break }
        }
        let count = server.connectionCount
        await client.disconnect()
        await connecting.value
        await listener.close()
        return count
    }

    @Test func `a server that another one refers to is tried once, and no other of a long list`() async throws {
        let bad = try (0..<10).map { _ in try BadServer.start(.closed) }
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            step.refuse(referringTo: bad.map { "127.0.0.1:\($0.port)" }.joined(separator: " "))
        }
        let client = server.client {
            $0.version = .v5_0
            $0.followsRedirects = true
            $0.reconnect.firstConnectAttempts = 1
        }
        var events = client.events.makeAsyncIterator()
        await #expect(throws: MQTTError.self) { try await client.connect() }
        await client.disconnect()
        var tried: [UInt16] = []
        while let event = await events.next() {
            if case .connecting(let url) = event, case .host(_, let port) = url.endpoint { tried.append(port) }
            if case .stateChanged(.disconnected) = event { break }
        }
        let ports = bad.map { UInt16($0.port) }
        #expect(tried.filter { ports.contains($0) } == [ports[0]])
    }

    @Test(arguments: MQTTVersion.allCases)
    func `CONNECT properties that an option sets are refused before a connection is opened`(
        version: MQTTVersion
    ) async throws {
        let server = ScriptedServer { $0.accept() }
        for (identifier, option) in [
            (MQTTPropertyIdentifier.sessionExpiryInterval, "sessionExpiry"), (.receiveMaximum, "receiveMaximum"),
            (.maximumPacketSize, "maximumPacketSize"), (.topicAliasMaximum, "topicAliasMaximum"),
        ] {
            let client = server.client {
                $0.version = version
                $0.connectProperties = [MQTTProperty(identifier, .integer(10))]
            }
            await #expect { try await client.connect() } throws: {
                ($0 as? MQTTError)?.code == .invalidRequest && "\($0)".contains(option)
            }
        }
        #expect(server.connectionCount == 0)
    }

    @Test func `the largest control packet is an option`() async throws {
        let server = ScriptedServer { step in
            guard case .connectReceived = step.event else { return }
            var properties = MQTTProperties()
            properties.reasonString = String(repeating: "x", count: 2_000)
            step.accept(properties: properties)
        }
        let strict = server.client {
            $0.version = .v5_0
            $0.maximumControlPacketSize = 1_000
        }
        await #expect { try await strict.connect() } throws: {
            ($0 as? MQTTError)?.reasonCode == .packetTooLarge && "\($0)".contains("maximumControlPacketSize")
        }
        let lax = server.client { $0.version = .v5_0 }
        try await lax.connect()
        await lax.disconnect()
    }
}
