import ClientTestSupport
import LoopbackBroker
import MQTT
import MessagingJudge
import STOMP
import Synchronization
import TestSupport
import Testing
import Transport

/// What a test does to single clients and packets, seen by our own clients.
@Suite(.turns) struct FaultTests {
    // MARK: Packets

    @Test func aPublishThatGetsLostIsSentAgainAfterTheNextConnection() async throws {
        try await withMQTT { broker, client in
            let received = try await client.subscribe(to: "a", qos: .atLeastOnce)
            broker.inject(.drop, .received, .mqtt(.publish), number: 2, client: "meter")
            try await client.publish("1", to: "a", qos: .atLeastOnce)
            async let second = client.publish("2", to: "a", qos: .atLeastOnce)
            // The third overtakes the lost one.
            var messages = received.makeAsyncIterator()
            #expect(try await messages.next()?.text == "1")
            async let third = client.publish("3", to: "a", qos: .atLeastOnce)
            let overtaking = try await messages.next()?.text
            #expect(overtaking == "2" || overtaking == "3")
            #expect(await broker.dropConnection(of: "meter"))
            _ = try await (second, third)
            #expect(broker.statistics.connections == 2)
        }
    }

    @Test func `arrivals contain a dropped packet only when they are asked to, and mark it`() async throws {
        try await withMQTT { broker, client in
            var all = broker.arrivals(includesDropped: true).filter { $0.topic != nil }.makeAsyncIterator()
            var processed = broker.arrivals().filter { $0.topic != nil }.makeAsyncIterator()
            broker.inject(.drop, .received, .mqtt(.publish), client: "meter", number: 2)
            for text in ["1", "2", "3"] { try await client.publish(text, to: "a") }
            let marked = [await all.next(), await all.next(), await all.next()]
            #expect(marked.map { $0?.text } == ["1", "2", "3"])
            #expect(marked.map { $0?.wasDropped } == [false, true, false])
            #expect(marked[1]?.description == "PUBLISH of meter to a, 1 byte, dropped")
            #expect(await processed.next()?.text == "1")
            #expect(await processed.next()?.text == "3")
        }
        try await withBroker { broker in
            let client = try await RawClient.stomp(broker)
            var all = broker.arrivals(includesDropped: true).makeAsyncIterator()
            var processed = broker.arrivals().makeAsyncIterator()
            broker.inject(.drop, .received, .stomp(.send))
            try await client.send("SEND\ndestination:/queue/q\n\n1\0SEND\ndestination:/queue/q\n\n2\0")
            #expect(await all.next()?.wasDropped == true)
            #expect(await all.next()?.wasDropped == false)
            #expect(await processed.next()?.text == "2")
        }
    }

    @Test func anAcknowledgementThatGetsLostLeavesThePublisherWaiting() async throws {
        try await withMQTT { broker, client in
            broker.inject(.drop, .sent, .mqtt(.puback))
            var arrivals = broker.arrivals().makeAsyncIterator()
            async let answer = client.publish("1", to: "a", qos: .atLeastOnce)
            #expect(await arrivals.next()?.packet == .mqtt(.publish))
            #expect(await broker.dropConnection(of: "meter"))
            // It was sent twice: the first time its acknowledgement was lost.
            _ = try await answer
            #expect(await arrivals.next()?.packet == .mqtt(.connect))
            #expect(await arrivals.next()?.topic == "a")
        }
    }

    @Test func aDuplicatedPublishArrivesTwiceAtQoS1AndOnceAtQoS2() async throws {
        try await withMQTT { broker, client in
            let received = try await client.subscribe(to: "#", qos: .exactlyOnce)
            broker.inject(.duplicate, .received, .mqtt(.publish), number: 1)
            broker.inject(.duplicate, .received, .mqtt(.publish), number: 2)
            try await client.publish("1", to: "a", qos: .atLeastOnce)
            try await client.publish("2", to: "a", qos: .exactlyOnce)
            try await client.publish("3", to: "a", qos: .exactlyOnce)
            var texts: [String] = []
            for try await message in received {
                texts.append(message.text ?? "")
                if texts.last == "3" { break }
            }
            #expect(texts == ["1", "1", "2", "3"])
        }
    }

