import MQTTCore
import MessagingWire
import Transport

/// One connection of a simulation: two directions that may take time, take a part of what is written, and be cut.
package final class SimulatedLink: @unchecked Sendable {
    // Sendable because everything is touched on the loop's thread only: a simulation has no other.

    /// Counts the connections of the simulation.
    package let number: Int
    let client: SimulatedStream
    let server: SimulatedStream
    private let up: SimulatedPipe
    private let down: SimulatedPipe
    private unowned let world: SimulatedWorld

    init(number: Int, world: SimulatedWorld, loop: EventLoop) {
        self.number = number
        self.world = world
        up = SimulatedPipe(link: number, isUp: true, world: world, loop: loop)
        down = SimulatedPipe(link: number, isUp: false, world: world, loop: loop)
        client = SimulatedStream(incoming: down, outgoing: up)
        server = SimulatedStream(incoming: up, outgoing: down)
        up.closing = { [weak self] in self?.clientCloses() }
        let cut: () -> Void = { [weak self] in self?.cut() }
        up.cut = cut
        down.cut = cut
        let ended: () -> Void = { [weak self] in self?.endIfClosed() }
        up.ended = ended
        down.ended = ended
        client.closed = { [weak world] in world?.clientClosed() }
        client.resumed = { [weak self] in self?.clientResumes() }
    }

    /// Cuts the connection at a later packet of a direction.
    ///
    /// - Parameter count: packets of this direction that begin before.
    package func cut(_ place: SimulatedCut, isUp: Bool, after count: Int) {
        (isUp ? up : down).schedule((place, count))
    }

    /// Cuts that have found no packet so far do not happen any more.
    package func cutNoMore() {
        up.schedule(nil)
        down.schedule(nil)
    }

    /// A direction, or both, carry nothing any more: the connection stays open, and what is written vanishes.
    ///
    /// - Parameter isUp: the direction to the server; nil for both.
    package func die(isUp: Bool?) {
        world.record(.note("#\(number) dies\(isUp.map { $0 ? " to the server" : " to the client" } ?? "")"))
        if isUp != false { up.die() }
        guard isUp != true else { return }
        down.die()
        guard diedAt == nil else { return }
        diedAt = world.now
        up.noteProgress(until: world.now.advanced(byNanoseconds: Self.keepAlive))
    }

    /// When the client's direction of reading died.
    private var diedAt: Int64?

    /// Nanoseconds for which the client has kept the connection although nothing could arrive, since it last began to read: a
    /// client that has paused reading cannot notice.
    var deathTime: Int64 { diedAt.map { max(0, world.now - max($0, client.readsSince)) } ?? 0 }

    /// Nanoseconds for which the client has kept such a connection beyond what MQTT's default keep alive documents.
    ///
    /// PINGREQ leaves after a minute of reading without a packet from the server, and its answer may take ten seconds; from
    /// then on as long as the server takes bytes that were written before PINGREQ, which the client looks at every ten
    /// seconds. After a sleep of the system everything begins anew, and a long one ends with PINGREQ; the first look finds what
    /// the server took before.
    var overdueTime: Int64 {
        guard let diedAt else { return 0 }
        let untilPing = world.sleptLong ? Self.pingTimeout : Self.keepAlive
        let due = max(
            max(diedAt, client.readsSince).advanced(byNanoseconds: Self.keepAlive + Self.pingTimeout),
            world.wokeAt.advanced(byNanoseconds: untilPing + Self.pingTimeout),
            up.lastProgress.advanced(byNanoseconds: 2 * Self.pingTimeout))
        return max(0, world.now - due)
    }

    private static let keepAlive: Int64 = 60_000_000_000
    private static let pingTimeout: Int64 = 10_000_000_000

    /// Cuts the connection now. The bytes on their way are lost from some byte on.
    package func cut() {
        world.record(.note("#\(number) cut"))
        world.forget(self)
        up.reset()
        down.reset()
    }

    private func clientCloses() {
        guard diedAt != nil else { return }
        world.clientLeft(after: deathTime, overdue: overdueTime)
        diedAt = nil
    }

    /// The client reads again, and waits for signs of life from now on.
    private func clientResumes() {
        guard diedAt != nil else { return }
        up.noteProgress(until: world.now.advanced(byNanoseconds: Self.keepAlive))
    }

    private func endIfClosed() {
        if up.isClosed && down.isClosed { world.forget(self) }
    }
}

