import MQTTCore
import MessagingWire

/// One connection, as a judge sees it: how far it is, what the server allows, and what is unanswered on it.
struct MQTTJudgedConnection: Sendable {
    enum Phase: Sendable {
        /// CONNECT has not come.
        case opened
        /// CONNECT has no answer.
        case connecting
        case connected
        /// The client has taken its leave.
        case left
        /// Refused, ended by the server, taken over or unreadable.
        case unjudged
    }

    /// A request that has no answer.
    enum Request: Sendable {
        case subscribe(MQTTPacket.Subscribe)
        case unsubscribe(MQTTPacket.Unsubscribe)
    }

    let number: Int
    let options: JudgeOptions
    var phase = Phase.opened
    var connect: MQTTPacket.Connect?
    var found = ViolationList()
    private var fromClient = MQTTDecoder(version: .v3_1_1, maximumPacketSize: MQTTPacket.largestSize, from: .client)
    private var fromServer = MQTTDecoder(version: .v3_1_1, maximumPacketSize: MQTTPacket.largestSize, from: .server)

    private var key: ByteKey?
    var session = MQTTJudgedSession()

    // What CONNACK allows.
    var allowed = MQTTProperties()
    /// The client sends without waiting for CONNACK, and cannot know what it allows.
    private var sendsEarly = false
    private(set) var sessionPresent = false
    /// Nanoseconds.
    private var keepAlive: Int64 = 0
    /// When the client last wrote anything.
    var lastWrite: Int64 = 0
    /// The packet that is judged.
    private(set) var current: MQTTPacket?
    private(set) var now: Int64 = 0

    // What is unanswered on this connection.
    var aliases: [UInt16: String] = [:]
    /// Messages of the client that count against Receive Maximum.
    var inFlight: Set<UInt16> = []
    /// Messages of earlier connections whose PUBREL was repeated here.
    var releasedAgain: Set<UInt16> = []
    var requests: [UInt16: Request] = [:]
    /// Messages of the server in their order, by QoS.
    var awaitingPuback: [UInt16] = []
    var awaitingPubrec: [UInt16] = []
    /// PUBREL of the server.
    var awaitingPubcomp: [UInt16] = []
    /// PUBREC of the server.
    var awaitingPubrel: [UInt16] = []
    /// What has to be repeated on this connection, and was not yet.
    var unfinished: Set<UInt16> = []
    /// How far repetitions have come.
    var lastRepeated = 0
    var lastRepeatedRelease = 0
    /// Whether the client has sent anything but repetitions and SUBSCRIBE.
    var hasBegun = false
    /// Whether it began with a SUBSCRIBE of what the server's session holds.
    var asksNeedlessly = false
    /// The AUTH of the client has no answer, or the server waits for one.
    var authentication = Authentication.none

    enum Authentication: Sendable {
        case none, clientsTurn, serversTurn
    }

    /// Nanoseconds by which a packet of a network that becomes slower may come late.
    private static let patience: Int64 = 10_000_000_000

    init(number: Int, options: JudgeOptions) {
        self.number = number
        self.options = options
    }

    var version: MQTTVersion { connect?.version ?? .v3_1_1 }

    // MARK: Violations

    mutating func broke(_ clause: Clause, _ reason: String) {
        guard !clause.isPromise || options.judgesPromises else { return }
        let packet = current.map(MQTTPacketLine.text) ?? "No packet."
        found.append(
            Violation(
                clause: clause, client: key?.description ?? connect?.clientID ?? "", connection: number, time: now,
                packet: packet, reason: reason))
    }

    // MARK: The client

    mutating func clientWrote(_ bytes: RawSpan, at now: Int64) {
        self.now = now
        guard phase != .unjudged else { return }
        checkKeepAlive(at: now)
        fromClient.push(bytes)
        while phase != .unjudged {
            let before = fromClient.bufferedCount
            do throws(MQTTProtocolError) {
                guard let packet = try fromClient.next() else { return }
                current = packet
                judge(packet, size: before - fromClient.bufferedCount)
                current = nil
            } catch {
                broke(.malformedPacket, "\(error.message) [\(error.clause)]")
                phase = .unjudged
            }
        }
    }

