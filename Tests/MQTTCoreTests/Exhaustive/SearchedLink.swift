import MQTTCore
import MessagingWire
import TestSupport

/// A client and a server, both the real engine, over a link that delivers packet by packet and may break before each, and
/// a client whose process may die at any step.
final class SearchedLink: SearchedWorld {
    /// What the world has in it.
    struct Scenario: CustomStringConvertible {
        var version = MQTTVersion.v5_0
        /// What the client publishes, in this order.
        var up: [QoS] = []
        /// What the server publishes.
        var down: [QoS] = []
        var window: UInt16 = 2
        /// How often the link breaks, or the client's process dies.
        var breaks = 2
        /// There is a store, and the client's process may die.
        var dies = false
        /// How often the server forgets the session between two connections.
        var losses = 0
        var subscribesFirst = false
        /// How often the client's application ends its second subscription, or makes it again.
        var changes = 0
        /// Packets may also arrive several at a time.
        var arrivesTogether = false
        /// The first two messages are published together, before either leaves.
        var publishesTogether = false

        var description: String {
            let up = up.map { "\($0.rawValue)" }.joined()
            let down = down.map { "\($0.rawValue)" }.joined()
            let options = [
                "window \(window)", dies ? "store" : "", losses > 0 ? "loses sessions" : "",
                subscribesFirst ? "subscribes first" : "", changes > 0 ? "\(changes) changes" : "",
                arrivesTogether ? "together" : "", publishesTogether ? "array" : "",
            ].filter { !$0.isEmpty }.joined(separator: ", ")
            return "MQTT \(version), up [\(up)], down [\(down)]\(options.isEmpty ? "" : ", " + options)"
        }
    }

    enum Step: CustomStringConvertible {
        case publish(up: Bool)
        case publishTogether
        case deliver(up: Bool, all: Bool)
        case take(Int)
        case change
        case store
        case connect
        case cut
        case lose
        case die(records: Int)

        var description: String {
            switch self {
            case .publish(let up): up ? "the client publishes" : "the server publishes"
            case .publishTogether: "the client publishes two messages at once"
            case .deliver(let up, let all):
                "\(all ? "all packets reach" : "a packet reaches") the \(up ? "server" : "client")"
            case .take(let place): "the application acknowledges message \(place) of those that it holds"
            case .change: "the application ends its second subscription, or makes it again"
            case .store: "the store has one record more"
            case .connect: "the client connects"
            case .cut: "the link breaks"
            case .lose: "the server forgets the session"
            case .die(let records): "the client's process dies, and the store has \(records) records more"
            }
        }
    }

    /// A message that the client's application was given and has not acknowledged.
    private struct Pending {
        let delivery: UInt64
        let index: Int
    }

    private let scenario: Scenario
    private let now: Int64 = 1_000_000_000
    private var client: MQTTEngine
    private var server: MQTTEngine
    private var effects = MQTTEffects()
    private(set) var up: Passage
    private(set) var down: Passage
    /// Packets on their way.
    private var toServer: [[UInt8]] = []
    private var toClient: [[UInt8]] = []
    private var pending: [Pending] = []
    private var breaksLeft: Int
    private var lossesLeft: Int
    private var changesLeft: Int
    private var serverForgets = false
    /// Whether the application wants its second filter, and whether an earlier process has left it to the next subscription.
    private var (wantsSecond, isLeft) = (true, false)
    /// Whether the client cannot know that the server has forgotten its session.
    private var lossIsHidden = false
    /// Whether a server has accepted a connection of this process.
    private var wasAccepted = false
    /// The filters in the server's session.
    private var held: Set<String> = []
    private var isCompleting = false
    /// How many SUBACK packets of this connection are awaited, and whether a PUBLISH has left on it.
    private var (awaitedSubacks, hasPublished) = (0, false)
    private var problems: [String] = []

    // The client's store: what it was given, how much of that it has, and how much it had when the process began.
    private var log: [MQTTStoreRecord] = []
    private var stored = 0
    private var base = 0
    private var numberOfSequence: [UInt64: Int] = [:]

    init(_ scenario: Scenario) {
        self.scenario = scenario
        client = Self.client(scenario, MQTTSession(), ["d", "e"])
        var configuration = MQTTEngineConfiguration(role: .server)
        configuration.receiveMaximum = scenario.window
        configuration.maximumInFlight = scenario.window
        configuration.topicAliasMaximum = 0
        configuration.outboundTopicAliasMaximum = 0
        server = MQTTEngine(configuration: configuration)
        up = Passage(topic: "u", scenario.up, window: Int(scenario.window), isStored: scenario.dies)
        down = Passage(topic: "d", scenario.down, window: Int(scenario.window), isStored: false)
        breaksLeft = scenario.breaks
        lossesLeft = scenario.losses
        changesLeft = scenario.changes
    }

