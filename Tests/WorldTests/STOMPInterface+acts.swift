import LoopbackBroker
import STOMP
import Synchronization

extension STOMPInterface {
    private struct Reading: Codable, Sendable {
        var number: Int
    }

    static let acts: [Act] = [
        Act(
            name: "send to a queue",
            calls: [
                "STOMPClient: func send(_ text", "STOMPClient: func send(_ body", "STOMPClient: func send(_ message:",
                "STOMPClient: func send(_ messages", "STOMPClient: func sendAndConfirm(_ text",
                "STOMPClient: func sendAndConfirm(_ body", "STOMPClient: func sendAndConfirm(_ message:",
                "STOMPClient: func sendAndConfirm(_ messages", "STOMPClient: func sendForReceipt",
                "STOMPReceipt: func confirmed", "STOMPClient: func subscription(to destination: String, acknow",
                "STOMPMessage: func acknowledge", "STOMPMessage: func header", "STOMPMessage: var ",
                "STOMPOutgoingMessage: init(_ text", "STOMPOutgoingMessage: init(_ body", "STOMPOutgoingMessage: var ",
                "STOMPSubscription: func makeAsyncIterator", "STOMPSubscription: func unsubscribe",
                "STOMPSubscription: var droppedCount", "STOMPSendOptions: init", "STOMPSubscribeOptions: init",
            ]
        ) { stage, random in
            let (sender, receiver) = (stage.clients[0], stage.clients[1])
            let queue = "/queue/\(stage.makeName())"
            let mode: STOMPAckMode = [.auto, .client, .clientIndividual].randomElement(using: &random) ?? .auto
            var options = STOMPSubscribeOptions()
            if mode != .auto, Bool.random(using: &random) { options.prefetch = Int.random(in: 1...3, using: &random) }
            let reading = stage.read(queue, receiver, mode, options)
            var (confirmed, texts) = ([String](), [String]())
            for number in 0..<Int.random(in: 2...6, using: &random) {
                let text = "\(number)" + String(repeating: " text", count: Bool.random(using: &random) ? 0 : 60)
                let sending = STOMPSendOptions(
                    contentType: "text/plain", persistent: Bool.random(using: &random) ? true : nil,
                    priority: Bool.random(using: &random) ? 4 : nil, correlationID: "id \(number)",
                    headers: ["number": "\(number)", "odd:name": "a\nb\\c"])
                let message = STOMPOutgoingMessage(text, to: queue, options: sending)
                texts.append(text)
                let call = Int.random(in: 0..<9, using: &random)
                let isConfirmed = await stage.confirmed("\(queue) \(number)") {
                    switch call {
                    case 0: try await sender.send(text, to: queue, options: sending)
                    case 1: try await sender.send(Array(text.utf8), to: queue, options: sending)
                    case 2: try await sender.send(message)
                    case 3: try await sender.send([message])
                    case 4: try await sender.sendAndConfirm(text, to: queue, options: sending)
                    case 5: try await sender.sendAndConfirm(Array(text.utf8), to: queue, options: sending)
                    case 6: try await sender.sendAndConfirm(message)
                    case 7: try await sender.sendAndConfirm([message]).check()
                    default: try await sender.sendForReceipt(message).confirmed()
                    }
                }
                if isConfirmed, call > 3 { confirmed.append(text) }
                try await stage.world.clock.sleep(for: .milliseconds(Int.random(in: 0...2_000, using: &random)))
            }
            let read = try await stage.end(queue, sender, reading)
            let bodies = read.map { $0.text ?? "" }
            // What is delivered without acknowledgement is lost with its connection.
            if mode != .auto || stage.world.plan.entries.isEmpty {
                let lost = confirmed.filter { !bodies.contains($0) }
                stage.require(lost.isEmpty, "\(queue) lost \(lost.map { $0.prefix(1) }) in mode \(mode)")
            }
            // What the broker has sent over a dead connection comes back when it notices, behind what it sent meanwhile over others.
            let indices = bodies.indices.filter { !bodies[..<$0].contains(bodies[$0]) && !read[$0].isRedelivered }
            let first = indices.map { bodies[$0] }
            stage.require(first == texts.filter { first.contains($0) }, "\(queue) received \(first) of \(texts)")
            for message in read {
                guard let number = texts.firstIndex(of: message.text ?? "") else {
                    stage.broke("\(queue) received '\(message.text ?? "")', which nobody has sent")
                    continue
                }
                stage.require(message.destination == queue, "\(queue) received \(message.destination)")
                stage.require(message.contentType == "text/plain", "\(queue) received \(message.contentType ?? "none")")
                stage.require(message.header("number") == "\(number)", "\(queue) \(number) has \(message.headers)")
                // STOMP 1.0 cannot escape it.
                stage.require(
                    message.header("correlation-id") == "id \(number)", "\(queue) \(number) has \(message.headers)")
                stage.require(message.droppedBefore == 0, "\(message.droppedBefore) messages were dropped")
            }
        },
        Act(
            name: "send values",
            calls: [
                "STOMPClient: func send(_ value", "STOMPClient: func send<Value>(_ value",
                "STOMPClient: func sendAndConfirm(_ value", "STOMPClient: func sendAndConfirm<Value>(_ value",
                "STOMPOutgoingMessage: init(_ value", "STOMPOutgoingMessage: init<Value>(_ value",
                "STOMPClient: func subscribe<Value>(to destination: STOMPDestination",
            ]
        ) { stage, random in
            let (sender, receiver) = (stage.clients[1], stage.clients[0])
            let queue = STOMPDestination<Reading>("/queue/\(stage.makeName())", as: .json)
            let values = try await stage.retrying("subscribing to \(queue.name)") {
                try await receiver.subscribe(to: queue, acknowledgement: .auto)
            }
            let reading = Task {
                var read: [Int] = []
                for try await value in values { read.append(try value.value.number) }
                return read
            }
            var sent: [Int] = []
            for number in 0..<4 {
                let call = Int.random(in: 0..<5, using: &random)
                _ = await stage.confirmed("\(queue.name) \(number)") {
                    switch call {
                    case 0: try await sender.send(Reading(number: number), to: queue)
                    case 1: try await sender.send(Reading(number: number), to: queue.name)
                    case 2: try await sender.sendAndConfirm(Reading(number: number), to: queue)
                    case 3: try await sender.sendAndConfirm(STOMPOutgoingMessage(Reading(number: number), to: queue))
                    default: try await sender.sendAndConfirm(Reading(number: number), to: queue.name)
                    }
                }
                sent.append(number)
            }
            try await stage.world.clock.sleep(for: .seconds(100))
            _ = await stage.confirmed("unsubscribing") { try await values.unsubscribe() }
            let read = (try? await reading.value) ?? []
            stage.require(
                read == sent.filter { read.contains($0) }, "\(queue.name) received the values \(read) of \(sent)")
            stage.require(
                read == sent || !stage.world.plan.entries.isEmpty,
                "\(queue.name) received the values \(read) of \(sent)")
        },
        Act(name: "reject messages", calls: ["STOMPMessage: func reject"]) { stage, random in
            let (sender, receiver) = (stage.clients[0], stage.clients[1])
            let queue = "/queue/\(stage.makeName())"
            let requeues = Bool.random(using: &random)
            let reading = stage.read(queue, receiver, .clientIndividual, STOMPSubscribeOptions()) { message in
                guard !message.isRedelivered, message.text != "kept" else { return true }
                do {
                    try message.reject(requeue: requeues)
                } catch {
                    stage.require(stage.mayFail(error), "rejecting failed: \(error)")
                }
                return false
            }
            let isConfirmed = await stage.confirmed(queue) { try await sender.sendAndConfirm("refused", to: queue) }
            let isKept = await stage.confirmed(queue) { try await sender.sendAndConfirm("kept", to: queue) }
            let read = try await stage.end(queue, sender, reading)
            let refused = read.filter { $0.text == "refused" }
            if isConfirmed, stage.configuration.versions != [.v10] {
                let redelivered = refused.contains { $0.isRedelivered }
                stage.require(!refused.isEmpty, "\(queue) lost a message")
                stage.require(
                    redelivered || !requeues, "a message that was rejected to be delivered again was not: \(refused)")
                stage.require(
                    !redelivered || requeues || !stage.world.plan.entries.isEmpty,
                    "a message came again after it was rejected")
            }
            stage.require(!isKept || read.contains { $0.text == "kept" }, "\(queue) lost a message")
        },
        Act(
            name: "a durable subscription",
            calls: [
                "STOMPClient: func unsubscribe(from destination", "STOMPClient: func disconnect",
                "STOMPClient: init(_ urls: String...", "STOMPClient: func suspend",
            ]
        ) { stage, random in
            let name = stage.makeName()
            let topic = "/topic/\(name)"
            var configuration = stage.configuration
            configuration.clientID = name
            let client = STOMPClient(stage.url, configuration: configuration, clock: stage.world.clock)
            let options = STOMPSubscribeOptions(durableName: "kept")
            _ = try await stage.retrying("subscribing to \(topic)") {
                try await client.connect()
                return try await client.subscribe(to: topic, acknowledgement: .clientIndividual, options: options)
            }
            await client.disconnect()
            var confirmed: [String] = []
            for number in 0..<3 {
                let text = "\(number)"
                if await stage.confirmed(
                    "\(topic) \(number)", { try await stage.clients[0].sendAndConfirm(text, to: topic) })
                {
                    confirmed.append(text)
                }
            }
            await client.start()
            let reading = stage.read(topic, client, .clientIndividual, options)
            let read = try await stage.end(topic, stage.clients[0], reading).map { $0.text ?? "" }
            let lost = confirmed.filter { !read.contains($0) }
            stage.require(lost.isEmpty, "the durable subscription to \(topic) lost \(lost)")
            try await stage.retrying("deleting the subscription to \(topic)") {
                try await client.connect()
                try await client.unsubscribe(from: topic, durableName: "kept")
            }
            await client.disconnect()
            try await stage.world.requireEnd(of: client)
        },
        Act(name: "cancel subscriptions", calls: []) { stage, random in
            let client = stage.clients.randomElement(using: &random) ?? stage.clients[0]
            for _ in 0..<3 {
                let topic = "/topic/\(stage.makeName())"
                let call = Task {
                    let messages = try await client.subscribe(to: topic)
                    try await messages.unsubscribe()
                }
                try await stage.world.clock.sleep(for: .milliseconds(Int.random(in: 0...3_000, using: &random)))
                call.cancel()
                let start = stage.world.timeAwake
                _ = await call.result
                let late = stage.world.timeAwake - start
                stage.require(late == .zero, "subscribing to \(topic) ended \(late) after it was cancelled")
                try await stage.world.clock.sleep(for: .milliseconds(Int.random(in: 0...10_000, using: &random)))
            }
        },
        Act(name: "a selector", calls: ["STOMPSubscribeOptions: var selector"]) { stage, random in
            let (sender, receiver) = (stage.clients[0], stage.clients[1])
            let queue = "/queue/\(stage.makeName())"
            let wanted = STOMPSendOptions(headers: ["kind": "wanted"])
            let other = STOMPSendOptions(headers: ["kind": "other"])
            let options = STOMPSubscribeOptions(selector: "kind = 'wanted'")
            let reading = stage.read(queue, receiver, .clientIndividual, options)
            var confirmed: [String: Set<String>] = [:]
            for number in 0..<6 {
                let (kind, sending) = Bool.random(using: &random) ? ("wanted", wanted) : ("other", other)
                let isConfirmed = await stage.confirmed("\(queue) \(number)") {
                    try await sender.sendAndConfirm("\(kind) \(number)", to: queue, options: sending)
                }
                if isConfirmed { confirmed[kind, default: []].insert("\(kind) \(number)") }
                try await stage.world.clock.sleep(for: .milliseconds(Int.random(in: 0...20_000, using: &random)))
            }
            let selected = Set(try await stage.end(queue, sender, reading, wanted).map { $0.text ?? "" })
            let unwanted = selected.filter { !$0.hasPrefix("wanted") }.sorted()
            stage.require(unwanted.isEmpty, "\(queue) received \(unwanted), which its selector does not accept")
            let rest = stage.read(queue, receiver, .clientIndividual, STOMPSubscribeOptions())
            let left = Set(try await stage.end(queue, sender, rest).map { $0.text ?? "" })
            for (kind, texts) in confirmed.sorted(by: { $0.key < $1.key }) {
                let lost = texts.subtracting(selected).subtracting(left).sorted()
                stage.require(lost.isEmpty, "\(queue) lost \(lost) of the kind \(kind)")
            }
        },
        Act(name: "bodies of any bytes", calls: ["STOMPSendOptions: var omitsContentLength"]) { stage, random in
            let (sender, receiver) = (stage.clients[1], stage.clients[0])
            let queue = "/queue/\(stage.makeName())"
            let mode: STOMPAckMode = Bool.random(using: &random) ? .client : .clientIndividual
            let reading = stage.read(queue, receiver, mode, STOMPSubscribeOptions())
            var bodies: [[UInt8]] = []
            var confirmed: Set<Int> = []
            for number in 0..<Int.random(in: 2...6, using: &random) {
                // What ends frames and lines, and separates headers.
                let bytes: [UInt8] = [0, 10, 13, 58, 92, 65, 127]
                let count = Int.random(in: 1...40, using: &random)
                bodies.append((0..<count).map { _ in bytes.randomElement(using: &random) ?? 0 })
                var options = STOMPSendOptions(headers: ["number": "\(number)"])
                options.omitsContentLength = Bool.random(using: &random)
                let (body, sending) = (bodies[number], options)
                let isConfirmed = await stage.confirmed("\(queue) \(number)") {
                    try await sender.sendAndConfirm(body, to: queue, options: sending)
                }
                if isConfirmed { confirmed.insert(number) }
            }
            let read = try await stage.end(queue, sender, reading)
            for message in read {
                let number = message.header("number").flatMap { Int($0) } ?? -1
                stage.require(
                    bodies.indices.contains(number) && message.bytes == bodies[number],
                    "\(queue) received \(number) as \(message.bytes)")
            }
            let lost = confirmed.subtracting(read.compactMap { $0.header("number").flatMap { Int($0) } }).sorted()
            stage.require(lost.isEmpty, "\(queue) lost \(lost)")
        },
        Act(
            name: "overlapping transactions",
            calls: [
                "STOMPClient: func begin", "STOMPClient: func commit", "STOMPClient: func abort",
                "STOMPClient: func withTransaction",
            ]
        ) { stage, random in
            let (sender, receiver) = (stage.clients[0], stage.clients[1])
            let queue = "/queue/\(stage.makeName())"
            let reading = stage.read(queue, receiver, .clientIndividual, STOMPSubscribeOptions())
            let pause = Duration.milliseconds(Int.random(in: 0...3_000, using: &random))
            let aborts = Bool.random(using: &random)
            var outcomes: [String: Bool?] = [:]
            var begun: [STOMPTransactionHandle] = []
            let isBegun = await stage.confirmed("\(queue) transactions") {
                let (one, other) = (try sender.begin(), try sender.begin(named: "other \(queue)"))
                begun = [one, other]
                outcomes["one"] = .some(nil)
                outcomes["other"] = .some(nil)
                for part in 0..<2 {
                    try await sender.send("one \(part)", to: queue, in: one)
                    try await stage.world.clock.sleep(for: pause)
                    try await sender.sendAndConfirm("other \(part)", to: queue, in: other)
                }
                try await sender.commit(other)
                outcomes["other"] = true
                if aborts { try sender.abort(one) } else { try await sender.commit(one) }
                outcomes["one"] = !aborts
            }
            stage.world.note("\(queue) \(isBegun)")
            // The connection may have outlived the failure. One that is committed already cannot be aborted.
            if !isBegun { for transaction in begun { try? sender.abort(transaction) } }
            let isWhole = await stage.confirmed("\(queue) scope") {
                try await sender.withTransaction(named: "scope \(queue)") { transaction in
                    for part in 0..<2 { try await sender.send("scope \(part)", to: queue, in: transaction) }
                }
            }
            outcomes["scope"] = isWhole ? true : .some(nil)
            let read = Set(try await stage.end(queue, sender, reading).map { $0.text ?? "" })
            for (name, outcome) in outcomes.sorted(by: { $0.key < $1.key }) {
                let parts = (0..<2).count { read.contains("\(name) \($0)") }
                let expected = outcome.map { $0 ? [2] : [0] } ?? [0, 2]
                stage.require(
                    expected.contains(parts), "\(parts) parts of the transaction \(name) arrived, \(expected) may")
            }
        },
        Act(
            name: "requests and replies",
            calls: [
                "STOMPClient: func request(_ text", "STOMPClient: func request(_ body",
                "STOMPClient: func reply(to request: STOMPMessage, with text",
                "STOMPClient: func reply(to request: STOMPMessage, with body",
                "STOMPClient: func subscribe(to destination: String, acknow",
            ]
        ) { stage, random in
            let (client, server) = (stage.clients[0], stage.clients[1])
            let queue = "/queue/\(stage.makeName())"
            let requests = try await stage.retrying("serving \(queue)") { try await server.subscribe(to: queue) }
            // When the server has read each request.
            let arrived = Mutex<[String: Duration]>([:])
            let serving = Task {
                for try await request in requests {
                    let time = stage.time
                    arrived.withLock { $0[request.text ?? ""] = time }
                    let answer = "answer to \(request.text ?? "")"
                    _ = await stage.confirmed("replying") {
                        if answer.count % 2 == 0 {
                            try await server.reply(to: request, with: answer)
                        } else {
                            try await server.reply(to: request, with: Array(answer.utf8))
                        }
                    }
                }
            }
            for number in 0..<Int.random(in: 1...3, using: &random) {
                let text = "\(queue) \(number)"
                _ = await stage.confirmed("a request") {
                    let answer =
                        number % 2 == 0
                        ? try await client.request(text, to: queue, timeout: .seconds(60))
                        : try await client.request(Array(text.utf8), to: queue, timeout: .seconds(60))
                    stage.require(answer.text == "answer to \(text)", "'\(text)' was answered by \(answer)")
                }
                // Its reply goes to a queue that ends with the client's connection, and so does the request.
                guard let sent = arrived.withLock({ $0[text] }) else { continue }
                let (end, losses) = (stage.time, stage.watches[0].losses(after: sent, before: stage.time))
                stage.require(
                    losses.isEmpty,
                    "a request that was sent before \(sent) ended after \(end), but its connection after \(losses)")
            }
            _ = await stage.confirmed("serving no longer") { try await requests.unsubscribe() }
            _ = try? await serving.value
        },
    ]

