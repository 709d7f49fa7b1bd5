import MQTTCore
import MessagingShell
import MessagingWire
import STOMPCore

/// The codecs and engines by themselves, on one thread: nanoseconds of processor time and allocations for each packet.
struct CodecRows {
    let rounds: Int
    let scale: Double

    private static let payload = [UInt8](repeating: 0x70, count: 24)

    /// `body` handles as many packets as it is told.
    private func row(
        _ name: String, goal: String = "–", _ body: (_ count: Int) throws -> Void
    ) rethrows -> Row {
        var row = Row(name, unit: "ns", isRate: false, goal: goal)
        let count = max(1, Int(2_000_000 * scale) / 1000) * 1000
        try body(min(count, 1000))
        for _ in 0..<rounds {
            let costs = try measuredWithoutTasks { try body(count) }
            row.add(ours: costs.processorSeconds * 1e9 / Double(count))
            row.addCosts(costs, count)
        }
        return row
    }

    func forBothVersions(_ row: (MQTTVersion) throws -> Row) rethrows -> [Row] {
        [try row(.v3_1_1), try row(.v5_0)]
    }

    func encodePublish(_ version: MQTTVersion) throws -> Row {
        var output: [UInt8] = []
        output.reserveCapacity(1 << 17)
        let (topic, payload) = (MQTTRows.topic, Self.payload)
        return try row("MQTT \(version) encode PUBLISH", goal: "≤ 20 ns, 0 allocations") { count in
            for _ in 0..<count {
                if output.count > 1 << 16 { output.removeAll(keepingCapacity: true) }
                try MQTTPacket.Publish.encode(
                    PublishHead(topic: topic), payload: payload.span.bytes, into: &output, version: version)
            }
        }
    }

    private func packets(_ version: MQTTVersion) throws -> (bytes: [UInt8], count: Int) {
        var bytes: [UInt8] = []
        for _ in 0..<500 {
            try MQTTPacket.Publish.encode(
                PublishHead(topic: MQTTRows.topic), payload: Self.payload.span.bytes, into: &bytes, version: version)
        }
        return (bytes, 500)
    }

    /// Parts found and checked in place, topic and payload taken out as the engine does for one message.
    func decodePublish(_ version: MQTTVersion) throws -> Row {
        let (bytes, each) = try packets(version)
        var sum = 0
        let row = try row("MQTT \(version) decode PUBLISH in place", goal: "≤ 60 ns, ≤ 1 allocation") { count in
            let span = bytes.span.bytes
            for _ in 0..<(count / each) {
                var at = 0
                while let header = try MQTTFrameHeader.parse(
                    span, at: at, maximumPacketSize: 1 << 20, version: version)
                {
                    let view = try MQTTPublishView.parse(header, in: span, at: at, version: version)
                    sum &+= try view.topic(in: span).utf8.count &+ view.payloadCount
                    at += header.packetCount
                    if at == span.byteCount { break }
                }
            }
        }
        precondition(sum > 0)
        return row
    }

    /// The convenient decoder: a packet of its own each.
    func decodeWhole(_ version: MQTTVersion) throws -> Row {
        let (bytes, each) = try packets(version)
        return try row("MQTT \(version) decode, packets of their own") { count in
            var decoder = MQTTDecoder(version: version)
            for _ in 0..<(count / each) {
                decoder.push(bytes)
                while try decoder.next() != nil {}
            }
        }
    }

    /// What a client does with a read full of messages of one topic.
    func engineReceives() throws -> Row {
        let (bytes, each) = try packets(.v3_1_1)
        return try engineReceives("", .v3_1_1, bytes, each)
    }

    /// The same with as many topics as messages.
    func engineReceivesTopics() throws -> Row {
        let messages = Traffic(count: 1_000, topics: 1_000).messages(0..<1_000)
        return try engineReceives(", 1,000 topics", .v3_1_1, encoded(messages, .v3_1_1), messages.count)
    }

