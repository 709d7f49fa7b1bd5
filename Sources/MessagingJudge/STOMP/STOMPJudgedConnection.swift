import MessagingWire
import STOMPCore

/// One connection, as a judge sees it: how far it is, and what the client may name on it.
struct STOMPJudgedConnection: Sendable {
    enum Phase: Sendable {
        /// CONNECT has not come.
        case opened
        /// CONNECT has no answer.
        case connecting
        case connected
        /// The client has taken its leave.
        case left
        /// Ended by the server, or unreadable.
        case unjudged
    }

    let number: Int
    let options: JudgeOptions
    var found = ViolationList()
    private(set) var phase = Phase.opened
    private(set) var version = STOMPVersion.v12
    private(set) var now: Int64 = 0
    /// When the client last wrote anything.
    var lastWrite: Int64 = 0
    private var fromClient = STOMPDecoder(version: .v12, limits: Self.limits)
    private var fromServer = STOMPDecoder(version: .v12, limits: Self.limits)
    /// The client's bytes that are in no frame yet.
    private var raw: [UInt8] = []
    private var name = ""
    private var heartBeat = STOMPHeartBeat.none
    /// Nanoseconds in which the client has promised to write.
    private var interval: Int64 = 0
    /// The frame that is judged.
    private var current: STOMPFrame?

    var subscriptions: [ByteKey: Subscription] = [:]
    var messages = DeliveredMessages()
    /// Transactions that are open, and all that were begun.
    var transactions: Set<ByteKey> = []
    var begun: Set<ByteKey> = []
    private var receipts: Set<ByteKey> = []

    struct Subscription: Sendable {
        let destination: String
        let mode: STOMPAckMode
    }

    private static var limits: STOMPLimits {
        var limits = STOMPLimits()
        limits.maximumBodyBytes = .max
        limits.maximumHeaders = .max
        limits.maximumLineBytes = .max
        return limits
    }

    init(number: Int, options: JudgeOptions) {
        self.number = number
        self.options = options
    }

    mutating func broke(_ clause: Clause, _ reason: String) {
        guard !clause.isPromise || options.judgesPromises else { return }
        let frame = current.map { "\($0.commandName) \($0.headers)" } ?? "No frame."
        found.append(
            Violation(
                clause: clause, client: name, connection: number, time: now, packet: OneLine.text(frame), reason: reason
            ))
    }

    // MARK: The client

    mutating func clientWrote(_ bytes: RawSpan, at now: Int64) {
        self.now = now
        guard phase != .unjudged else { return }
        checkHeartBeat(at: now)
        fromClient.push(bytes)
        bytes.append(to: &raw)
        while phase != .unjudged {
            do throws(STOMPProtocolError) {
                let next = try fromClient.next()
                let written = Array(raw.dropLast(fromClient.bufferedBytes))
                raw.removeFirst(written.count)
                guard let next else { return }
                current = next
                checkEscapes(of: next, written)
                judge(next)
                current = nil
            } catch {
                broke(.malformedFrame, "\(error)")
                phase = .unjudged
            }
        }
    }

    private mutating func checkHeartBeat(at now: Int64) {
        defer { lastWrite = now }
        guard options.judgesTime, phase == .connected, interval > 0 else { return }
        let silence = now - lastWrite
        // The specification wants receivers to allow for delays of the network.
        guard silence > interval.advanced(byNanoseconds: interval / 2) else { return }
        broke(
            .heartBeat,
            "The client wrote nothing for \(OneLine.duration(.nanoseconds(silence))), and has promised to write every "
                + "\(OneLine.duration(.nanoseconds(interval))).")
    }

    /// From 1.1 on a colon in a header is escaped, except in the handshake.
    private mutating func checkEscapes(of frame: STOMPFrame, _ written: [UInt8]) {
        guard phase == .connected, version != .v10, !frame.command.isHandshake else { return }
        let lines = written.drop { $0 == 0x0A || $0 == 0x0D }
            .split(separator: 0x0A, maxSplits: frame.headers.count + 1, omittingEmptySubsequences: false)
        for line in lines.dropFirst().prefix(frame.headers.count) where line.count(where: { $0 == 0x3A }) > 1 {
            broke(.headerNotEscaped, "A header holds a colon that is not escaped.")
        }
    }

    private mutating func judge(_ frame: STOMPFrame) {
        if phase == .left { return broke(.frameAfterDisconnect, "It follows DISCONNECT.") }
        if frame.command == .connect || frame.command == .stomp { return judge(connect: frame) }
        guard phase != .opened else {
            broke(.connectFrameFirst, "CONNECT has not come.")
            phase = .unjudged
            return
        }
        if phase == .connecting { broke(.frameBeforeConnected, "CONNECT has no answer.") }
        if let receipt = frame.headers["receipt"], !receipts.insert(ByteKey(receipt)).inserted {
            broke(.receiptReused, "An earlier frame of this connection has the same receipt.")
        }
        switch frame.command {
        case .send:
            if frame.headers["destination"] == nil { broke(.destinationMissing, "The header destination is missing.") }
            checkTransaction(of: frame)
        case .subscribe: judge(subscribe: frame)
        case .unsubscribe: judge(unsubscribe: frame)
        case .ack, .nack: judge(answer: frame)
        case .begin, .commit, .abort: judge(transaction: frame)
        case .disconnect: phase = .left
        case .connect, .stomp: break
        case .connected, .message, .receipt, .error, .unknown:
            broke(.frameOfServer, "It is not a frame of clients.")
        }
    }

    private mutating func judge(connect frame: STOMPFrame) {
        guard phase == .opened else { return broke(.connectFrameOnce, "The connection has had a CONNECT.") }
        phase = .connecting
        name = frame.headers["client-id"] ?? ""
        heartBeat = frame.headers["heart-beat"].flatMap { STOMPHeartBeat($0) } ?? .none
        if frame.headers["receipt"] != nil { broke(.receiptOnConnect, "It has a receipt.") }
        // Without accept-version it is a CONNECT of 1.0, which STOMP cannot be.
        let isNewer = frame.headers["accept-version"].map { STOMPVersion.list($0).contains { $0 != .v10 } }
        if isNewer ?? (frame.command == .stomp), frame.headers["host"] == nil || isNewer == nil {
            broke(.connectHeaderMissing, "From 1.1 on accept-version and host are required.")
        }
    }

    // MARK: The server

    mutating func serverWrote(_ bytes: RawSpan, at now: Int64) {
        self.now = now
        guard phase != .unjudged else { return }
        fromServer.push(bytes)
        do throws(STOMPProtocolError) {
            while let frame = try fromServer.next() { serverWrote(frame) }
        } catch {
            phase = .unjudged
        }
    }

    private mutating func serverWrote(_ frame: STOMPFrame) {
        switch frame.command {
        case .connected where phase == .connecting:
            phase = .connected
            version = frame.headers["version"].flatMap { STOMPVersion($0) } ?? .v10
            (fromClient.version, fromServer.version) = (version, version)
            let answer = frame.headers["heart-beat"].flatMap { STOMPHeartBeat($0) } ?? .none
            // Nothing if one side does not send or does not want them, otherwise the longer of both times.
            let (promised, wanted) = (heartBeat.outgoing, answer.incoming)
            interval = promised == 0 || wanted == 0 ? 0 : Int64(max(promised, wanted)) * 1_000_000
            lastWrite = now
        case .message: delivered(frame)
        // The client may not have received it when it writes its next frames.
        case .error: phase = .unjudged
        default: break
        }
    }
}