    private static func client(_ scenario: Scenario, _ session: MQTTSession, _ filters: [String]) -> MQTTEngine {
        var client = MQTTEngine(configuration: clientConfiguration(scenario), session: session)
        guard scenario.subscribesFirst else { return client }
        for filter in filters {
            client.want(MQTTSubscriptionRequest(filter: filter), identifier: 0, [], mayBeHeld: client.holdsSession)
        }
        return client
    }

    private static func clientConfiguration(_ scenario: Scenario) -> MQTTEngineConfiguration {
        var configuration = MQTTEngineConfiguration(role: .client, version: scenario.version, clientID: "c")
        configuration.cleanStart = false
        configuration.sessionExpiry = scenario.version == .v5_0 ? 3600 : 0
        configuration.receiveMaximum = scenario.window
        configuration.maximumInFlight = scenario.window
        configuration.topicAliasMaximum = 0
        configuration.outboundTopicAliasMaximum = 0
        configuration.keepAlive = 0
        configuration.persists = scenario.dies
        configuration.subscribesAgainAfterRefusals = scenario.subscribesFirst
        configuration.maximumFiltersPerRequest = 1
        configuration.queuesQoS0WhileDisconnected = true
        return configuration
    }

    var complaints: [String] { problems + up.complaints + down.complaints }

    // MARK: Steps

    var steps: [Step] {
        var steps: [Step] = []
        let isOpen = client.phase != .closed
        if up.hasNext { steps.append(.publish(up: true)) }
        if scenario.publishesTogether, up.next == 0 { steps.append(.publishTogether) }
        if down.hasNext, server.holdsSession, server.phase == .connected || down.messages[down.next].qos != .atMostOnce
        {
            steps.append(.publish(up: false))
        }
        for (isUp, packets) in [(true, toServer), (false, toClient)] where !packets.isEmpty {
            steps.append(.deliver(up: isUp, all: false))
            if scenario.arrivesTogether, packets.count > 1 { steps.append(.deliver(up: isUp, all: true)) }
        }
        for place in pending.indices { steps.append(.take(place)) }
        if changesLeft > 0 { steps.append(.change) }
        if stored < log.count { steps.append(.store) }
        if !isOpen {
            steps.append(.connect)
            if lossesLeft > 0, !serverForgets, server.holdsSession { steps.append(.lose) }
        }
        if breaksLeft > 0 {
            if isOpen { steps.append(.cut) }
            if scenario.dies { for records in 0...(log.count - stored) { steps.append(.die(records: records)) } }
        }
        return steps
    }

    func take(_ step: Step) {
        switch step {
        case .publish(let isUp): publish(isUp)
        case .publishTogether: publishTogether()
        case .deliver(let isUp, let all): deliver(isUp, all ? .max : 1)
        case .take(let place): take(pending.remove(at: place))
        case .change:
            changesLeft -= 1
            change()
        case .store: store(1)
        case .connect: connect()
        case .cut:
            breaksLeft -= 1
            cut()
        case .lose:
            lossesLeft -= 1
            serverForgets = true
        case .die(let records):
            breaksLeft -= 1
            die(stored + records)
        }
        flush()
    }

    private func publish(_ isUp: Bool) {
        let index = isUp ? up.next : down.next
        let qos = isUp ? scenario.up[index] : scenario.down[index]
        let payload = [UInt8(index)]
        do {
            if isUp {
                _ = try client.publish(topic: "u", payload: payload, qos: qos, token: UInt64(index), at: now)
            } else {
                _ = try server.publish(topic: "d", payload: payload, qos: qos, token: UInt64(index), at: now)
            }
            if isUp { up.published(accepted: true) } else { down.published(accepted: true) }
        } catch {
            problems.append("a message was not accepted: \(error)")
        }
        collectRecords()
    }

    private func publishTogether() {
        for _ in 0..<2 { publish(true) }
    }

    private func take(_ held: Pending) {
        down.taken(held.index)
        client.acknowledge(held.delivery, at: now)
        collectRecords()
    }

