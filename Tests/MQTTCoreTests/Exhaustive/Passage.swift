import MQTTCore
import TestSupport

/// The messages that one end publishes to the other, and what is promised about them. It is told what can be seen from
/// outside: what the sender accepted and reports, the packets, and what the receiver's application is given.
struct Passage {
    struct Message {
        let qos: QoS
        /// The sender's engine took it, and the process that it took it has not died too early.
        var isAccepted = false
        var isRefused = false
        /// The sender's process died before the message was stored.
        var isLost = false
        /// PUBLISH left in the session that holds now.
        var wasSent = false
        /// PUBLISH left at any time.
        var wasEverSent = false
        /// PUBLISH left on this connection, and no acknowledgement that ends it has come back.
        var isInFlight = false
        var isReleased = false
        /// A completion was reported.
        var isFinished = false
        /// A process that will not forget it was given the message.
        var isDelivered = false
        /// Some process was given the message.
        var wasEverDelivered = false
        /// The receiver's application has acknowledged it.
        var isTaken = false
        /// The sender has reported that it may arrive twice.
        var mayRepeat = false
        /// How many records the store has to hold until the message, PUBREC or the receiver's acknowledgement survives.
        var acceptedRecord = 0
        private(set) var releasedRecord = 0
        /// The same until the message has its identifier of a new session, and until the PUBREC before that.
        private var identifiedRecord = 0
        private var earlierRelease = 0
        var finishedRecord = 0
        var takenRecord = 0
        var forgottenRecord = 0

        init(_ qos: QoS) { self.qos = qos }

        /// The numbers of records, in the order of their fields.
        var records: [Int] {
            [
                acceptedRecord, releasedRecord, identifiedRecord, earlierRelease, finishedRecord, takenRecord,
                forgottenRecord,
            ]
        }

        mutating func noteReleased(record: Int) { releasedRecord = record }

        mutating func noteIdentified(record: Int) {
            // The first such record after a release ends it.
            guard identifiedRecord == 0 || releasedRecord > 0 else { return }
            (identifiedRecord, earlierRelease, releasedRecord) = (record, releasedRecord, 0)
        }

        /// The sender's process died: the message is where the records that its store holds say.
        mutating func restoreRelease(records: Int) {
            if identifiedRecord > records { (identifiedRecord, releasedRecord) = (0, earlierRelease) }
            if releasedRecord > records { releasedRecord = 0 }
            isReleased = releasedRecord > 0
            // What has an identifier counts as sent.
            wasSent = wasEverSent
        }
    }

    let topic: String
    let window: Int
    var messages: [Message]
    private(set) var complaints: [String] = []
    /// The number of the next message to publish.
    private(set) var next = 0
    /// PUBREC came, and the exchange is not finished; in the order of PUBREC.
    private(set) var released: [Int] = []
    /// What is sent again on this connection before anything else.
    private(set) var resend: [Int] = []
    private(set) var resendReleases: [Int] = []
    /// The sender's process has died: messages count as sent that had not left.
    var senderHasDied = false
    /// PUBREL may be held back by the store, behind messages that need not wait.
    let isStored: Bool
    private var messageOf: [UInt16: Int] = [:]

    init(topic: String, _ qos: [QoS], window: Int, isStored: Bool) {
        self.topic = topic
        self.window = window
        self.isStored = isStored
        messages = qos.map { Message($0) }
    }

    var hasNext: Bool { next < messages.count }

    mutating func complain(_ text: String) { complaints.append("\(topic): \(text)") }

    private func name(_ index: Int) -> String { "message \(index) (\(messages[index].qos))" }

    // MARK: The sender

    mutating func published(accepted: Bool) {
        messages[next].isAccepted = accepted
        messages[next].isRefused = !accepted
        next += 1
    }

    mutating func completed(_ index: Int, _ outcome: MQTTPublishCompletion.Outcome) {
        let message = messages[index]
        if message.isFinished { complain("\(name(index)) was completed twice") }
        if outcome != (message.qos == .atMostOnce ? .written : .acknowledged) {
            complain("\(name(index)) ended as \(outcome)")
        }
        if message.qos != .atMostOnce, !message.wasEverDelivered { complain("\(name(index)) was not delivered") }
        messages[index].isFinished = true
        released.removeAll { $0 == index }
        resend.removeAll { $0 == index }
        resendReleases.removeAll { $0 == index }
    }