    @Test func aConnectionIsCutInPlaceOfAPacket() async throws {
        try await withMQTT { broker, client in
            broker.inject(.cut, .received, .mqtt(.subscribe))
            // The client subscribes again on its next connection.
            _ = try await client.subscribe(to: "a")
            #expect(broker.statistics.connections == 2)
            broker.inject(.cut, .sent, .mqtt(.puback))
            try await client.publish("1", to: "b", qos: .atLeastOnce)
            #expect(broker.statistics.connections == 3)
        }
    }

    @Test func faultsCountThePacketsOfOneClientAndCanBeRemoved() async throws {
        try await withMQTT { broker, client in
            broker.inject(.drop, .received, .mqtt(.publish), client: "another")
            try await client.publish("1", to: "a", qos: .atLeastOnce)
            broker.inject(.drop, .received, .mqtt(.publish), client: "meter")
            broker.removeInjectedFaults()
            try await client.publish("2", to: "a", qos: .atLeastOnce)
        }
    }

    @Test func framesGetLostAndArriveTwice() async throws {
        try await withSTOMP { broker, client in
            let received = try await client.subscribe(to: "/queue/a")
            broker.inject(.drop, .received, .stomp(.send))
            broker.inject(.duplicate, .sent, .stomp(.message), client: "worker")
            var arrivals = broker.arrivals().makeAsyncIterator()
            try await client.send("lost", to: "/queue/a")
            try await client.sendAndConfirm("kept", to: "/queue/a")
            let arrival = await arrivals.next()
            #expect(arrival?.packet == .stomp(.send))
            #expect(arrival?.client == "worker")
            #expect(arrival?.topic == "/queue/a")
            #expect(arrival?.text == "kept")
            var messages = received.makeAsyncIterator()
            #expect(try await messages.next()?.text == "kept")
            #expect(try await messages.next()?.text == "kept")
            broker.inject(.cut, .received, .stomp(.send))
            await #expect(throws: STOMPError.self) { try await client.sendAndConfirm("cut", to: "/queue/a") }
        }
    }

    // MARK: A strict broker

    @Test func `a forbidden topic ends the connection after the messages before it`() async throws {
        var options = LoopbackBrokerOptions()
        options.faults = .strict(forbiddenTopics: ["no"])
        try await withBroker(options) { broker in
            let old = try await RawClient.mqtt(broker, MQTTBytes.connect("old"))
            try await old.send(
                MQTTBytes.publish("yes", "1", qos: 1, id: 1) + MQTTBytes.publish("no", "2", qos: 1, id: 2)
                    + MQTTBytes.publish("yes", "3", qos: 1, id: 3))
            try await old.expect([0x40, 2, 0, 1])
            try await old.expectEnd()
            let new = try await RawClient.open(broker.ports.mqtt)
            try await new.send(MQTTBytes.connect("new", level: 5))
            #expect(try await new.read(4).starts(with: [0x20]))
            try await new.send(MQTTBytes.packet(0x30, MQTTBytes.text("no") + [0]))
            let rest = try await new.connection.receive { _ in false }
            #expect(rest.suffix(3) == [0xE0, 1, 0x87])
        }
    }