    /// The application ends its second subscription, or makes it again.
    private func change() {
        wantsSecond.toggle()
        isLeft = false
        let isStored = stored == log.count
        if wantsSecond {
            client.want(MQTTSubscriptionRequest(filter: "e"), identifier: 0, [], mayBeHeld: !wasAccepted)
        } else {
            client.forget("e")
        }
        client.reconcile(at: now, into: &effects)
        perform(atClient: true, [])
        collectRecords()
        if scenario.dies, isStored, !wantsSecond, records(of: "e", in: log[...]) == [.filterWanted("e")] {
            problems.append("the store is not given the end of a subscription")
        }
    }

    private func connect() {
        do {
            try server.connectionOpened(at: now)
            try client.connectionOpened(at: now)
        } catch {
            problems.append("no connection could be opened: \(error)")
        }
        (awaitedSubacks, hasPublished) = (0, false)
        collectRecords()
    }

    private func cut() {
        // The client will take the session for the one that it knows.
        if toClient.contains(where: { type(of: $0) == .connack && $0[2] & 1 == 0 }) {
            up.lossWasNotSeen()
            lossIsHidden = lossesLeft < scenario.losses
        }
        toServer = []
        toClient = []
        client.connectionClosed(at: now, into: &effects)
        perform(atClient: true, [])
        server.connectionClosed(at: now, into: &effects)
        perform(atClient: false, [])
        up.connectionClosed()
        down.connectionClosed()
        // The others come again.
        pending.removeAll { !client.awaitsAnswer($0.delivery) }
        (awaitedSubacks, hasPublished) = (0, false)
    }

    // MARK: The store

    private func store(_ count: Int) {
        stored += count
        client.persisted(through: UInt64(stored - base), at: now, into: &effects)
        perform(atClient: true, [])
        collectRecords()
    }

    /// Gives the store what the client's engine has for it.
    private func collectRecords() {
        for record in client.storeRecords {
            log.append(record)
            switch record {
            case .message(let message):
                numberOfSequence[message.sequence] = Int(message.payload[0])
                up.messages[Int(message.payload[0])].acceptedRecord = log.count
            case .released(let sequence): up.messages[numberOfSequence[sequence]!].noteReleased(record: log.count)
            case .identified(let sequence, _):
                up.messages[numberOfSequence[sequence]!].noteIdentified(record: log.count)
            case .finished(let sequence):
                // A message of QoS 0 has no other record.
                if let index = numberOfSequence[sequence] { up.messages[index].finishedRecord = log.count }
            case .received(let id): down.noteTaken(id, record: log.count)
            case .receivedReleased(let id): down.noteForgotten(id, record: log.count)
            default: break
            }
        }
        client.storeRecords = []
    }

    /// The process dies; the next one has what the store has.
    private func die(_ records: Int) {
        if client.phase != .closed { cut() }
        log.removeSubrange(records...)
        (stored, base) = (records, records)
        let numbers = numberOfSequence
        let token: (UInt64) -> UInt64 = { UInt64(numbers[$0] ?? 255) }
        let session = MQTTSession(restoring: log, token: token)
        // A store may write its log anew at any time.
        var image = MQTTSessionImage()
        for record in log { image.apply(record) }
        // Other messages may get the numbers of those that are forgotten.
        numberOfSequence = [:]
        for case .message(let message) in image.records {
            numberOfSequence[message.sequence] = Int(message.payload[0])
        }
        if key(of: session) != key(of: MQTTSession(restoring: image.records, token: token)) {
            problems.append("the shortest log restores another session")
        }
        client = Self.client(scenario, session, wantsSecond ? ["d", "e"] : ["d"])
        client.restoreFilters(of: image)
        isLeft = !wantsSecond && image.records.contains(.filterWanted("e"))
        wasAccepted = false
        up.senderDied(records: records)
        down.receiverDied(records: records)
        pending = []
    }

    /// What such a store has of a filter.
    private func records(of filter: String, in log: ArraySlice<MQTTStoreRecord>) -> [MQTTStoreRecord] {
        var image = MQTTSessionImage()
        for record in log { image.apply(record) }
        return image.records.filter { $0 == .filterWanted(filter) || $0 == .filterEnded(filter) }
    }

    private func key(of session: MQTTSession) -> StateKey {
        var writer = StateWriter()
        session.write(into: &writer, persistedTicket: .max, own: clientIDs, peers: serverIDs) { Int($0[0]) }
        return writer.key
    }

    // MARK: The link