    /// The server had lost the session, and these may arrive twice.
    mutating func sessionLost(_ possibleDuplicates: [UInt64]) {
        for index in messages.indices where messages[index].isInSession {
            let mayRepeat = possibleDuplicates.contains(UInt64(index))
            // What a process leaves behind counts as sent if it has an identifier.
            if mayRepeat, messages[index].qos != .exactlyOnce || !messages[index].wasEverSent && !senderHasDied {
                complain("\(name(index)) is reported as a possible duplicate")
            }
            messages[index].mayRepeat = messages[index].mayRepeat || mayRepeat
        }
    }

    /// CONNACK, which reports that the session is lost, did not arrive, and the next one reports that there is a session:
    /// nobody can know that it is another one.
    mutating func lossWasNotSeen() {
        for index in messages.indices where messages[index].isInSession && messages[index].wasSent {
            messages[index].mayRepeat = true
        }
    }

    /// CONNACK: the session of before holds, or another one begins.
    mutating func connected(sessionPresent: Bool) {
        if sessionPresent {
            resend = messages.indices.filter {
                messages[$0].isInSession && messages[$0].wasSent && !messages[$0].isReleased
            }
            resendReleases = released
        } else {
            for index in messages.indices where messages[index].isInSession {
                messages[index].wasSent = false
                messages[index].isReleased = false
            }
            released = []
        }
    }

    mutating func connectionClosed() {
        for index in messages.indices { messages[index].isInFlight = false }
        resend = []
        resendReleases = []
    }

    /// PUBREC or another acknowledgement reached the sender.
    mutating func acknowledged(_ type: MQTTPacketType, _ id: UInt16) {
        guard let index = messageOf[id] else { return complain("\(type) names no message") }
        if type != .pubrec {
            messages[index].isInFlight = false
        } else if !messages[index].isReleased, !messages[index].isFinished {
            messages[index].isReleased = true
            released.append(index)
            resend.removeAll { $0 == index }
        }
    }

    /// The sender died, and its store holds so many records.
    mutating func senderDied(records: Int) {
        senderHasDied = true
        for index in messages.indices where messages[index].isAccepted && !messages[index].isLost {
            if messages[index].acceptedRecord > records || messages[index].qos == .atMostOnce {
                if messages[index].wasSent, messages[index].qos != .atMostOnce {
                    complain("\(name(index)) was sent before it was stored")
                }
                messages[index].isLost = true
                continue
            }
            if messages[index].finishedRecord > records {
                (messages[index].isFinished, messages[index].finishedRecord) = (false, 0)
            }
            messages[index].restoreRelease(records: records)
        }
        released = messages.indices.filter { messages[$0].isInSession && messages[$0].isReleased }
        released.sort { messages[$0].releasedRecord < messages[$1].releasedRecord }
    }

    // MARK: Packets of the sender

    mutating func sent(_ index: Int, _ qos: QoS, isDuplicate: Bool, _ id: UInt16, storedRecords: Int) {
        let message = messages[index]
        if qos != message.qos { complain("\(name(index)) left with \(qos)") }
        guard message.isAccepted, !message.isLost else { return complain("\(name(index)) left and was not accepted") }
        defer {
            messages[index].wasSent = true
            messages[index].wasEverSent = true
            messages[index].isInFlight = qos != .atMostOnce
        }
        let later = messages.indices.contains {
            $0 > index && messages[$0].wasSent && (messages[$0].qos == .atMostOnce) == (qos == .atMostOnce)
                && (qos == .atMostOnce || messages[$0].isInSession)
        }
        if qos == .atMostOnce {
            if isDuplicate { complain("\(name(index)) left with DUP [MQTT-3.3.1-2]") }
            if message.wasSent { complain("\(name(index)) was sent twice") }
            if later { complain("\(name(index)) was overtaken") }
            return
        }
        messageOf[id] = index
        if message.isFinished { complain("\(name(index)) was sent after its end") }
        if message.isReleased { complain("\(name(index)) was sent after PUBREC [MQTT-4.3.3-6]") }
        if message.acceptedRecord > storedRecords { complain("\(name(index)) left before it was stored") }
        if message.isInFlight { complain("\(name(index)) was sent twice on a connection [MQTT-4.4.0-1]") }
        if message.wasSent {
            if !isDuplicate { complain("\(name(index)) was sent again without DUP [MQTT-3.3.1-1]") }
            if resend.first != index {
                complain("\(name(index)) was sent again in the place of \(resend) [MQTT-4.6.0-1]")
            }
            resend.removeAll { $0 == index }
        } else {
            if isDuplicate, !senderHasDied { complain("\(name(index)) left for the first time with DUP") }
            if !resend.isEmpty { complain("\(name(index)) left before \(resend) were sent again [MQTT-4.6.0-1]") }
            if later { complain("\(name(index)) was overtaken") }
        }
        if !isStored, !resendReleases.isEmpty { complain("\(name(index)) left before PUBREL for \(resendReleases)") }
        let others = messages.indices.count { $0 != index && messages[$0].isInFlight }
        if others >= window { complain("\(name(index)) is number \(others + 1) in flight [MQTT-3.3.4-9]") }
    }