    /// Those behind the forbidden message came in the same read.
    @Test func `a repetition of a message of QoS 2 that ended the connection is answered and delivered`() async throws {
        var options = LoopbackBrokerOptions()
        options.faults = .strict(forbiddenTopics: ["no"])
        try await withBroker(options) { broker in
            let reader = try await RawClient.mqtt(broker, MQTTBytes.connect("reader"))
            try await reader.send(MQTTBytes.subscribe("#", qos: 0))
            try await reader.expect([0x90, 3, 0, 1, 0])
            let messages: [(topic: String, id: UInt8)] = [("yes", 1), ("no", 2), ("yes", 3)]
            func publish(isDuplicate: Bool) -> [UInt8] {
                messages.flatMap { topic, id in
                    MQTTBytes.publish(topic, "\(id)", qos: 2, id: id, isDuplicate: isDuplicate)
                }
            }
            let first = try await RawClient.mqtt(broker, MQTTBytes.connect("sender", clean: false))
            try await first.send(publish(isDuplicate: false))
            try await first.expect([0x50, 2, 0, 1])
            try await first.expectEnd()
            broker.changeFaults { $0 = .strict() }
            let second = try await RawClient.open(broker.ports.mqtt)
            try await second.send(MQTTBytes.connect("sender", clean: false))
            try await second.expect([0x20, 2, 1, 0])
            try await second.send(publish(isDuplicate: true))
            try await second.expect([0x50, 2, 0, 1, 0x50, 2, 0, 2, 0x50, 2, 0, 3])
            for (topic, id) in messages { try await reader.expect(MQTTBytes.publish(topic, "\(id)")) }
        }
    }

    @Test func `forbidden filters, too many filters and QoS 2 are not answered by a strict broker`() async throws {
        var options = LoopbackBrokerOptions()
        options.faults = .strict(forbiddenFilters: ["no/#"])
        try await withBroker(options, mayBreak: [.packetIdentifierInUse]) { broker in
            for count in [8, 9] {
                let client = try await RawClient.mqtt(broker, MQTTBytes.connect("a"))
                let filters = (0..<count).flatMap { MQTTBytes.text("f\($0)") + [UInt8(1)] }
                try await client.send(MQTTBytes.packet(0x82, [0, 1] + filters))
                if count == 8 {
                    try await client.expect([0x90, 10, 0, 1] + Array(repeating: 1, count: 8))
                } else {
                    try await client.expectEnd()
                }
            }
            let client = try await RawClient.mqtt(broker, MQTTBytes.connect("a"))
            try await client.send(MQTTBytes.subscribe("yes", qos: 2))
            try await client.expectNothing(before: MQTTBytes.ping, [0xD0, 0])
            try await client.send(MQTTBytes.subscribe("no/#", qos: 1))
            try await client.expectEnd()
        }
    }