    /// Puts what both engines wrote on its way.
    private func flush() {
        for packet in Self.packets(client.output) {
            sent(packet, up: true)
            toServer.append(packet)
        }
        client.output = []
        for packet in Self.packets(server.output) {
            sent(packet, up: false)
            toClient.append(packet)
        }
        server.output = []
    }

    /// Packets of less than 130 bytes.
    private static func packets(_ bytes: [UInt8]) -> [[UInt8]] {
        var packets: [[UInt8]] = []
        var rest = bytes[...]
        while rest.count >= 2 {
            precondition(rest[rest.startIndex + 1] < 128)
            let count = 2 + Int(rest[rest.startIndex + 1])
            packets.append(Array(rest.prefix(count)))
            rest = rest.dropFirst(count)
        }
        return packets
    }

    private func type(of packet: [UInt8]) -> MQTTPacketType { MQTTPacketType(rawValue: packet[0] >> 4)! }

    /// Where the identifier of a packet is.
    private func place(of type: MQTTPacketType, _ packet: [UInt8]) -> Int? {
        switch type {
        case .publish: packet[0] & 6 == 0 ? nil : 5
        case .puback, .pubrec, .pubrel, .pubcomp, .subscribe, .suback, .unsubscribe, .unsuback: 2
        default: nil
        }
    }

    private func identifier(of type: MQTTPacketType, _ packet: [UInt8]) -> UInt16 {
        place(of: type, packet).map { UInt16(packet[$0]) << 8 | UInt16(packet[$0 + 1]) } ?? 0
    }

    /// A packet leaves.
    private func sent(_ packet: [UInt8], up isUp: Bool) {
        let type = type(of: packet)
        let id = identifier(of: type, packet)
        switch type {
        case .publish:
            let index = Int(packet[packet.count - 1])
            let qos = QoS(rawValue: packet[0] >> 1 & 3)!
            let isDuplicate = packet[0] & 8 != 0
            if isUp {
                if awaitedSubacks > 0 { problems.append("PUBLISH left before SUBACK") }
                hasPublished = true
                up.sent(index, qos, isDuplicate: isDuplicate, id, storedRecords: scenario.dies ? stored : .max)
            } else {
                down.sent(index, qos, isDuplicate: isDuplicate, id, storedRecords: .max)
            }
        case .pubrel:
            if isUp { up.sentRelease(id, storedRecords: stored) } else { down.sentRelease(id, storedRecords: 0) }
        case .puback, .pubrec, .pubcomp:
            if isUp {
                down.acknowledging(type, id, storedRecords: stored)
            } else {
                up.acknowledging(type, id, storedRecords: 0)
            }
        case .subscribe:
            awaitedSubacks += 1
            if hasPublished { problems.append("PUBLISH left before SUBSCRIBE") }
        default: break
        }
    }

    /// Packets arrive.
    private func deliver(_ isUp: Bool, _ count: Int) {
        let packets = (isUp ? toServer : toClient).prefix(count)
        if isUp { toServer.removeFirst(packets.count) } else { toClient.removeFirst(packets.count) }
        for packet in packets { arrives(packet, up: isUp) }
        let bytes = Array(packets.joined())
        let consumed =
            isUp
            ? server.receive(bytes.span.bytes, at: now, into: &effects)
            : client.receive(bytes.span.bytes, at: now, into: &effects)
        if consumed != bytes.count { problems.append("the \(isUp ? "server" : "client") left bytes unread") }
        perform(atClient: !isUp, bytes)
        collectRecords()
    }

    /// What acknowledgements and CONNACK change is known to the models before it has consequences.
    private func arrives(_ packet: [UInt8], up isUp: Bool) {
        let type = type(of: packet)
        switch type {
        case .puback, .pubrec, .pubcomp:
            let id = identifier(of: type, packet)
            if isUp { down.acknowledged(type, id) } else { up.acknowledged(type, id) }
        case .connack:
            // 3.1 has no Session Present: the client takes the session for granted.
            up.connected(sessionPresent: scenario.version == .v3_1 || packet[2] & 1 == 1)
        case .suback: awaitedSubacks -= 1
        default: break
        }
    }

    /// Does what an engine reported.
    private func perform(atClient: Bool, _ bytes: [UInt8]) {
        for record in effects.messages {
            let index = Int(bytes[record.payload][record.payload.lowerBound])
            if !atClient {
                up.delivered(index)
                up.taken(index)
                if record.delivery != 0 { server.acknowledge(record.delivery, at: now) }
            } else {
                down.delivered(index)
                if record.delivery != 0 { pending.append(Pending(delivery: record.delivery, index: index)) }
            }
        }
        for completion in effects.completions {
            let index = Int(completion.token)
            if atClient {
                up.completed(index, completion.outcome)
            } else {
                down.completed(index, completion.outcome)
            }
        }
        let events = effects.events
        effects.removeAll()
        for event in events {
            if atClient { performAtClient(event.kind) } else { performAtServer(event.kind) }
        }
    }