    private mutating func checkKeepAlive(at now: Int64) {
        defer { lastWrite = now }
        guard options.judgesTime, phase == .connected, keepAlive > 0 else { return }
        let silence = now - lastWrite
        guard silence > keepAlive.advanced(byNanoseconds: Self.patience) else { return }
        broke(
            .keepAlive,
            "The client wrote nothing for \(OneLine.duration(.nanoseconds(silence))), and keep alive is \(OneLine.duration(.nanoseconds(keepAlive)))."
        )
    }

    private mutating func judge(_ packet: MQTTPacket, size: Int) {
        if phase == .left { return broke(.packetAfterDisconnect, "It follows DISCONNECT.") }
        if case .connect(let connect) = packet { return judge(connect) }
        guard phase != .opened else {
            broke(.connectFirst, "CONNECT has not come.")
            phase = .unjudged
            return
        }
        if phase == .connecting { beforeConnack(packet) }
        if phase == .connected { session.connackArrived = true }
        checkAllowed(size: size)
        switch packet {
        case .publish(let publish): judge(publish)
        case .puback(let answer): judgePuback(answer)
        case .pubrec(let answer): judgePubrec(answer)
        case .pubrel(let answer): judgePubrel(answer)
        case .pubcomp(let answer): judgePubcomp(answer)
        case .subscribe(let subscribe): judge(subscribe)
        case .unsubscribe(let unsubscribe): judge(unsubscribe)
        case .disconnect(let disconnect): judge(disconnect)
        case .auth(let auth): judge(auth)
        case .pingreq: break
        case .connect, .connack, .suback, .unsuback, .pingresp:
            broke(.packetFromServer, "Only servers send it.")
        }
    }

    private mutating func judge(_ connect: MQTTPacket.Connect) {
        guard phase == .opened else { return broke(.connectOnce, "The connection has had a CONNECT.") }
        phase = .connecting
        self.connect = connect
        fromServer = MQTTDecoder(version: connect.version, maximumPacketSize: MQTTPacket.largestSize, from: .server)
        if connect.properties.authenticationMethod != nil { authentication = .serversTurn }
    }

    private mutating func beforeConnack(_ packet: MQTTPacket) {
        switch packet {
        case .auth, .disconnect: return
        default: break
        }
        sendsEarly = true
        if connect?.properties.authenticationMethod != nil {
            broke(.packetBeforeConnack, "CONNECT has an authentication method, and has no CONNACK yet.")
        }
    }

    private mutating func checkAllowed(size: Int) {
        guard phase == .connected, !sendsEarly else { return }
        if connect?.cleanStart == true, sessionPresent {
            if case .disconnect? = current { return }
            broke(.sessionPresentAfterCleanStart, "The server has a session although CONNECT asked for a new one.")
        }
        if let maximum = allowed.maximumPacketSize, size > Int(maximum) {
            broke(.maximumPacketSize, "It has \(size) bytes, and the server accepts \(maximum).")
        }
    }

    /// Whether the client knows what the server allows.
    var knowsAllowed: Bool { phase == .connected && !sendsEarly }

    private mutating func judge(_ disconnect: MQTTPacket.Disconnect) {
        phase = .left
        session.forgetProcess()
        let expiry = disconnect.properties.sessionExpiryInterval ?? 0
        if expiry != 0, (connect?.properties.sessionExpiryInterval ?? 0) == 0 {
            broke(.expiryInDisconnect, "CONNECT had no session expiry, and this one has \(expiry) s.")
        }
    }

    private mutating func judge(_ auth: MQTTPacket.Auth) {
        guard let method = connect?.properties.authenticationMethod else {
            return broke(.authenticationWithoutMethod, "CONNECT has no authentication method.")
        }
        if auth.properties.authenticationMethod.map({ ByteKey($0) }) != ByteKey(method) {
            broke(.authenticationMethodChanged, "The authentication method is not that of CONNECT.")
        }
        let isContinued = auth.reasonCode == .continueAuthentication
        if isContinued ? authentication != .clientsTurn : phase != .connected || authentication != .none {
            broke(.authenticationOutOfTurn, "The server has not asked for it, or a step before it has no answer.")
        }
        authentication = .serversTurn
    }

    // MARK: The server

    mutating func beginServerBytes(_ bytes: RawSpan) {
        if phase != .unjudged { fromServer.push(bytes) }
    }

    /// The next packet of the server; nil when more bytes are needed, and for bytes that are not packets.
    mutating func nextServerPacket() -> MQTTPacket? {
        guard phase != .unjudged else { return nil }
        do throws(MQTTProtocolError) {
            return try fromServer.next()
        } catch {
            phase = .unjudged
            return nil
        }
    }