    @Test func `what exceeds a limit of a service ends the connection with its reason`() async throws {
        func end(_ change: (inout LoopbackFaults) -> Void, _ packets: [UInt8]) async throws -> UInt8? {
            var last: UInt8?
            var options = LoopbackBrokerOptions()
            change(&options.faults)
            try await withBroker(options, mayBreak: [.packetIdentifierInUse]) { broker in
                let client = try await RawClient.open(broker.ports.mqtt)
                try await client.send(MQTTBytes.connect("a", level: 5))
                try await client.send(packets + MQTTBytes.ping)
                var bytes = try await client.connection.receive { $0.contains(0xD0) }
                // The first answer may come before the broker has looked at the packets; the second one comes after that.
                try? await client.send(MQTTBytes.ping)
                bytes += try await client.connection.receive { $0.suffix(2) == [0xD0, 0] }
                last = bytes.suffix(2) == [0xD0, 0] ? nil : bytes.last
            }
            return last
        }
        func publish(_ topic: String, _ count: Int = 0) -> [UInt8] {
            MQTTBytes.packet(0x30, MQTTBytes.text(topic) + [0] + Array(repeating: 1, count: count))
        }
        func subscribe(_ filters: [String]) -> [UInt8] {
            MQTTBytes.packet(0x82, [0, 1, 0] + filters.flatMap { MQTTBytes.text($0) + [1] })
        }
        #expect(try await end({ $0.maximumTopicBytes = 3 }, publish("a/b") + subscribe(["a/+"])) == nil)
        #expect(try await end({ $0.maximumTopicBytes = 3 }, publish("a/bc")) == 0x90)
        #expect(try await end({ $0.maximumTopicSlashes = 1 }, publish("a/b") + subscribe(["$share/g/a/#"])) == nil)
        #expect(try await end({ $0.maximumTopicSlashes = 1 }, subscribe(["a/b/#"])) == 0x8F)
        #expect(try await end({ $0.maximumSubscriptions = 2 }, subscribe(["a", "b"]) + subscribe(["a"])) == nil)
        #expect(try await end({ $0.maximumSubscriptions = 2 }, subscribe(["a", "b"]) + subscribe(["c"])) == 0x97)
        #expect(try await end({ $0.maximumPublishesPerSecond = 2 }, publish("a") + publish("a")) == nil)
        #expect(
            try await end({ $0.maximumPublishesPerSecond = 2 }, publish("a") + publish("a") + publish("a")) == 0x96)
        #expect(try await end({ $0.maximumPublishedBytesPerSecond = 8 }, publish("a", 7)) == nil)
        #expect(try await end({ $0.maximumPublishedBytesPerSecond = 8 }, publish("a", 8)) == 0x96)
    }

    @Test func `a client is told the Maximum QoS and the keep alive that a service allows`() async throws {
        var options = LoopbackBrokerOptions()
        options.limits.maximumQoS = 1
        options.limits.keepAlive = 30...1_200
        options.limits.maximumClientIDBytes = 5
        try await withBroker(options) { broker in
            var configuration = MQTTConfiguration(clientID: "meter")
            configuration.version = .v5_0
            configuration.keepAlive = .zero
            let client = MQTTClient(broker.urls.mqtt ?? "", configuration: configuration)
            var events = client.events.makeAsyncIterator()
            try await client.connect()
            while let event = await events.next() {
                guard case .connected(let info) = event else { continue }
                #expect(info.limits.maximumQoS == .atLeastOnce)
                #expect(info.keepAlive == 1_200)
                break
            }
            await client.disconnect()
            let long = MQTTClient(broker.urls.mqtt ?? "", clientID: "meters")
            let failure = await #expect(throws: MQTTError.self) { try await long.connect() }
            #expect(failure?.reasonCode == .clientIdentifierNotValid || failure?.reasonCode?.rawValue == 2)
        }
    }

    /// A broker with the limits of a service, and a client that is used as the first page and an ordinary program do: the
    /// first example, then twenty subscriptions over three reconnects.
    ///
    /// - Returns: whether each message arrived, over four connections.
    private func isAtHome(
        on service: Service, _ change: (inout MQTTConfiguration) -> Void, qos: QoS = .atLeastOnce
    ) async throws -> Bool {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(service.options, clock: clock)
        var configuration = MQTTConfiguration(clientID: "kitchen-%%%%")
        change(&configuration)
        let client = MQTTClient(try broker.mqttURL, configuration: configuration, clock: clock)
        let hasEnded = Atomic(false)
        let program = Task(executorPreference: clock.loop) {
            defer { hasEnded.store(true, ordering: .relaxed) }
            try await client.connect()
            let readings = try await client.subscribe(to: "home/+/temperature", qos: qos)
            try await client.publish("21.5", to: "home/kitchen/temperature", qos: .atLeastOnce)
            for try await reading in readings {
                guard reading.captures == ["kitchen"], reading.text == "21.5" else { return false }
                break
            }
            var received: [MQTTSubscription.Iterator] = []
            for number in 0..<20 {
                received.append(try await client.subscribe(to: "site/\(number)/+", qos: qos).makeAsyncIterator())
            }
            for round in 0..<4 {
                for index in received.indices {
                    try await client.publish("\(round)", to: "site/\(index)/state", qos: .atLeastOnce)
                    guard try await received[index].next()?.text == "\(round)" else { return false }
                }
                if round < 3 { await broker.dropAllConnections() }
            }
            return broker.statistics.connections == 4
        }
        // A second for each step: what hangs is given up after ten minutes.
        for _ in 0..<600 where !hasEnded.load(ordering: .relaxed) { await clock.advance(by: .seconds(1)) }
        program.cancel()
        let isAtHome = (try? await program.value) ?? false
        await client.disconnect()
        await broker.stop()
        return isAtHome
    }

    enum Service: CaseIterable {
        case awsIoT, azureEventGrid, strict

        var options: LoopbackBrokerOptions {
            switch self {
            case .awsIoT: return .awsIoT
            case .azureEventGrid: return .azureEventGrid
            case .strict:
                var options = LoopbackBrokerOptions()
                options.faults = .strict()
                return options
            }
        }
    }

    @Test(arguments: Service.allCases, [MQTTVersion.v3_1_1, .v5_0])
    func `a client with default options is at home on a service, with twenty subscriptions over three reconnects`(
        service: Service, version: MQTTVersion
    ) async throws {
        let isAtHome = try await isAtHome(on: service) { $0.version = version }
        #expect(isAtHome)
    }

    @Test func `a client that asks for more than a service allows is not at home there`() async throws {
        for service in [Service.awsIoT, .strict] {
            let withQoS2 = try await isAtHome(on: service, { _ in }, qos: .exactlyOnce)
            #expect(!withQoS2, "\(service)")
            let withLargeRequests = try await isAtHome(on: service) { $0.maximumFiltersPerRequest = 20 }
            #expect(!withLargeRequests, "\(service)")
        }
        let withLongName = try await isAtHome(on: .awsIoT) { $0.clientID = String(repeating: "x", count: 129) }
        #expect(!withLongName)
        let withWill = try await isAtHome(on: .azureEventGrid) { $0.will = MQTTWill("x", to: "w", qos: .exactlyOnce) }
        #expect(!withWill)
    }

    @Test(arguments: [UInt16(1), 200], [QoS.atLeastOnce, .exactlyOnce])
    func `a worker handles each message of a server that exceeds Receive Maximum, after a resume and under load`(
        excess: UInt16, qos: QoS
    ) async throws {
        let clock = try ManualClock()
        let broker = try await LoopbackBroker.judged(clock: clock)
        broker.changeFaults { $0.receiveMaximumExcess = excess }
        var configuration = MQTTConfiguration(clientID: "worker")
        configuration.version = .v5_0
        configuration.cleanStart = false
        configuration.sessionExpiry = .seconds(600)
        configuration.receiveMaximum = 20
        let client = MQTTClient(try broker.mqttURL, configuration: configuration, clock: clock)
        var events = client.events.makeAsyncIterator()
        try await client.connect()
        let jobs = try await client.subscribe(to: "jobs", qos: qos, acknowledgement: .manual)
        await client.suspend()
        for number in 0..<300 { #expect(await broker.publish("\(number)", to: "jobs", qos: qos)) }
        client.resume()
        var (handled, most) = (0, 0)
        for try await job in jobs {
            #expect(job.text == "\(handled)")
            most = max(most, client.backlog.unacknowledgedMessages)
            handled += 1
            // More come while the first are handled.
            if handled <= 300 { #expect(await broker.publish("\(handled + 299)", to: "jobs", qos: qos)) }
            job.acknowledge()
            if handled == 600 { break }
        }
        #expect(most > 20)
        #expect(broker.statistics.connections == 2)
        await client.disconnect()
        var isReported = false
        while let event = await events.next() {
            if case .receiveMaximumExceeded(20) = event { isReported = true }
            if case .stateChanged(.disconnected) = event { break }
        }
        #expect(isReported)
        await broker.stop()
    }

    @Test func `forbidden destinations are answered by ERROR without a receipt`() async throws {
        var options = LoopbackBrokerOptions()
        options.faults.forbiddenTopics = ["/topic/no"]
        options.faults.forbiddenFilters = ["/queue/no"]
        try await withBroker(options) { broker in
            for frame in ["SEND\ndestination:/topic/no", "SUBSCRIBE\nid:1\ndestination:/queue/no"] {
                let client = try await RawClient.stomp(broker)
                try await client.send("\(frame)\nreceipt:r\n\n\0")
                let answer = try await client.readFrame()
                #expect(answer.hasPrefix("ERROR\n") && !answer.contains("receipt-id"))
                try await client.expectEnd()
            }
        }
    }

    // MARK: Clients

    @Test func clientsHaveTheirNamesAndAreCutOneByOne() async throws {
        try await withMQTT { broker, client in
            let other = MQTTClient(broker.urls.mqtt ?? "", clientID: "other")
            try await other.connect()
            #expect(broker.clients == ["meter", "other"])
            var states = client.states.makeAsyncIterator()
            #expect(await broker.dropConnection(of: "meter"))
            while let state = await states.next(), state.isConnected {}
            #expect(other.state.isConnected)
            await other.disconnect()
            #expect(await !broker.dropConnection(of: "unknown"))
        }
    }

    @Test func aServersReasonReachesTheClient() async throws {
        try await withMQTT { broker, client in
            var states = client.states.makeAsyncIterator()
            #expect(await broker.disconnect("meter", reason: .serverBusy, message: "come back later"))
            var failure: MQTTError?
            while failure == nil, let state = await states.next() {
                if case .waiting(_, _, let reason) = state { failure = reason }
            }
            #expect(failure?.reasonCode == .serverBusy)
            #expect(failure.map { "\($0)" }?.contains("come back later") == true)
        }
        try await withSTOMP { broker, client in
            var states = client.states.makeAsyncIterator()
            #expect(await broker.disconnect("worker", message: "out of memory"))
            var failure: STOMPError?
            while failure == nil, let state = await states.next() {
                if case .waiting(_, _, let reason) = state { failure = reason }
            }
            #expect(failure.map { "\($0)" }?.contains("out of memory") == true)
        }
    }

    @Test func aSessionIsForgottenSoThatTheClientSubscribesAgain() async throws {
        try await withMQTT { broker, client in
            let received = try await client.subscribe(to: "a", qos: .atLeastOnce)
            var arrivals = broker.arrivals().makeAsyncIterator()
            #expect(await broker.forgetSession(of: "meter"))
            #expect(await arrivals.next()?.packet == .mqtt(.connect))
            #expect(await arrivals.next()?.packet == .mqtt(.subscribe))
            #expect(await broker.publish("1", to: "a"))
            var messages = received.makeAsyncIterator()
            #expect(try await messages.next()?.text == "1")
            await client.disconnect()
            #expect(broker.sessionCount == 1)
            #expect(await broker.forgetSession(of: "meter"))
            #expect(broker.sessionCount == 0)
            #expect(await !broker.forgetSession(of: "meter"))
        }
    }

    @Test func durableSubscriptionsAreForgotten() async throws {
        try await withBroker { broker in
            let subscribe = "SUBSCRIBE\nid:1\ndestination:/topic/a\ndurable-subscription-name:d"
            for isForgotten in [false, true] {
                let client = try await RawClient.stomp(broker, "client-id:c\n")
                try await client.sendAndWait(subscribe)
                await broker.dropConnection(of: "c")
                try await client.expectEnd()
                if isForgotten { #expect(await broker.forgetSession(of: "c")) }
                #expect(await broker.send("1", to: "/topic/a"))
                let next = try await RawClient.stomp(broker, "client-id:c\n")
                try await next.send("\(subscribe)\nreceipt:r\n\n\0")
                var frames = try await next.readFrame()
                if !isForgotten { frames += try await next.readFrame() }
                #expect(frames.contains("MESSAGE\n") == !isForgotten)
                #expect(await broker.disconnect("c"))
            }
        }
    }

    @Test func whatTheBrokerSendsArrivesLater() async throws {
        try await withMQTT { broker, client in
            await broker.setLatency(.milliseconds(30), of: "meter")
            let start = ContinuousClock.now
            try await client.publish("1", to: "a", qos: .exactlyOnce)
            #expect(ContinuousClock.now - start >= .milliseconds(60))
            // The same client has it on its next connection, which ends in order.
            await broker.setLatency(.zero)
            await client.disconnect()
            try await client.connect()
            let again = ContinuousClock.now
            try await client.publish("1", to: "a", qos: .atLeastOnce)
            #expect(ContinuousClock.now - again >= .milliseconds(30))
        }
    }

    @Test func latencyKeepsTheOrderOfAllBytes() async throws {
        try await withSTOMP { broker, client in
            await broker.setLatency(.milliseconds(5))
            let received = try await client.subscribe(to: "/queue/a")
            let body = String(repeating: "x", count: 100_000)
            for number in 0..<50 {
                if number == 25 { await broker.setLatency(.zero) }
                #expect(await broker.send("\(number) \(body)", to: "/queue/a"))
            }
            var expected = 0
            for try await message in received {
                #expect(message.text?.hasPrefix("\(expected) ") == true)
                expected += 1
                if expected == 50 { break }
            }
        }
    }

    // MARK: Messages from the broker

    @Test func theBrokerPublishesToBothProtocols() async throws {
        try await withMQTT { broker, client in
            #expect(await broker.publish("kept", to: "a/b", retain: true) == false)
            #expect(broker.retainedCount == 1)
            var messages = try await client.subscribe(to: "a/#", qos: .exactlyOnce).makeAsyncIterator()
            let first = try await messages.next()
            #expect(first?.text == "kept")
            #expect(first?.isRetained == true)
            #expect(await broker.publish([1, 2], to: "a/c", qos: .exactlyOnce))
            let second = try await messages.next()
            #expect(second.map { Array($0.payload) } == [1, 2])
            #expect(second?.qos == .exactlyOnce)
            #expect(await broker.publish("x", to: "a/#") == false)
            #expect(await broker.publish("x", to: "") == false)
            #expect(await broker.send("of STOMP", to: "/topic/a.c", headers: ["colour": "red"]))
            let third = try await messages.next()
            #expect(third?.text == "of STOMP")
            #expect(third?.properties.userProperties.first?.value == "red")
            #expect(await broker.send("x", to: "/topic/>") == false)
        }
    }

    @Test func arrivalsEndWithTheBroker() async throws {
        let broker = try await LoopbackBroker.judged()
        let arrivals = broker.arrivals()
        await broker.stop()
        for await arrival in arrivals { Issue.record("\(arrival)") }
    }

    // MARK: Parts

    /// A client `meter` that keeps its session and connects again at once.
    private func withMQTT(_ body: (LoopbackBroker, MQTTClient) async throws -> Void) async throws {
        try await withBroker { broker in
            var configuration = MQTTConfiguration(clientID: "meter")
            configuration.version = .v5_0
            configuration.cleanStart = false
            configuration.sessionExpiry = .seconds(600)
            configuration.reconnect = ReconnectPolicy(initialDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
            let client = MQTTClient(broker.urls.mqtt ?? "", configuration: configuration)
            try await client.connect()
            try await body(broker, client)
            await client.disconnect()
        }
    }

    /// A client `worker` that connects again at once.
    private func withSTOMP(_ body: (LoopbackBroker, STOMPClient) async throws -> Void) async throws {
        try await withBroker { broker in
            var configuration = STOMPConfiguration()
            configuration.clientID = "worker"
            configuration.reconnect = ReconnectPolicy(initialDelay: .milliseconds(1), maximumDelay: .milliseconds(1))
            let client = STOMPClient(broker.urls.stomp ?? "", configuration: configuration)
            try await client.connect()
            try await body(broker, client)
            await client.disconnect()
        }
    }
}
