import ClientTestSupport
import Foundation
import LoopbackBroker
import MQTT
import STOMP
import TestSupport
import Testing

/// What the other programs of the Cookbook print, with a broker of their own and with real ones.
@Suite(.requiresCookbook, .turns)
struct CookbookTests {
    @Test func `each program is listed, and has a test`() throws {
        let folder = URL(fileURLWithPath: #filePath).appending(path: "../../../Examples/Cookbook").standardized
        let manifest = try String(contentsOf: folder.appending(path: "Package.swift"), encoding: .utf8)
        let readme = try String(contentsOf: folder.appending(path: "README.md"), encoding: .utf8)
        let names = manifest.matches(of: /program\("([a-z-]+)"/).map { String($0.1) }
        #expect(Set(names) == Set(CookbookProgram.allCases.map(\.rawValue)))
        for name in names { #expect(readme.contains("`\(name)`"), "\(name)") }
    }

    @Test func `request-reply adds numbers over a broker of its own`() async throws {
        let (status, output, errors) = try await CookbookProgram.requestReply.run(["1", "2", "39"])
        #expect(status == .exited(0) && output == ["42"] && errors == [])
    }

    @Test(arguments: [["5", "-3"], ["--", "5", "-3"], ["-3", "5"]])
    func `request-reply adds negative numbers`(arguments: [String]) async throws {
        let (status, output, errors) = try await CookbookProgram.requestReply.run(arguments)
        #expect(status == .exited(0) && output == ["2"] && errors == [])
    }

    @Test func `an option that there is not is a mistake, beside numbers too`() async throws {
        let (status, output, errors) = try await CookbookProgram.requestReply.run(["5", "-x"])
        #expect(status == .exited(64) && output == [])
        #expect(errors == ["There is no option -x. --help lists the options."])
    }

    @Test(arguments: [[], ["--stomp"]])
    func `request-reply says when a sum is too large`(options: [String]) async throws {
        let (status, output, errors) = try await CookbookProgram.requestReply.run(options + ["\(Int.max)", "1"])
        #expect(status == .exited(1) && output == [] && errors == ["The sum does not fit in 64 bits."])
    }

    @Test func `the service of request-reply goes on after requests that it cannot answer`() async throws {
        let broker = try await LoopbackBroker.judged()
        // Both wait for the service, and neither says where the answer is to go.
        try await MQTTClient(broker.mqttURL).withConnection { client in
            try await client.publish("many", to: "sums", qos: .atLeastOnce, retain: true)
        }
        try await STOMPClient(broker.stompURL).withConnection { client in
            try await client.sendAndConfirm("many", to: "/queue/sums")
        }
        for (url, more) in [(try broker.mqttURL, []), (try broker.stompURL, ["--stomp"])] {
            let (status, output, errors) = try await CookbookProgram.requestReply.run(
                ["--broker", url] + more + ["1", "2", "39"])
            #expect(status == .exited(0) && output == ["42"], "\(errors)")
            #expect(errors.count == 1 && errors.first?.hasPrefix("A request is not answered: ") == true, "\(errors)")
        }
        await broker.stop()
    }

    @Test(.requires(.mosquitto)) func `request-reply adds numbers over Mosquitto`() async throws {
        let broker = try await SharedBrokers.mosquitto()
        let (_, output, _) = try await CookbookProgram.requestReply.run(
            ["--broker", "mqtt://127.0.0.1:\(broker.port)", "1", "2", "39"])
        #expect(output == ["42"])
    }

    @Test(arguments: Worker.allCases.filter(\.isUsable))
    func `request-reply adds numbers over each STOMP broker`(broker: Worker) async throws {
        let (_, output, errors) = try await CookbookProgram.requestReply.run(
            broker.arguments() + ["--stomp", "1", "2", "39"])
        #expect(output == ["42"] && errors == [])
    }

    @Test func `the program that the page for the readers of the book names puts each order into a transaction`()
        async throws
    {
        let page = URL(fileURLWithPath: #filePath).appending(path: "../../../.github/FROM-THE-BOOK.md").standardized
        let text = try String(contentsOf: page, encoding: .utf8)
        let command = try #require(text.firstMatch(of: /`swift run --package-path Examples\/Cookbook ([a-z-]+)`/))
        let program = try #require(CookbookProgram(rawValue: String(command.1)))
        let (status, output, errors) = try await program.run([])
        #expect(status == .exited(0) && output.count == 4 && errors == [])
    }

    @Test(arguments: Worker.allCases.filter(\.isUsable))
    func `order-worker bills each order once, and puts other messages aside`(broker: Worker) async throws {
        let (status, output, errors) = try await CookbookProgram.orderWorker.run(
            broker.arguments() + ["--orders", "3"])
        #expect(status == .exited(0) && errors == [])
        #expect(output.count == 4)
        #expect(output.prefix(3) == ["order 1: Margherita", "order 2: Margherita", "order 3: Margherita"])
        #expect(
            output.last?.hasPrefix("dead letter: one pizza, please (The payload (17 bytes) is not a valid Order: ")
                == true)
    }

    @Test(arguments: 5...7)
    func `order-worker ends although the answer to a COMMIT was lost`(receipt: Int) async throws {
        let broker = try await LoopbackBroker.judged()
        // The first three are for the orders, the next ones for subscriptions and transactions.
        broker.inject(.cut, .sent, .stomp(.receipt), number: receipt)
        let (status, output, errors) = try await CookbookProgram.orderWorker.run(
            ["--broker", broker.stompURL, "--orders", "2"])
        #expect(status == .exited(0), "\(output) \(errors)")
        #expect(Set(output).count == 3 && output.last?.hasPrefix("dead letter: one pizza, please") == true, "\(output)")
        await broker.stop()
    }

    @Test func `order-worker waits for its own results, whatever earlier runs have left at the broker`() async throws {
        let broker = try await LoopbackBroker.judged()
        try await STOMPClient(broker.stompURL).withConnection { client in
            for number in 1...2 {
                try await client.sendAndConfirm(#"{"order":\#(number),"euros":9.5}"#, to: "/queue/invoices")
            }
            try await client.sendAndConfirm("of another run", to: "/queue/orders.dead")
        }
        let (status, output, errors) = try await CookbookProgram.orderWorker.run(
            ["--broker", broker.stompURL, "--orders", "2"])
        #expect(status == .exited(0) && errors == [])
        #expect(output.prefix(2) == ["order 1: Margherita", "order 2: Margherita"])
        #expect(output.count == 3 && output.last?.hasPrefix("dead letter: one pizza, please") == true, "\(output)")
        await broker.stop()
    }

    enum Worker: CaseIterable {
        case embedded, rabbitMQ, activeMQ

        var isUsable: Bool {
            switch self {
            case .embedded: true
            case .rabbitMQ: Broker.rabbitMQ.isUsable
            case .activeMQ: Broker.activeMQ.isUsable
            }
        }

        func arguments() async throws -> [String] {
            switch self {
            case .embedded: []
            case .rabbitMQ:
                ["--broker", "stomp://guest:guest@127.0.0.1:\(try await SharedBrokers.rabbitMQ().stompPort)"]
            case .activeMQ: ["--broker", "stomp://127.0.0.1:\(try await SharedBrokers.activeMQ().stompPort)"]
            }
        }
    }

    @Test func `vehicle-positions prints the positions of its own feed`() async throws {
        let (status, output, errors) = try await CookbookProgram.vehiclePositions.run(["--count", "6"])
        #expect(status == .exited(0) && errors == [])
        #expect(output.count == 6)
        #expect(output.first?.contains(/^H9171  60\.\d{5} 24\.\d{5}  27 km\/h \d+°  60 s early$/) == true, "\(output)")
        #expect(output.contains { $0.hasSuffix("in time") } && output.contains { $0.hasSuffix("60 s late") })
    }

    @Test func `vehicle-positions ends when its feed is refused`() async throws {
        var options = LoopbackBrokerOptions()
        options.faults.forbiddenTopics = ["transport/positions/H9171"]
        let broker = try await LoopbackBroker.judged(options)
        let (status, output, errors) = try await CookbookProgram.vehiclePositions.run(
            ["--broker", broker.mqttURL, "--vehicles", "1"])
        #expect(status == .exited(1) && output == [])
        #expect(errors.count == 1 && errors.first?.contains("transport/positions/H9171") == true, "\(errors)")
        await broker.stop()
    }

    @Test(.requires(.mosquitto), .requires(program: "mosquitto_pub"))
    func `vehicle-positions prints what others publish, and skips other payloads`() async throws {
        let broker = try await Mosquitto.start()
        let program = try await CookbookProgram.vehiclePositions.start(
            ["--broker", "mqtt://127.0.0.1:\(broker.port)", "--count", "3"])
        let position = #"{"VP":{"veh":"H9171","lat":60.20808,"long":24.920565,"spd":7.5,"hdg":135,"dl":60}}"#
        for (number, payload) in [position, "{}", #"{"VP":{"veh":"H1","lat":null}}"#].enumerated() {
            try await MosquittoClients.publish(
                payload, to: "transport/positions/\(number)", port: broker.port, ["-r", "-q", "1"])
        }
        #expect(try await program.waitForEnd() == .exited(0))
        #expect(
            Set(program.lines()) == ["H9171  60.20808 24.92056  27 km/h 135°  60 s early", "H1  somewhere  ?  in time"])
        #expect(program.lines(.errors).first?.hasPrefix("transport/positions/1 is skipped: ") == true)
        await broker.stop()
    }

    @Test func `vehicle-positions prints the largest delay`() async throws {
        let broker = try await LoopbackBroker.judged()
        let program = try await CookbookProgram.vehiclePositions.start(
            ["--broker", try broker.mqttURL, "--count", "1"])
        try await MQTTClient(broker.mqttURL).withConnection { client in
            try await client.publish(
                #"{"VP":{"veh":"H1","dl":\#(Int.min)}}"#, to: "transport/positions/1", qos: .atLeastOnce, retain: true)
        }
        #expect(try await program.waitForEnd() == .exited(0))
        #expect(program.lines() == ["H1  somewhere  ?  \(Int.min.magnitude) s late"])
        await broker.stop()
    }

    @Test(arguments: [false, true])
    func `smart-home shows what its lamps do`(isReal: Bool) async throws {
        let broker = isReal && Broker.mosquitto.isInstalled ? try await Mosquitto.start() : nil
        let address = broker.map { ["--broker", "mqtt://127.0.0.1:\($0.port)"] } ?? []
        let (status, output, errors) = try await CookbookProgram.smartHome.run(
            address + ["kitchen=on", "hall=off", "kitchen=off"])
        #expect(status == .exited(0) && errors == [])
        // The two lamps are devices of their own, so only the order of each one's states is certain.
        #expect(output.contains("hall: off"))
        #expect(
            output.filter { $0.hasPrefix("kitchen: ") && !$0.hasSuffix("(as it was)") } == [
                "kitchen: on", "kitchen: off",
            ])
        await broker?.stop()
    }

    @Test func `smart-home shows a state that is no text as a question mark`() async throws {
        let broker = try await LoopbackBroker.judged()
        try await MQTTClient(broker.mqttURL).withConnection { client in
            try await client.publish([0xFF] as [UInt8], to: "home/cellar/lamp", qos: .atLeastOnce, retain: true)
        }
        let (status, output, errors) = try await CookbookProgram.smartHome.run(
            ["--broker", try broker.mqttURL, "kitchen=on"])
        #expect(status == .exited(0) && errors == [])
        #expect(Set(["cellar: ? (as it was)", "kitchen: on"]).isSubset(of: output), "\(output)")
        await broker.stop()
    }

    @Test func `smart-home waits for its own command, whatever an earlier one has left at the broker`() async throws {
        let broker = try await LoopbackBroker.judged()
        var configuration = MQTTConfiguration()
        configuration.version = .v5_0
        try await MQTTClient(broker.mqttURL, configuration: configuration).withConnection { client in
            try await client.publish(
                "on", to: "home/cellar/lamp", qos: .atLeastOnce, retain: true, properties: [.userProperty("by", "x")])
        }
        let (status, output, errors) = try await CookbookProgram.smartHome.run(
            ["--broker", try broker.mqttURL, "kitchen=on"])
        #expect(status == .exited(0) && errors == [])
        #expect(Set(["cellar: on (as it was)", "kitchen: on"]).isSubset(of: output), "\(output)")
        await broker.stop()
    }

    @Test func `publish sends the lines that it reads while the broker is away`() async throws {
        let broker = try await LoopbackBroker.judged()
        let program = try await CookbookProgram.publish.start(
            ["-t", "a", "--lines", "-b", broker.mqttURL], input: .pipe)
        try await program.write("one\n")
        #expect(await eventually { broker.statistics.messagesIn == 1 })
        let arrivals = broker.arrivals().filter { $0.packet == .mqtt(.publish) }.map(\.text)
        broker.changeFaults { $0.refusesConnections = true }
        await broker.dropAllConnections()
        let refused = broker.statistics.connections
        #expect(await eventually { broker.statistics.connections > refused })
        try await program.write("two\nthree\n")
        program.closeInput()
        broker.changeFaults { $0.refusesConnections = false }
        #expect(try await program.waitForEnd() == .exited(0))
        #expect(program.lines(.errors) == [])
        await broker.stop()
        #expect(await arrivals.reduce(into: []) { $0.append($1) } == ["two", "three"])
    }

    @Test func `publish ends when it is interrupted while it reads standard input`() async throws {
        let broker = try await LoopbackBroker.judged()
        let program = try await CookbookProgram.publish.start(
            ["-t", "a", "--stdin", "-b", broker.mqttURL], input: .pipe)
        // More than a pipe holds: it reads.
        try await program.write(String(repeating: "x", count: 200_000))
        #expect(try await program.end(by: SIGINT) == .exited(0))
        #expect(broker.statistics.messagesIn == 0)
        await broker.stop()
    }

    #if os(Linux)
        @Test func `no recipe loses a signal that comes while it starts`() async throws {
            for _ in 0..<8 {
                let away = try BadServer.start(.closed)
                let program = try await CookbookProgram.bridge.start(["--mqtt", "mqtt://127.0.0.1:\(away.port)"])
                // From now on the signal no longer kills the program.
                #expect(await eventually(every: .zero) { program.minds(SIGINT) })
                #expect(try await program.end(by: SIGINT) == .exited(0))
            }
        }
    #endif

    @Test func `a second signal ends a program whose output has stopped`() async throws {
        let path = "\(CookbookProgram.folder ?? "")/\(CookbookProgram.vehiclePositions.rawValue)"
        let program = try await ChildProcess.start(
            Command(path, ["--vehicles", "5000"], terminal: Command.TerminalSize()))
        try await program.waitForLine(containing: "H9171")
        // Ctrl-S: what is written from now on waits for Ctrl-Q.
        try await program.write([0x13])
        // Two that come at once count as one.
        let hasEnded = await eventually(every: .milliseconds(100)) {
            program.signal(SIGINT)
            return program.exitStatus != nil
        }
        #expect(hasEnded, "\(program.report)")
        // 0 when the terminal took Ctrl-S so late that one signal was enough.
        #expect([.exited(128 + SIGINT), .exited(0)].contains(program.exitStatus))
    }

    @Test func `bridge says which broker is away`() async throws {
        let away = try BadServer.start(.closed)
        let program = try await CookbookProgram.bridge.start(["--mqtt", "mqtt://127.0.0.1:\(away.port)"])
        try await program.waitForLine(containing: "No connection to mqtt://127.0.0.1", on: .errors)
        #expect(try await program.end(by: SIGINT) == .exited(0))
        _ = away
    }

    @Test func `no program prints the password of a URL`() async throws {
        let (home, shop) = (try await LoopbackBroker.judged(), try await LoopbackBroker.judged())
        func secret(_ url: String) -> String { url.replacing("://", with: "://worker:s3cret@") }
        let bridge = try await CookbookProgram.bridge.start([
            "--mqtt", secret(try home.mqttURL), "--stomp", secret(try shop.stompURL),
        ])
        try await bridge.waitForLine(containing: "bridging mqtt://127.0.0.1:")
        await shop.stop()
        try await bridge.waitForLine(containing: "No connection to stomp://127.0.0.1:", on: .errors)
        let ann = try await CookbookProgram.chat.start(
            ["-n", "Ann", "-b", secret(try home.mqttURL)], input: .pipe)
        try await ann.waitForLine(containing: "You are Ann at mqtt://127.0.0.1:")
        for program in [bridge, ann] {
            #expect(try await program.end(by: SIGINT) == .exited(0))
            #expect(!(program.text() + program.text(.errors)).contains("s3cret"), "\(program.report)")
        }
        await home.stop()
    }

    @Test func `chat says that its subscription was refused after a reconnect`() async throws {
        let broker = try await LoopbackBroker.judged()
        let ann = try await CookbookProgram.chat.start(["-n", "Ann", "-b", broker.mqttURL], input: .pipe)
        try await ann.waitForLine(containing: "You are Ann")
        broker.changeFaults { $0.refusedFilters = ["chat/rooms/lobby"] }
        let client = try #require(broker.clients.first)
        await broker.dropConnection(of: client)
        #expect(try await ann.waitForEnd() == .exited(1))
        #expect(ann.lines(.errors).contains { $0.contains("refused") }, "\(ann.lines(.errors))")
        await broker.stop()
    }

    @Test func `a lamp of smart-home is no longer offline when it has come back`() async throws {
        try await withLampThatWaits { broker, watcher, program, messages in
            await broker.forgetSession(of: "lamp-kitchen")
            #expect(try await messages.next()?.text == "offline")
            #expect(try await messages.next()?.text == "off")
            try await watcher.publish("on", to: "home/kitchen/lamp/set", qos: .atLeastOnce)
            #expect(try await program.waitForEnd() == .exited(0))
        }
    }

    @Test func `a person whose connection was lost is here again in chat`() async throws {
        let broker = try await LoopbackBroker.judged()
        let ann = try await CookbookProgram.chat.start(["--name", "Ann", "-b", broker.mqttURL], input: .pipe)
        try await ann.waitForLine(containing: "You are Ann")
        let bob = try await CookbookProgram.chat.start(["-n", "Bob", "-b", broker.mqttURL], input: .pipe)
        try await ann.waitForLine(containing: "Bob: (is here)")
        let client = try #require(broker.clients.last)
        await broker.dropConnection(of: client)
        #expect(
            await eventually {
                ann.lines().filter { $0.hasPrefix("Bob") }
                    == ["Bob: (is here)", "Bob has left", "Bob: (is here)"]
            })
        bob.closeInput()
        #expect(try await bob.waitForEnd() == .exited(0))
        ann.closeInput()
        #expect(try await ann.waitForEnd() == .exited(0))
        await broker.stop()
    }

    @Test func `what strangers send cannot control the terminal`() async throws {
        let broker = try await LoopbackBroker.judged()
        let ann = try await CookbookProgram.chat.start(["-n", "Ann", "-b", broker.mqttURL], input: .pipe)
        try await ann.waitForLine(containing: "You are Ann")
        let vehicles = try await CookbookProgram.vehiclePositions.start(["-b", broker.mqttURL, "-c", "1"])
        try await MQTTClient(broker.mqttURL).withConnection { client in
            let line = #"{"name":"Bob\u001b[2J","text":"a\nYou: b","isPresent":true}"#
            try await client.publish(line, to: "chat/rooms/lobby", qos: .atLeastOnce)
            let position = #"{"VP":{"veh":"H1\u001b[2J"}}"#
            try await client.publish(position, to: "transport/positions/1", qos: .atLeastOnce, retain: true)
        }
        #expect(try await vehicles.waitForEnd() == .exited(0))
        #expect(vehicles.lines() == [#"H1\u{1b}[2J  somewhere  ?  in time"#])
        try await ann.waitForLine(containing: #"Bob\u{1b}[2J: a\u{a}You: b"#)
        ann.closeInput()
        #expect(try await ann.waitForEnd() == .exited(0))
        await broker.stop()
    }

    @Test func `smart-home ends when another client takes the name of a lamp`() async throws {
        try await withLampThatWaits { broker, _, program, _ in
            let other = try MQTTClient(broker.mqttURL, clientID: "lamp-kitchen")
            try await other.connect()
            #expect(try await program.waitForEnd() == .exited(1))
            #expect(program.lines(.errors).count == 1, "\(program.report)")
            #expect(program.text(.errors).contains("same client identifier"), "\(program.report)")
            await other.disconnect()
        }
    }

    @Test func `the lamps of smart-home say goodbye when it is interrupted`() async throws {
        try await withLampThatWaits { broker, watcher, program, messages in
            #expect(try await program.end(by: SIGINT) == .exited(0))
            // Ends the session at once, and publishes its will if it has one.
            await broker.forgetSession(of: "lamp-kitchen")
            try await watcher.publish("the end", to: "home/kitchen/end", qos: .atLeastOnce)
            #expect(try await messages.next()?.text == "the end")
        }
    }

    /// Runs smart-home with a lamp that the command does not reach, so that the program waits.
    ///
    /// - Parameter body: gets a client that watches, and what it receives from the command on.
    private func withLampThatWaits(
        _ body:
            @escaping @Sendable (
                _ broker: LoopbackBroker, _ watcher: MQTTClient, _ program: ChildProcess,
                _ messages: inout MQTTSubscription.Iterator
            ) async throws -> Void
    ) async throws {
        let broker = try await LoopbackBroker.judged()
        let watcher = try MQTTClient(broker.mqttURL, clientID: "watcher")
        try await watcher.connect()
        let subscription = try await watcher.subscribe(to: "home/kitchen/#", qos: .atLeastOnce)
        broker.inject(.drop, .sent, .mqtt(.publish), client: "lamp-kitchen")
        let program = try await CookbookProgram.smartHome.start(["--broker", broker.mqttURL, "kitchen=on"])
        try await withTimeout(.patience, "the states of the lamp") {
            var messages = subscription.makeAsyncIterator()
            #expect(try await messages.next()?.text == "off")
            #expect(try await messages.next()?.topic == "home/kitchen/lamp/set")
            try await body(broker, watcher, program, &messages)
        }
        await watcher.disconnect()
        await broker.stop()
    }

    @Test func `subscribe leaves what it does not print to the next run of its session`() async throws {
        let broker = try await LoopbackBroker.judged()
        let sender = try MQTTClient(broker.mqttURL)
        try await sender.connect()
        try await sender.publish("ready", to: "home/ready", retain: true)
        let arguments = [
            "-b", try broker.mqttURL, "-t", "home/#", "-q", "1", "-5", "--id", "kept", "--keep-session", "-C", "1",
        ]
        let first = try await CookbookProgram.subscribe.run(arguments)
        #expect(first.output == ["ready"])
        // More than a client keeps for subscriptions that it does not have yet.
        for number in 1...1100 { await broker.publish("\(number)", to: "home/kitchen") }
        for numbers in [1...1, 2...2, 3...1100] {
            let (status, output, errors) = try await CookbookProgram.subscribe.run(
                arguments.dropLast() + ["\(numbers.count)", "--no-retained", "--timeout", "60"])
            #expect(status == .exited(0) && output == numbers.map { "\($0)" } && errors == [])
        }
        await sender.disconnect()
        await broker.stop()
    }

    @Test func `subscribe says which of its filters the broker refuses`() async throws {
        var options = LoopbackBrokerOptions()
        options.faults.refusedFilters = ["home/#"]
        let broker = try await LoopbackBroker.judged(options)
        let program = try await CookbookProgram.subscribe.start(
            ["-b", broker.mqttURL, "-t", "home/#", "-t", "garden/#", "-q", "1"])
        try await program.waitForLine(containing: "The broker refused home/#", on: .errors)
        #expect(await eventually { await broker.publish("rain", to: "garden/weather") })
        try await program.waitForLine(containing: "rain")
        #expect(try await program.end(by: SIGINT) == .exited(0))
        let alone = try await CookbookProgram.subscribe.run(["-b", broker.mqttURL, "-t", "home/#"])
        #expect(alone.status == .exited(1) && alone.output == [])
        #expect(alone.errors.last?.contains("refused to subscribe to 'home/#'") == true, "\(alone.errors)")
        await broker.stop()
    }

    @Test func `view-model shows a screen that was offline`() async throws {
        let (status, output, errors) = try await CookbookProgram.viewModel.run([])
        #expect(status == .exited(0) && errors == [])
        #expect(output.contains { $0.contains("-> 21.0 (to be sent)") }, "\(output)")
        #expect(output.last?.contains("] 21.0 -> 21.0") == true, "\(output)")
    }

    @Test func `chat carries lines between two people, and reports who leaves, is killed or interrupted`() async throws
    {
        let ann = try await CookbookProgram.chat.start(["--name", "Ann"], input: .pipe)
        let url = try #require(try await ann.waitForLine(containing: "You are Ann at ").text.split(separator: " ").last)
        let bob = try await CookbookProgram.chat.start(["-n", "Bob", "-b", "\(url)"], input: .pipe)
        try await ann.waitForLine(containing: "Bob: (is here)")
        try await bob.write("hello, Ann\n")
        try await ann.waitForLine(containing: "Bob: hello, Ann")
        try await ann.write("naïve Bob\n")
        try await bob.waitForLine(containing: "Ann: naïve Bob")
        await bob.kill()
        try await ann.waitForLine(containing: "Bob has left")
        let eve = try await CookbookProgram.chat.start(["-n", "Eve", "-b", "\(url)"], input: .pipe)
        try await ann.waitForLine(containing: "Eve: (is here)")
        #expect(try await eve.end(by: SIGINT) == .exited(0))
        try await ann.waitForLine(containing: "Eve has left")
        ann.closeInput()
        #expect(try await ann.waitForEnd() == .exited(0))
    }

    @Test func `chat says who leaves when it is interrupted in the middle of a publish`() async throws {
        let broker = try await LoopbackBroker.judged()
        let onlooker = try MQTTClient(broker.mqttURL)
        try await onlooker.connect()
        var lines = try await onlooker.subscribe(to: "chat/rooms/lobby").makeAsyncIterator()
        let eve = try await CookbookProgram.chat.start(["-n", "Eve", "-b", broker.mqttURL], input: .pipe)
        #expect(try await lines.next()?.text?.contains(#""name":"Eve""#) == true)
        broker.changeFaults { $0.withholdsAcknowledgements = true }
        try await eve.write("hello\n")
        #expect(try await lines.next()?.text?.contains("hello") == true)
        // The line is out, but Eve waits for its acknowledgement.
        #expect(try await eve.end(by: SIGINT) == .exited(0))
        try await onlooker.publish("Eve has ended", to: "chat/rooms/lobby")
        #expect(try await lines.next()?.text?.contains(#""isPresent":false"#) == true)
        await broker.stop()
    }

    @Test func `bridge rejects commands that it cannot publish, and goes on`() async throws {
        let (home, shop) = (try await LoopbackBroker.judged(), try await LoopbackBroker.judged())
        let arguments = ["--mqtt", try home.mqttURL, "--stomp", try shop.stompURL]
        let client = try STOMPClient(shop.stompURL)
        try await client.connect()
        let bridge = try await CookbookProgram.bridge.start(arguments)
        for headers: STOMPHeaders in [[:], ["topic": "a/#"], ["topic": ""], ["topic": "home/hall/lamp"]] {
            try await client.sendAndConfirm(
                "on", to: "/queue/commands", options: STOMPSendOptions(headers: headers))
        }
        try await bridge.waitForLine(containing: "/queue/commands -> home/hall/lamp")
        #expect(try await bridge.end() == .exited(0))
        let complaints = bridge.lines(.errors)
        #expect(complaints.count == 3 && complaints.allSatisfy { $0.hasPrefix("A command is rejected: ") })
        // None comes back.
        let again = try await CookbookProgram.bridge.start(arguments)
        try await client.sendAndConfirm(
            "off", to: "/queue/commands", options: STOMPSendOptions(headers: ["topic": "home/hall/lamp"]))
        try await again.waitForLine(containing: "/queue/commands -> home/hall/lamp")
        #expect(try await again.end() == .exited(0))
        #expect(again.lines(.errors) == [])
        await client.disconnect()
        for broker in [home, shop] { await broker.stop() }
    }

    @Test func `bridge carries everything that its session has kept`() async throws {
        let (home, shop) = (try await LoopbackBroker.judged(), try await LoopbackBroker.judged())
        let arguments = ["--mqtt", try home.mqttURL, "--stomp", try shop.stompURL]
        let subscribed = home.arrivals().filter { $0.packet == .mqtt(.subscribe) }
        let bridge = try await CookbookProgram.bridge.start(arguments)
        for await _ in subscribed.prefix(1) {}
        #expect(try await bridge.end() == .exited(0))
        // More than a client keeps for subscriptions that it does not have yet.
        let kept = (1...1100).map { "\($0)" }
        for reading in kept { #expect(await home.publish(reading, to: "home/kitchen/reading")) }
        let again = try await CookbookProgram.bridge.start(arguments)
        let reader = try STOMPClient(shop.stompURL)
        try await reader.connect()
        let readings = try await reader.subscribe(to: "/queue/readings", acknowledgement: .clientIndividual)
        let received = try await withTimeout(.patience, "the readings") {
            var received: [String] = []
            for try await reading in readings {
                received.append(reading.text ?? "")
                try reading.acknowledge()
                if received.count == kept.count { break }
            }
            return received
        }
        #expect(received == kept)
        #expect(try await again.end() == .exited(0))
        await reader.disconnect()
        for broker in [home, shop] { await broker.stop() }
    }

    @Test(.requires(.mosquitto, .rabbitMQ), .requires(program: "mosquitto_pub"), .requiresPythonClients)
    func `bridge carries readings and commands between Mosquitto and RabbitMQ`() async throws {
        let (mosquitto, rabbit) = (try await Mosquitto.start(), try await SharedBrokers.rabbitMQ())
        let arguments = [
            "--mqtt", "mqtt://127.0.0.1:\(mosquitto.port)", "--stomp",
            "stomp://guest:guest@127.0.0.1:\(rabbit.stompPort)",
        ]
        let bridge = try await CookbookProgram.bridge.start(arguments)
        try await bridge.waitForLine(containing: "bridging ")
        let lamp = try await MosquittoClients.subscribe(to: "home/hall/lamp", port: mosquitto.port)
        let shop = try await PythonClients.stomp(port: rabbit.stompPort, host: "/", user: rabbit.user)
        try await shop.subscribe(to: "/queue/readings", id: "1")
        try await MosquittoClients.publish("21.5", to: "home/kitchen/reading", port: mosquitto.port, ["-q", "1"])
        try await bridge.waitForLine(containing: "home/kitchen/reading -> /queue/readings")
        #expect(try await shop.next("message").text == "21.5")
        try await shop.send(Array("on".utf8), to: "/queue/commands", headers: ["topic": "home/hall/lamp"])
        try await lamp.waitForLine(containing: "on")
        try await bridge.waitForLine(containing: "/queue/commands -> home/hall/lamp")
        #expect(try await bridge.end() == .exited(0))
        // The session keeps what is published while the bridge is away.
        try await MosquittoClients.publish("22.0", to: "home/kitchen/reading", port: mosquitto.port, ["-q", "1"])
        let again = try await CookbookProgram.bridge.start(arguments)
        try await again.waitForLine(containing: "home/kitchen/reading -> /queue/readings")
        #expect(try await shop.next("message").text == "22.0")
        #expect(try await again.end() == .exited(0))
        await mosquitto.stop()
    }
}