/// A packet of MQTT by its type, or a frame of STOMP by its first letter, in one direction.
struct PacketKind: Hashable, Comparable, CustomStringConvertible {
    private let isUp: Bool
    private let isText: Bool
    /// Without the flags of a packet of MQTT.
    private let byte: UInt8

    init(_ byte: UInt8, isUp: Bool, isText: Bool) {
        (self.isUp, self.isText) = (isUp, isText)
        self.byte = isText ? byte : byte & 0xF0
    }

    private var place: (Int, Int, UInt8) { (isUp ? 1 : 0, isText ? 1 : 0, byte) }
    static func < (left: PacketKind, right: PacketKind) -> Bool { left.place < right.place }

    var description: String {
        let type = MQTTPacketType(rawValue: byte >> 4).map { "\($0)" } ?? "packet"
        return "a \(isText ? "frame with \(UnicodeScalar(byte))" : type) \(isUp ? "to" : "from") the broker"
    }
}

/// Where a connection is cut.
package enum SimulatedCut: Sendable, CaseIterable {
    case before, within, after
}

/// One direction of a connection.
final class SimulatedPipe: @unchecked Sendable {
    // Sendable as the link is.
    private let link: Int
    private let isUp: Bool
    private unowned let world: SimulatedWorld
    let loop: EventLoop
    private var transit = Ring<(due: Int64, bytes: [UInt8])>()
    private var transitCount = 0
    private var arrived: [UInt8] = []
    private var head = 0
    private(set) var written = 0
    /// When the other end last took bytes that were written before some moment, and the position of the last of them.
    private(set) var lastProgress: Int64 = 0
    private var progressEnd: Int64 = 0
    private var progressPosition = 0
    private var writerIsClosed = false
    private var readerIsClosed = false
    private var isCut = false
    /// Written bytes vanish, and so does the end of the stream.
    private var isDead = false
    /// Bytes that have vanished: for their sender they are on their way for ever.
    private var vanished = 0
    /// When the bytes that were written have been sent, at the rate of the network.
    private var sentAt: Int64 = 0
    private var walk = PacketWalk()
    private var planned: (place: SimulatedCut, count: Int)?
    private var alarm: LoopAlarm?
    var reader: StreamNotifier?
    var writer: StreamNotifier?
    var cut: () -> Void = {}
    var ended: () -> Void = {}
    /// The writer ends the direction, or the connection is cut.
    var closing: () -> Void = {}

    private static let segment = 256

    init(link: Int, isUp: Bool, world: SimulatedWorld, loop: EventLoop) {
        self.link = link
        self.isUp = isUp
        self.world = world
        self.loop = loop
    }

    private var arrivedCount: Int { arrived.count - head }
    private var room: Int { max(0, world.capacity - arrivedCount - transitCount - vanished) }
    var delivered: Int { written - transitCount - arrivedCount - vanished }
    var isClosed: Bool { writerIsClosed || isCut }
    /// Whether the reader can know that nothing follows what has arrived.
    private var showsEnd: Bool { writerIsClosed && !isDead }
    /// Whether the writer can know that the other end does not read.
    private var isRefused: Bool { readerIsClosed && !isDead }
    var canBeRead: Bool { arrivedCount > 0 || (transit.isEmpty && (isCut || showsEnd)) }
    var canBeWritten: Bool { isCut || isRefused || room > 0 }
    /// Whether the system of the reader reports the end, be it asked or not.
    var hangsUp: Bool { isCut && transit.isEmpty }

    private func notifyBoth() {
        reader?.notify()
        writer?.notify()
    }

    func schedule(_ cut: (place: SimulatedCut, count: Int)?) { planned = cut }