    /// The same with two user properties, which differ from message to message.
    func engineReceivesProperties() throws -> Row {
        let messages = Traffic(count: 500).messages(0..<500).enumerated().map { number, message in
            var message = message
            message.properties = [.userProperty("source", "sensor\(number % 10)"), .userProperty("region", "north-1")]
            return message
        }
        return try engineReceives(", two user properties", .v5_0, encoded(messages, .v5_0), messages.count)
    }

    /// The same with QoS 1, and the acknowledgements of all of them.
    func engineReceivesAtLeastOnce() throws -> Row {
        let messages = Traffic(count: 1_000, qos: .atLeastOnce).messages(0..<1_000)
        return try engineReceives(", QoS 1", .v3_1_1, encoded(messages, .v3_1_1), messages.count)
    }

    /// What a client does with arrays of QoS 2: PUBLISH, then PUBREL for PUBREC, then PUBCOMP, a hundred at a time.
    func enginePublishesExactlyOnce() throws -> Row {
        let messages = Traffic(count: 100, qos: .exactlyOnce).messages(0..<100)
        var engine = MQTTEngine(configuration: MQTTEngineConfiguration())
        var effects = MQTTEffects()
        engine.configuration.version = .v3_1_1
        try engine.connectionOpened(at: 0)
        let accepted: [UInt8] = [0x20, 2, 0, 0]
        _ = engine.receive(accepted.span.bytes, at: 0, into: &effects)
        effects.removeAll()
        engine.output.removeAll()
        var answers = [UInt8](repeating: 2, count: 4 * messages.count)
        var completed = 0
        let row = try row("MQTT engine publishes arrays, QoS 2") { count in
            for _ in 0..<(count / messages.count) {
                for message in messages {
                    _ = try engine.publish(topic: message.topic, payload: message.payload, qos: message.qos, at: 1)
                }
                for (type, place) in [(0x50, 20), (0x70, 2)] as [(UInt8, Int)] {
                    Self.fill(&answers, with: type, identifiersFrom: engine.output.span, at: place)
                    engine.output.removeAll(keepingCapacity: true)
                    _ = engine.receive(answers.span.bytes, at: 1, into: &effects)
                }
                completed += effects.completions.count
                effects.removeAll()
            }
        }
        precondition(completed > 0 && completed % messages.count == 0 && engine.inFlightCount == 0)
        return row
    }

    /// What a client does with arrays of mixed traffic: QoS 0 and 1 in turn, half of them with two user properties, a hundred
    /// acknowledged at a time.
    func enginePublishesMixedTraffic() throws -> Row {
        let traffic = Traffic(count: 1_000, topics: 1_000, payload: nil, qos: nil, hasProperties: nil)
        let messages = traffic.messages(0..<traffic.count)
        var engine = MQTTEngine(configuration: MQTTEngineConfiguration())
        var effects = MQTTEffects()
        engine.configuration.version = .v5_0
        try engine.connectionOpened(at: 0)
        let accepted: [UInt8] = [0x20, 3, 0, 0, 0]
        _ = engine.receive(accepted.span.bytes, at: 0, into: &effects)
        effects.removeAll()
        engine.output.removeAll()
        var answers: [UInt8] = []
        var completed = 0
        let row = try row("MQTT engine publishes mixed traffic") { count in
            for place in 0..<count {
                let message = messages[place % messages.count]
                let start = engine.output.count
                _ = try engine.publish(
                    topic: message.topic, payload: message.payload, qos: message.qos, properties: message.properties,
                    at: 1)
                if message.qos == .atLeastOnce {
                    // Behind the length and the topic.
                    var at = start + 1
                    while engine.output[at] > 0x7F { at += 1 }
                    at += 3 + message.topic.utf8.count
                    answers += [0x40, 2, engine.output[at], engine.output[at + 1]]
                }
                guard answers.count == 400 else { continue }
                _ = engine.receive(answers.span.bytes, at: 1, into: &effects)
                completed += effects.completions.count
                answers.removeAll(keepingCapacity: true)
                effects.removeAll()
                engine.output.removeAll(keepingCapacity: true)
            }
        }
        precondition(completed > 0 && engine.inFlightCount == 0)
        return row
    }