    private func performAtClient(_ event: MQTTEngineEvent.Kind) {
        switch event {
        case .connected:
            wasAccepted = true
            guard scenario.subscribesFirst else { return }
            client.reconcile(at: now, into: &effects)
            perform(atClient: true, [])
        case .sessionLost(_, let possibleDuplicates): up.sessionLost(possibleDuplicates)
        case .subscribeCompleted, .unsubscribeCompleted, .requestFailed: break
        default: problems.append("the client reports \(event)")
        }
    }

    private func performAtServer(_ event: MQTTEngineEvent.Kind) {
        switch event {
        case .connectReceived:
            let isPresent = server.holdsSession && !serverForgets
            serverForgets = false
            if !isPresent { held = [] }
            down.connected(sessionPresent: isPresent)
            do {
                try server.acceptConnection(sessionPresent: isPresent, at: now, into: &effects)
            } catch {
                problems.append("the connection was not accepted: \(error)")
            }
            perform(atClient: false, [])
        case .subscribeReceived(let subscribe):
            for filter in subscribe.subscriptions.map(\.filter) {
                held.insert(filter)
                if scenario.dies, records(of: filter, in: log[..<stored]).isEmpty {
                    problems.append("SUBSCRIBE to \(filter) left before it was stored")
                }
            }
            do {
                try server.acknowledgeSubscribe(subscribe.packetID, codes: [.grantedQoS2], at: now)
            } catch {
                problems.append("SUBACK was refused: \(error)")
            }
        case .unsubscribeReceived(let unsubscribe):
            held.subtract(unsubscribe.filters)
            do {
                try server.acknowledgeUnsubscribe(unsubscribe.packetID, codes: [.success], at: now)
            } catch {
                problems.append("UNSUBACK was refused: \(error)")
            }
        default: problems.append("the server reports \(event)")
        }
    }

    // MARK: Completion

    func complete() {
        for _ in 0..<100 {
            if client.phase == .closed {
                take(.connect)
            } else if stored < log.count {
                store(log.count - stored)
                flush()
            } else if !toServer.isEmpty {
                take(.deliver(up: true, all: false))
            } else if !toClient.isEmpty {
                take(.deliver(up: false, all: false))
            } else if !pending.isEmpty {
                take(.take(0))
            } else {
                return checkCompletion()
            }
        }
        problems.append("it never becomes quiet")
    }

    private func checkCompletion() {
        up.completed()
        down.completed()
        if client.inFlightCount + client.queuedCount > 0 { problems.append("the client's session is not empty") }
        if server.inFlightCount + server.queuedCount > 0 { problems.append("the server's session is not empty") }
        if scenario.dies, MQTTSession(restoring: log).queuedCount + MQTTSession(restoring: log).inFlightCount > 0 {
            problems.append("the store holds messages that are finished")
        }
        if client.hasReceivedIdentifiers || server.hasReceivedIdentifiers {
            problems.append("an identifier of a received message is kept for ever")
        }
        if scenario.subscribesFirst { checkFilters() }
    }

    /// The server and the store have what the application wants, and nothing else.
    private func checkFilters() {
        let wanted: Set<String> = wantsSecond || isLeft ? ["d", "e"] : ["d"]
        // SUBSCRIBE of a process that has died need not have left.
        let unsure: Set<String> = lossIsHidden ? wanted : isLeft ? ["e"] : []
        if !held.isSubset(of: wanted) || !wanted.subtracting(held).isSubset(of: unsure) {
            problems.append("the server has \(held.sorted()) in the place of \(wanted.sorted())")
        }
        guard scenario.dies else { return }
        for filter in isLeft ? ["d"] : ["d", "e"] {
            let records = records(of: filter, in: log[...])
            let expected: [MQTTStoreRecord] = wanted.contains(filter) ? [.filterWanted(filter)] : []
            if records != expected { problems.append("the store has \(records) of \(filter)") }
        }
    }

    // MARK: A cut within a packet

    /// The number of bytes of the next packet.
    func nextPacketCount(up isUp: Bool) -> Int { (isUp ? toServer : toClient).first?.count ?? 0 }