    mutating func serverWrote(_ packet: MQTTPacket, at now: Int64) {
        self.now = now
        switch packet {
        case .connack(let connack):
            if connack.reasonCode != .success { phase = .unjudged }
            authentication = .none
        case .publish(let publish):
            if publish.qos == .atLeastOnce { awaitingPuback.append(publish.packetID) }
            if publish.qos == .exactlyOnce { awaitingPubrec.append(publish.packetID) }
        case .puback(let answer): answered(answer.packetID)
        case .pubrec(let answer): received(answer)
        case .pubrel(let answer): awaitingPubcomp.append(answer.packetID)
        case .pubcomp(let answer): answered(answer.packetID)
        case .suback(let suback): answered(suback)
        case .unsuback(let unsuback): answered(unsuback)
        case .auth(let auth): authentication = auth.reasonCode == .continueAuthentication ? .clientsTurn : .none
        // The client may not have received it when it writes its next packets.
        case .disconnect: phase = .unjudged
        default: break
        }
    }

    // MARK: The session

    mutating func begin(
        _ session: MQTTJudgedSession, _ key: ByteKey, _ connack: MQTTPacket.Connack, isPresent: Bool, at now: Int64
    ) {
        (self.session, self.key, self.now) = (session, key, now)
        phase = .connected
        allowed = connack.properties
        sessionPresent = isPresent
        keepAlive = Int64(allowed.serverKeepAlive ?? connect?.keepAlive ?? 0) * 1_000_000_000
        lastWrite = now
        abandonForbidden()
        let left = self.session.exchanges.filter { _, exchange in
            exchange.state != .answered && !exchange.mayBeAbandoned && !self.session.mayBePassed(exchange.message)
        }
        // What was written before CONNACK is no repetition of what it reports.
        unfinished = sendsEarly || connect?.version == .v3_1 ? [] : Set(left.keys)
        comparePromises()
        self.session.lastConnect = connect
        // What became of the CONNECT before may be unknown.
        if !session.connackArrived { self.session.doubtSubscriptions() }
        self.session.connackArrived = false
    }

    private mutating func comparePromises() {
        guard let last = session.lastConnect, let connect, last.version == connect.version else { return }
        current = .connect(connect)
        if last.will != connect.will {
            broke(.willChanged, "The will is not that of the CONNECT before, after which there was no DISCONNECT.")
        }
        let (before, expiry) = (last.properties.sessionExpiryInterval, connect.properties.sessionExpiryInterval)
        if before != expiry {
            broke(
                .sessionExpiryChanged,
                "The session expiry is \(expiry ?? 0) s, and was \(before ?? 0) s in the CONNECT before, after which there was no DISCONNECT."
            )
        }
        if let difference = Self.difference(last, connect) {
            broke(
                .connectChanged,
                "\(difference) in the CONNECT before, after which there was no DISCONNECT.")
        }
        current = nil
    }

    /// How two CONNECT differ in what an app does not choose for each connection: keep alive, and all properties without a rule
    /// of their own.
    private static func difference(_ last: MQTTPacket.Connect, _ connect: MQTTPacket.Connect) -> String? {
        if last.keepAlive != connect.keepAlive {
            return "Keep alive is \(connect.keepAlive) s, and was \(last.keepAlive) s"
        }
        func compared(_ packet: MQTTPacket.Connect) -> [MQTTProperty] {
            packet.properties.filter {
                ![.sessionExpiryInterval, .authenticationMethod, .authenticationData].contains($0.identifier)
            }
        }
        let (before, now) = (compared(last), compared(connect))
        if before == now { return nil }
        func text(_ properties: [MQTTProperty]) -> String {
            properties.isEmpty ? "none" : properties.map { MQTTPacketLine.name(of: $0) }.joined(separator: ", ")
        }
        return "The properties are \(text(now)), and were \(text(before))"
    }

    mutating func takeSession() -> (ByteKey, MQTTJudgedSession)? {
        guard let key else { return nil }
        defer { (self.key, session) = (nil, MQTTJudgedSession()) }
        session.mayHaveLost = true
        if asksNeedlessly || hasBegun { session.askedNeedlessly = asksNeedlessly }
        return (key, session)
    }
}