    /// What no world uses, with the reason.
    static let unused: [String: String] = [
        "STOMPClient: init(_ url: String,": "Worlds have a clock of their own.",
        "STOMPClient: init(_ urls: [String],": "Worlds have a clock of their own.",
        "STOMPClient: func reply(to request: STOMPMessage, with value": "It encodes, and replies with bytes.",
        "STOMPClient: func request<": "It encodes, requests with bytes, and decodes.",
        "STOMPClient: func subscribe(to destination: String, as text": "It decodes what `subscribe` receives.",
        "STOMPClient: func subscribe<Value>(to destination: String, as type": "It decodes what `subscribe` receives.",
        "STOMPClient: func subscription(to destination: String, as text": "It decodes what `subscription` receives.",
        "STOMPClient: func subscription<": "It decodes what `subscription` receives.",
        "STOMPConfiguration: init": "It sets nothing.",
        "STOMPConfiguration: var connectEscaping": "It is for brokers with a mistake that the simulated one has not.",
        "STOMPConfiguration: var limits": "No peer of a world exceeds them.",
        "STOMPConfiguration: var network": "A simulated network has no interfaces to choose from.",
        "STOMPConfiguration: var profile": "The broker of a world is known by itself.",
        "STOMPConfiguration: var proxy": "A world has no proxies.",
        "STOMPConfiguration: var serviceClass": "It is a mark on packets of the system.",
        "STOMPConfiguration: var threadCount": "A world has one thread.",
        "STOMPConfiguration: var threadQuality": "A world has one thread.",
        "STOMPConfiguration: var tls": "The random numbers of TLS do not follow from the seed.",
        "STOMPMessage: func with(body": "It copies a message.",
        "STOMPSendOptions: var expires": "Nothing tells when the broker drops a message.",
        "STOMPSubscribeOptions: var headers": "The broker of a world ignores further headers.",
        "STOMPSubscription: var acknowledgement": "It is what the caller has said.",
        "STOMPSubscription: var batches": "MQTT's worlds use the same.",
        "STOMPSubscription: var destination": "It is what the caller has said.",
    ]