    /// Makes acknowledgements for packets that have one size and their identifiers in the same place.
    private static func fill(
        _ answers: inout [UInt8], with type: UInt8, identifiersFrom packets: Span<UInt8>, at place: Int
    ) {
        let size = 4 * packets.count / answers.count
        var at = place
        for answer in stride(from: 0, to: answers.count, by: 4) {
            answers[answer] = type
            answers[answer + 2] = packets[at]
            answers[answer + 3] = packets[at + 1]
            at += size
        }
    }

    private func encoded(_ messages: [MQTTOutgoingMessage], _ version: MQTTVersion) throws -> [UInt8] {
        var bytes: [UInt8] = []
        for (index, message) in messages.enumerated() {
            let id = message.qos == .atMostOnce ? 0 : UInt16(truncatingIfNeeded: index + 1)
            try MQTTPacket.Publish.encode(
                PublishHead(topic: message.topic, flags: MQTTPublishFlags(message.qos), packetID: id),
                message.properties, payload: message.payload.span.bytes, into: &bytes, version: version)
        }
        return bytes
    }

    private func engineReceives(_ name: String, _ version: MQTTVersion, _ bytes: [UInt8], _ each: Int) throws -> Row {
        var engine = MQTTEngine(configuration: MQTTEngineConfiguration())
        var effects = MQTTEffects()
        engine.configuration.version = version
        try engine.connectionOpened(at: 0)
        let accepted: [UInt8] = version == .v5_0 ? [0x20, 3, 0, 0, 0] : [0x20, 2, 0, 0]
        _ = engine.receive(accepted.span.bytes, at: 0, into: &effects)
        effects.removeAll()
        // As in a client, which has received the topics before.
        var topics = TopicTable(seed: 1)
        _ = engine.receive(bytes.span.bytes, at: 1, into: &effects)
        for message in effects.messages {
            let topic = bytes.span.bytes.extracting(message.topic)
            if topics.number(of: topic) == 0 { topics.insert(topic, number: UInt16(topics.count + 1)) }
        }
        if let deliveries = effects.deliveries { engine.acknowledge(deliveries, at: 1) }
        effects.removeAll()
        var (received, known) = (0, 0)
        let row = row("MQTT engine receives PUBLISH" + name, goal: "≤ 60 ns, ≤ 1 allocation") { count in
            for _ in 0..<(count / each) {
                _ = engine.receive(bytes.span.bytes, at: 1, into: &effects, knowing: topics)
                received += effects.messages.count
                known += effects.messages.last?.destination == 0 ? 0 : 1
                if let deliveries = effects.deliveries {
                    engine.acknowledge(deliveries, at: 1)
                    engine.output.removeAll(keepingCapacity: true)
                }
                effects.removeAll()
            }
        }
        precondition(received > 0 && known == received / each)
        return row
    }

    func encodeSend() throws -> Row {
        var engine = try connectedSTOMP()
        return try row("STOMP engine sends SEND, 263 bytes") { count in
            for _ in 0..<count {
                if engine.output.count > 1 << 16 { engine.output.removeAll(keepingCapacity: true) }
                try engine.send(
                    destination: STOMPRows.destination,
                    headers: STOMPRows.headers, body: STOMPRows.body, at: 1)
            }
        }
    }

    func decodeMessage() throws -> Row {
        var engine = try connectedSTOMP()
        var effects = STOMPEffects()
        let head = "MESSAGE\nsubscription:1\nmessage-id:7\ndestination:\(STOMPRows.destination)\ncontent-length:"
        let frame = Array((head + "\(STOMPRows.body.count)\n\n").utf8) + STOMPRows.body + [0]
        let bytes = Array(repeatElement(frame, count: 200).joined())
        var received = 0
        _ = try engine.subscribe(id: "1", destination: "a", token: 1, at: 0)
        engine.output.removeAll()
        let row = row("STOMP engine receives MESSAGE") { count in
            for _ in 0..<(count / 200) {
                _ = engine.receive(bytes.span.bytes, at: 1, into: &effects)
                received += effects.messages.count
                effects.removeAll()
            }
        }
        precondition(received > 0)
        return row
    }