    // Safe: callers pass buffers that live for the call, as streams do.
    func write(_ buffer: UnsafeRawBufferPointer) -> IOResult {
        if isCut || isRefused || writerIsClosed { return .failed(EPIPE) }
        var count = world.piece(of: min(buffer.count, room))
        guard count > 0 else { return .wouldBlock }
        var isCutNow = false
        var kinds: [PacketKind] = []
        for index in 0..<count {
            let begins = unsafe walk.step(buffer[index])
            if begins { unsafe kinds.append(PacketKind(buffer[index], isUp: isUp, isText: walk.isText == true)) }
            guard let (place, left) = planned else { continue }
            if begins {
                planned = (place, left - 1)
                if left == 0, place == .before { (count, isCutNow) = (index, true) }
            }
            guard left - (begins ? 1 : 0) < 0 else { continue }
            if place == .within, !begins, walk.isBetweenPackets || world.below(4) == 0 {
                (count, isCutNow) = (index, true)
            }
            if place == .after, walk.isBetweenPackets { (count, isCutNow) = (index + 1, true) }
            if isCutNow { break }
        }
        if count > 0 {
            let bytes = unsafe Array(buffer[..<count])
            world.record(.wrote(link: link, isUp: isUp, bytes: bytes))
            written += count
            if loop.now <= progressEnd { progressPosition = written }
            send(bytes)
        }
        for kind in kinds { world.packetBegins(kind, on: loop) }
        if isCutNow { cut() }
        return count > 0 ? .bytes(count) : .failed(EPIPE)
    }

    /// From now on notes when the other end takes bytes that are written until then.
    func noteProgress(until end: Int64) { (progressEnd, progressPosition) = (end, written) }

    func die() {
        isDead = true
        vanished += transitCount
        transit = Ring()
        transitCount = 0
    }

    private func send(_ bytes: [UInt8]) {
        guard !isDead else {
            vanished += bytes.count
            return
        }
        var due = transit.isEmpty ? 0 : transit[transit.count - 1].due
        // A slow link carries segments, so that its ends see progress.
        let size = world.timeToSend(1) == 0 ? bytes.count : Self.segment
        for start in stride(from: 0, to: bytes.count, by: size) {
            let segment = bytes[start..<min(start + size, bytes.count)]
            sentAt = max(sentAt, loop.now).advanced(byNanoseconds: world.timeToSend(segment.count))
            due = max(due, sentAt.advanced(byNanoseconds: world.latency()))
            transit.append((due, Array(segment)))
        }
        transitCount += bytes.count
        deliver(at: loop.now)
    }

    private func deliver(at now: Int64) {
        while let (due, bytes) = transit.first {
            guard due <= now else {
                setAlarm(due)
                break
            }
            _ = transit.popFirst()
            transitCount -= bytes.count
            guard !readerIsClosed else { continue }
            arrived += bytes
            world.record(.arrived(link: link, isUp: isUp, bytes: bytes))
        }
        notifyBoth()
    }

    private func setAlarm(_ due: Int64) {
        let alarm =
            alarm
            ?? LoopAlarm(loop: loop) { [weak self, weak world] now in
                world?.deliveryIsDue()
                self?.deliver(at: now)
            }
        self.alarm = alarm
        if alarm.deadline == .max { world.deliveryWillBeDue() }
        alarm.set(due)
    }

    // Safe, as above.
    func read(_ buffer: UnsafeMutableRawBufferPointer) -> IOResult {
        let count = world.piece(of: min(buffer.count, arrivedCount))
        guard count > 0 else {
            guard transit.isEmpty else { return .wouldBlock }
            return isCut ? .failed(ECONNRESET) : showsEnd ? .endOfStream : .wouldBlock
        }
        unsafe arrived.withUnsafeBytes { bytes in
            unsafe buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: bytes[head..<(head + count)]))
        }
        if delivered < progressPosition { lastProgress = loop.now }
        head += count
        if head == arrived.count {
            arrived.removeAll(keepingCapacity: true)
            head = 0
        }
        notifyBoth()
        return .bytes(count)
    }

    func reset() {
        guard !isCut else { return }
        isCut = true
        closing()
        // Half of the time everything still arrives, otherwise a part.
        if transitCount > 0, world.below(2) == 0 {
            var left = world.below(transitCount)
            var rest = Ring<(due: Int64, bytes: [UInt8])>()
            while let (due, bytes) = transit.popFirst(), left > 0 {
                rest.append((due, Array(bytes.prefix(left))))
                left -= min(left, bytes.count)
            }
            transit = rest
            transitCount = 0
            for index in 0..<rest.count { transitCount += rest[index].bytes.count }
        }
        notifyBoth()
    }

    func endWriting() {
        writerIsClosed = true
        closing()
        ended()
        notifyBoth()
    }

    func endReading() {
        readerIsClosed = true
        notifyBoth()
    }
}