    var canBreak: Bool { breaksLeft > 0 && client.phase != .closed }

    /// So many bytes of the next packet arrive, and the link breaks.
    func cutWithinPacket(up isUp: Bool, after count: Int) {
        let bytes = Array((isUp ? toServer : toClient)[0].prefix(count))
        let consumed =
            isUp
            ? server.receive(bytes.span.bytes, at: now, into: &effects)
            : client.receive(bytes.span.bytes, at: now, into: &effects)
        if consumed > 0 { problems.append("\(consumed) bytes of a part of a packet were read") }
        perform(atClient: !isUp, bytes)
        take(.cut)
    }

    // MARK: Writing

    func write(into writer: inout StateWriter) {
        writer.put(breaksLeft)
        writer.put(lossesLeft)
        writer.put(serverForgets, hasPublished)
        writer.put(changesLeft)
        writer.put(wantsSecond, isLeft, lossIsHidden, wasAccepted)
        writer.put(held.contains("d"), held.contains("e"))
        writer.put(awaitedSubacks)
        client.write(into: &writer) { $0.isEmpty ? -1 : Int($0[0]) }
        writer.put(toServer.count)
        for packet in toServer { write(packet, up: true, &writer) }
        writer.put(toClient.count)
        for packet in toClient { write(packet, up: false, &writer) }
        server.write(into: &writer) { $0.isEmpty ? -1 : Int($0[0]) }
        writer.put(pending.count)
        for held in pending {
            writer.put(held.index)
            writer.put(client.awaitsAnswer(held.delivery))
        }
        up.write(into: &writer, stored: stored)
        down.write(into: &writer, stored: stored)
        if scenario.dies {
            var image = MQTTSessionImage()
            for record in log[..<stored] { image.apply(record) }
            for records in [image.records, Array(log[stored...])] {
                writer.put(records.count)
                for record in records { write(record, &writer) }
            }
        }
        let most = scenario.up.count + scenario.down.count + scenario.breaks + 2
        client.writeNextIdentifiers(into: &writer, count: most)
        // The next process begins with 1 again.
        if scenario.dies, breaksLeft > 0 {
            writer.put(Int(client.nextIdentifier))
            for id in 1...UInt64(most) { writer.put(nameIfKnown: id + clientIDs) }
        }
        server.writeNextIdentifiers(into: &writer, count: most)
    }

    private func write(_ packet: [UInt8], up isUp: Bool, _ writer: inout StateWriter) {
        let type = type(of: packet)
        let isOwn = [.publish, .pubrel, .subscribe, .unsubscribe].contains(type)
        guard let place = place(of: type, packet) else { return writer.put(bytes: packet) }
        writer.put(bytes: packet[..<place])
        writer.put(name: UInt64(identifier(of: type, packet)) + (isOwn == isUp ? clientIDs : serverIDs))
        writer.put(bytes: packet[(place + 2)...])
    }

    private func write(_ kind: Int, _ filter: String, _ writer: inout StateWriter) {
        writer.put(kind)
        writer.put(bytes: filter.utf8)
    }

    private func write(_ record: MQTTStoreRecord, _ writer: inout StateWriter) {
        switch record {
        case .established: writer.put(0)
        case .message(let message):
            writer.put(1)
            writer.put(Int(message.payload[0]))
            if message.packetID == 0 { writer.put(-1) } else { writer.put(name: UInt64(message.packetID) + clientIDs) }
        case .identified(let sequence, let id):
            writer.put(2)
            writer.put(numberOfSequence[sequence]!)
            writer.put(name: UInt64(id) + clientIDs)
        case .released(let sequence):
            writer.put(3)
            writer.put(numberOfSequence[sequence]!)
        case .finished(let sequence):
            writer.put(4)
            writer.put(numberOfSequence[sequence] ?? -1)
        case .received(let id):
            writer.put(5)
            writer.put(name: UInt64(id) + serverIDs)
        case .receivedReleased(let id):
            writer.put(6)
            writer.put(name: UInt64(id) + serverIDs)
        case .retired(let id):
            writer.put(10)
            writer.put(name: UInt64(id) + clientIDs)
        case .receivedForgotten: writer.put(7)
        case .discarded: writer.put(8)
        case .kept, .keptFinished: writer.put(9)
        case .filterWanted(let filter): write(11, filter, &writer)
        case .filterEnded(let filter): write(12, filter, &writer)
        case .filterForgotten(let filter): write(13, filter, &writer)
        }
    }
}