    mutating func sentRelease(_ id: UInt16, storedRecords: Int) {
        guard let index = messageOf[id], messages[index].isReleased || messages[index].isFinished else {
            return complain("PUBREL without PUBREC")
        }
        if messages[index].releasedRecord > storedRecords { complain("PUBREL left before it was stored") }
        if let first = resendReleases.first, first != index {
            complain("PUBREL for \(name(index)) left before that for \(resendReleases) [MQTT-4.6.0-4]")
        }
        resendReleases.removeAll { $0 == index }
    }

    // MARK: The receiver

    mutating func delivered(_ index: Int) {
        let message = messages[index]
        if message.isDelivered, !message.mayRepeat, message.qos != .atLeastOnce {
            complain("\(name(index)) was delivered twice")
        }
        if !message.wasEverSent { complain("\(name(index)) was delivered and never sent") }
        let isOvertaken = messages.indices.contains {
            $0 > index && messages[$0].wasEverDelivered
                && (messages[$0].qos == .atMostOnce) == (message.qos == .atMostOnce)
        }
        if !message.wasEverDelivered, isOvertaken { complain("\(name(index)) was delivered after a later one") }
        messages[index].isDelivered = true
        messages[index].wasEverDelivered = true
        if message.qos == .atMostOnce { messages[index].isTaken = true }
    }

    mutating func taken(_ index: Int) { messages[index].isTaken = true }

    /// The receiver stores under this number that the message of an identifier was taken.
    mutating func noteTaken(_ id: UInt16, record: Int) {
        guard let index = messageOf[id] else { return complain("a record names no message") }
        messages[index].takenRecord = record
    }

    /// An acknowledgement of the receiver leaves.
    mutating func acknowledging(_ type: MQTTPacketType, _ id: UInt16, storedRecords: Int) {
        guard let index = messageOf[id] else { return complain("\(type) names no message") }
        if type != .pubcomp, !messages[index].isTaken { complain("\(type) left before \(name(index)) was taken") }
        let record = type == .pubcomp ? messages[index].forgottenRecord : messages[index].takenRecord
        if type != .puback, record > storedRecords { complain("\(type) left before its record was stored") }
    }

    /// The receiver stores under this number that the identifier of a message is free.
    mutating func noteForgotten(_ id: UInt16, record: Int) {
        guard let index = messageOf[id] else { return complain("a record names no message") }
        messages[index].forgottenRecord = record
    }

    /// The receiver's process died, and its store holds so many records: what it had not taken comes again.
    mutating func receiverDied(records: Int) {
        for index in messages.indices where messages[index].qos == .exactlyOnce {
            if messages[index].forgottenRecord > records { messages[index].forgottenRecord = 0 }
            if messages[index].isTaken, (1...max(1, records)).contains(messages[index].takenRecord) { continue }
            messages[index].isDelivered = false
            messages[index].isTaken = false
            messages[index].takenRecord = 0
        }
    }

    /// Everything went well for long enough.
    mutating func completed() {
        for index in messages.indices where messages[index].isAccepted && !messages[index].isLost {
            let message = messages[index]
            if message.qos == .atMostOnce {
                if !message.wasSent { complain("\(name(index)) never left") }
                continue
            }
            if !message.isTaken { complain("\(name(index)) is lost") }
            if !message.isFinished { complain("\(name(index)) has no completion") }
        }
    }

    // MARK: Writing

    /// - Parameter stored: how many records the store holds; others may be lost with the process.
    func write(into writer: inout StateWriter, stored: Int) {
        writer.put(next)
        writer.put(senderHasDied)
        for message in messages[..<next] {
            writer.put(
                message.isAccepted, message.isRefused, message.isLost, message.wasSent, message.isInFlight,
                message.isReleased, message.isFinished)
            writer.put(
                message.isDelivered, message.wasEverDelivered, message.isTaken, message.mayRepeat, message.wasEverSent)
            for record in message.records { writer.put(record == 0 ? 0 : max(1, record - stored + 1)) }
        }
        writer.put(released)
        writer.put(resend)
        writer.put(resendReleases)
    }
}

extension Passage.Message {
    /// Whether the session holds it.
    var isInSession: Bool { isAccepted && !isLost && !isFinished && qos != .atMostOnce }
}