    /// Equal headers, 1,000 destinations in turn.
    func encodeSendToMany() throws -> Row {
        var engine = try connectedSTOMP()
        let destinations = (1_000..<2_000).map { STOMPRows.destination + ".\($0)" }
        return try row("STOMP engine sends SEND to 1,000 destinations") { count in
            for index in 0..<count {
                if engine.output.count > 1 << 16 { engine.output.removeAll(keepingCapacity: true) }
                try engine.send(
                    destination: destinations[index % 1_000], headers: STOMPRows.headers, body: STOMPRows.body, at: 1)
            }
        }
    }

    /// Frames that differ in `message-id` and `destination`, which are read as strings, and `content-type` too.
    func readHeaders() throws -> Row {
        var engine = try connectedSTOMP()
        var effects = STOMPEffects()
        let frames = (0..<200).map { number in
            let head =
                "MESSAGE\nsubscription:1\nmessage-id:\(number)\ndestination:\(STOMPRows.destination).\(number % 50)\n"
            let rest = "content-type:application/json;charset=utf-8\ncontent-length:\(STOMPRows.body.count)\n\n"
            return Array((head + rest).utf8) + STOMPRows.body + [0]
        }
        let bytes = Array(frames.joined())
        let reader = STOMPHeaderReader(version: .v12)
        var sum = 0
        _ = try engine.subscribe(id: "1", destination: "a", token: 1, at: 0)
        engine.output.removeAll()
        let row = row("STOMP engine receives MESSAGE to 50 destinations, three headers read") { count in
            for _ in 0..<(count / 200) {
                _ = engine.receive(bytes.span.bytes, at: 1, into: &effects)
                for record in effects.messages {
                    // Not in a loop over an array, which the optimiser puts on the heap or not as it likes.
                    sum &+= reader.string(in: bytes.span.bytes, record.destination).utf8.count
                    sum &+= reader.string(in: bytes.span.bytes, record.messageID).utf8.count
                    sum &+= reader.string(in: bytes.span.bytes, record.contentType).utf8.count
                }
                effects.removeAll()
            }
        }
        precondition(sum > 0)
        return row
    }

    /// What a log adds to a read of 1,000 packets: finding where each ends, and keeping them.
    func keepFrames() throws -> Row {
        let decoder = Unread()
        let inspector = FrameInspector<Int> { bytes, _, cuts in
            cuts.begin(at: 0, decoder: decoder)
            var end = 0
            while let header = try? MQTTFrameHeader.parse(bytes, at: end, maximumPacketSize: 1 << 20) {
                end += header.packetCount
                cuts.add(endingAt: end)
            }
        }
        let log = FrameLog()
        inspector.feed(log, as: "a")
        var packet: [UInt8] = []
        try MQTTPacket.publish(.init(topic: MQTTRows.topic, payload: Self.payload)).encode(
            into: &packet, version: .v3_1_1)
        let bytes = Array(repeatElement(packet, count: 1_000).joined())
        let row = row("Frame log keeps PUBLISH, reads of 1,000") { count in
            for _ in 0..<(count / 1_000) { inspector.received(bytes.span.bytes) }
        }
        precondition(log.snapshot().frames.count == 1_000)
        return row
    }

    private struct Unread: FrameDecoder {
        func decode(_ frame: RawFrame, showsSecrets: Bool) -> any FrameContent { InvalidFrame(frame, "") }
    }

    private func connectedSTOMP() throws -> STOMPEngine {
        var engine = STOMPEngine(configuration: STOMPEngineConfiguration())
        var effects = STOMPEffects()
        try engine.connectionOpened(at: 0)
        let accepted = Array("CONNECTED\nversion:1.2\n\n\0".utf8)
        _ = engine.receive(accepted.span.bytes, at: 0, into: &effects)
        engine.output.removeAll()
        return engine
    }
}