    /// Set in other worlds, or by the initializers that acts use.
    static let alwaysUsed = [
        "STOMPConfiguration: var clientID", "STOMPConfiguration: var messageHook", "STOMPSendOptions: var contentType",
        "STOMPSendOptions: var correlationID", "STOMPSendOptions: var headers", "STOMPSendOptions: var persistent",
        "STOMPSendOptions: var priority", "STOMPSendOptions: var replyTo", "STOMPSubscribeOptions: var durableName",
        "STOMPSubscribeOptions: var prefetch",
    ]

    static let options: [Option] = [
        Option(name: "acknowledgementTimeout") {
            $0.acknowledgementTimeout = .seconds(Int.random(in: 20...90, using: &$1))
        },
        Option(name: "connectHeaders") { configuration, _ in configuration.connectHeaders = ["name": "value"] },
        Option(name: "connectTimeout") { $0.connectTimeout = .seconds(Int.random(in: 5...20, using: &$1)) },
        Option(name: "credentials") { configuration, _ in
            configuration.credentials = Credentials(userName: "ann", password: "key")
        },
        Option(name: "credentialsProvider") { configuration, _ in
            configuration.credentialsProvider = { _ in Credentials(userName: "ann", password: "key") }
        },
        Option(name: "host") { configuration, _ in configuration.host = "somewhere" },
        Option(name: "incomingHeartBeat") { $0.incomingHeartBeat = .seconds(Int.random(in: 5...30, using: &$1)) },
        Option(name: "maximumOutboxBytes") { $0.maximumOutboxBytes = Int.random(in: 500...5_000, using: &$1) },
        Option(name: "maximumReceipts") { $0.maximumReceipts = Int.random(in: 20...40, using: &$1) },
        Option(name: "maximumUnreadBytes") { $0.maximumUnreadBytes = Int.random(in: 20_000...50_000, using: &$1) },
        Option(name: "outgoingHeartBeat") { $0.outgoingHeartBeat = .seconds(Int.random(in: 5...30, using: &$1)) },
        Option(name: "reconnect") { configuration, random in
            configuration.reconnect = ReconnectPolicy(
                initialDelay: .milliseconds(Int.random(in: 100...2_000, using: &random)), maximumDelay: .seconds(20),
                multiplier: 1.5, jitter: 0.2, stableAfter: .seconds(5))
            configuration.reconnect.maximumConnectionAge = .seconds(Int.random(in: 10...60, using: &random))
        },
        Option(name: "requestTimeout") { $0.requestTimeout = .seconds(Int.random(in: 5...30, using: &$1)) },
        Option(name: "serverOrder") { configuration, _ in configuration.serverOrder = .shuffled },
        Option(name: "usesNetworkMonitor") { configuration, _ in configuration.usesNetworkMonitor.toggle() },
        Option(name: "versions") { configuration, random in
            configuration.versions = [[.v11], [.v12], [.v11, .v12]].randomElement(using: &random) ?? [.v12]
        },
        Option(name: "webSocket") { configuration, _ in configuration.webSocket.headers = [("X-Name", "value")] },
    ]
}