/// One end of a connection of a simulation.
final class SimulatedStream: NotifyingStream, @unchecked Sendable {
    // Sendable as the link is.
    private let incoming: SimulatedPipe
    private let outgoing: SimulatedPipe
    private var notifier: StreamNotifier?
    /// Called once.
    var closed: (() -> Void)?
    /// Called when reading begins again after a pause.
    var resumed: (() -> Void)?
    /// When reading began, or began again after a pause; the largest number during one.
    private(set) var readsSince: Int64 = 0

    init(incoming: SimulatedPipe, outgoing: SimulatedPipe) {
        self.incoming = incoming
        self.outgoing = outgoing
    }

    var peerName: String { "the other end of a simulated connection" }
    var callersMaySend: Bool { false }

    var progress: StreamProgress { StreamProgress(written: outgoing.written, acknowledged: outgoing.delivered) }

    func attach(_ handler: LoopHandler, interest: Readiness) {
        self.notifier?.handler = nil
        let notifier = StreamNotifier(handler: handler, stream: self, interest: interest)
        self.notifier = notifier
        incoming.reader = notifier
        outgoing.writer = notifier
        noteReading(interest)
        notifier.notify()
    }

    func setInterest(_ interest: Readiness) {
        noteReading(interest)
        notifier?.interest = interest
        notifier?.notify()
    }

    private func noteReading(_ interest: Readiness) {
        let reads = interest.contains(.read)
        guard reads == (readsSince == .max) else { return }
        readsSince = reads ? incoming.loop.now : .max
        if reads { resumed?() }
    }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> IOResult { unsafe incoming.read(buffer) }

    func write(from buffer: UnsafeRawBufferPointer) -> IOResult { unsafe outgoing.write(buffer) }

    func endWriting() { outgoing.endWriting() }

    func detach() {
        notifier?.handler = nil
        notifier = nil
        incoming.reader = nil
        outgoing.writer = nil
    }

    func close() {
        detach()
        outgoing.endWriting()
        incoming.endReading()
        closed?()
        closed = nil
    }

    var readiness: Readiness {
        var readiness: Readiness = []
        if incoming.canBeRead { readiness.insert(.read) }
        if incoming.hangsUp { readiness.insert(.hangUp) }
        if outgoing.canBeWritten { readiness.insert(.write) }
        return readiness
    }
}

/// Finds where packets of MQTT and frames of STOMP begin and end, as far as cutting between them needs it.
struct PacketWalk {
    private enum Place {
        case between
        case length(shift: Int)
        case rest(Int)
        case text
    }

    private var place = Place.between
    private var length = 0
    /// Known from the first byte: all packets of MQTT begin with a number below that of capital letters or above, but
    /// frames of STOMP with a capital letter or, between them, an end of line.
    private(set) var isText: Bool?

    var isBetweenPackets: Bool { if case .between = place { true } else { false } }

    /// Takes the next byte; returns whether a packet begins with it.
    mutating func step(_ byte: UInt8) -> Bool {
        switch place {
        case .between:
            // CONNECT of MQTT is 0x10, its response 0x20.
            let isText = self.isText ?? (byte >= 0x41 && byte <= 0x5A || byte == 0x0A)
            self.isText = isText
            if isText {
                if byte != 0x0A && byte != 0x0D { place = .text }
            } else {
                length = 0
                place = .length(shift: 0)
            }
            return !isText || !isBetweenPackets
        case .text:
            if byte == 0 { place = .between }
        case .length(let shift):
            length |= Int(byte & 0x7F) << shift
            if byte & 0x80 != 0, shift < 21 {
                place = .length(shift: shift + 7)
            } else {
                place = length == 0 ? .between : .rest(length)
            }
        case .rest(let left):
            place = left == 1 ? .between : .rest(left - 1)
        }
        return false
    }
}
