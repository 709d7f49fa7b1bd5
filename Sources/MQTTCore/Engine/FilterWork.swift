import MessagingWire

/// What a connection has to do for the filters of a client: packets that may be due, and those that have no answer.
struct FilterWork: Sendable {
    /// Filters of which something has changed on this connection, so that a packet may be due. Some may be here twice.
    var changed: [ByteKey] = []
    /// The filters that have to be answered before the first PUBLISH of this connection.
    var first: Set<ByteKey> = []
    /// The SUBSCRIBE and UNSUBSCRIBE packets that have no answer, by their packet identifiers.
    private(set) var inFlight: [UInt16: MQTTFilterRequest] = [:]
    /// The packet identifiers of requests whose answers are late, and ignored when they come.
    private(set) var late: [UInt16: FilterRecord.Packet] = [:]
    /// The requests in the order in which they were written. Some have been answered since; not the first that counts.
    private var order: [(token: UInt64, id: UInt16)] = []
    /// The place of the first that counts.
    private var firstPlace = 0
    /// When PINGREQ was written that was answered last.
    var answeredUpTo = Int64.min

    var isEmpty: Bool { changed.isEmpty && first.isEmpty && inFlight.isEmpty && late.isEmpty }

    mutating func add(_ request: MQTTFilterRequest) {
        inFlight[request.packetID] = request
        order.append((request.token, request.packetID))
        guard order.count > 64 + 2 * inFlight.count else { return }
        order.removeAll { inFlight[$0.id]?.token != $0.token }
        firstPlace = 0
    }

    mutating func answered(_ id: UInt16) {
        inFlight[id] = nil
        while firstPlace < order.count, inFlight[order[firstPlace].id]?.token != order[firstPlace].token {
            firstPlace += 1
        }
    }

    mutating func late(_ request: MQTTFilterRequest) {
        answered(request.packetID)
        late[request.packetID] = request.packet
    }

    mutating func lateAnswered(_ id: UInt16, _ packet: FilterRecord.Packet) -> Bool {
        guard late[id] == packet else { return false }
        late[id] = nil
        return true
    }

    /// No request was written after `time`, which is the present.
    mutating func limitTimes(to time: Int64) {
        for id in inFlight.keys where inFlight[id]!.time > time { inFlight[id]!.time = time }
    }

    /// The request whose answer is awaited longest.
    var oldest: MQTTFilterRequest? { firstPlace < order.count ? inFlight[order[firstPlace].id] : nil }

    /// Stops the process where the requests contradict themselves; in debug builds only.
    func check() {
        assert(!isEmpty, "What has been done is remembered as work.")
        assert(oldest?.token == inFlight.values.map { $0.token }.min(), "Another request is older than is noted.")
    }
}
