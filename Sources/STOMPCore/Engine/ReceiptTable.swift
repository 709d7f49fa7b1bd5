import MessagingWire

/// The receipts awaited on one connection: thousands at once, each found in constant time by its number, in the order
/// of sending, with one time-out for all, so that the oldest is always the next to expire.
///
/// Numbers rise over the life of the engine, so that a RECEIPT of an earlier connection never fits.
struct ReceiptTable {
    struct Slot {
        var token: UInt64
        var deadline: Int64
        /// For how long we had read when the frame was written, if its receipt counts also when it is read too late;
        /// otherwise negative.
        var readBefore: Int64
        var isPending: Bool
    }

    /// A receipt whose time is over, and that may have come without being read.
    struct Unread {
        var number: UInt64
        var token: UInt64
        var readBefore: Int64
    }

    /// A ring; its size is a power of two.
    private(set) var ring: [Slot] = []
    private(set) var head = 0
    private var used = 0
    /// The number of the slot at `head`.
    private var first: UInt64 = 1
    /// The numbers of receipts whose ids the user of SUBSCRIBE has chosen, by the bytes of these ids, until they arrive.
    private(set) var named: [[UInt8]: UInt64] = [:]

    /// In the order of their numbers.
    private(set) var unread: [Unread] = []

    /// Receipts awaited now.
    private(set) var pending = 0

    /// Slots from the oldest awaited receipt to the newest, the answered ones between them included.
    var span: Int { used }

    /// When the oldest expires.
    var nextDeadline: Int64 { pending == 0 ? .max : ring[head].deadline }

    /// The `receipt` header of a number.
    func id(of number: UInt64) -> String { name(of: number).map { String(decoding: $0, as: UTF8.self) } ?? "\(number)" }

    /// The number that the next receipt gets.
    var nextNumber: UInt64 { first &+ UInt64(used) }

    mutating func add(token: UInt64, deadline: Int64, name: [UInt8]? = nil, readBefore: Int64 = -1) {
        if used == ring.count { grow() }
        let number = nextNumber
        ring[(head &+ used) & (ring.count &- 1)] = Slot(
            token: token, deadline: deadline, readBefore: readBefore, isPending: true)
        used &+= 1
        pending &+= 1
        if let name { named[name] = number }
    }

    /// Whether a frame awaits the receipt with this id of the user's own; also when its caller has timed out, if it may have
    /// arrived without being read.
    func isAwaited(named name: [UInt8]) -> Bool { named[name].map { isPending($0) || isUnread($0) } ?? false }

    private func name(of number: UInt64) -> [UInt8]? {
        named.isEmpty ? nil : named.first { $0.value == number }?.key
    }

    private func isPending(_ number: UInt64) -> Bool {
        number >= first && number &- first < UInt64(used) && ring[index(of: number)].isPending
    }

    private func index(of number: UInt64) -> Int { (head &+ Int(number &- first)) & (ring.count &- 1) }

    /// The number that a `receipt-id` of these bytes stands for: one of the user's own ids, or a decimal number.
    func number(for id: RawSpan, _ start: Int, _ end: Int) -> UInt64? {
        if !named.isEmpty, let number = named[id.bytes(in: start..<end)] { return number }
        guard end > start, end &- start <= 19 else { return nil }
        var value: UInt64 = 0
        for offset in start..<end {
            let digit = id.byte(at: offset) &- UInt8(ascii: "0")
            guard digit <= 9 else { return nil }
            value = value &* 10 &+ UInt64(digit)
        }
        return value
    }

    /// Ends the wait for that number, and forgets its name; nil if the number is not awaited.
    mutating func take(_ number: UInt64) -> UInt64? {
        if let name = name(of: number) { named[name] = nil }
        return endWait(for: number) ?? unreadIndex(of: number).map { unread.remove(at: $0).token }
    }

    /// Whether its receipt was not read in time and is reported nevertheless.
    func isUnread(_ number: UInt64) -> Bool { unreadIndex(of: number) != nil }

    private func unreadIndex(of number: UInt64) -> Int? {
        if unread.isEmpty { return nil }
        var (low, high) = (0, unread.count)
        while low < high {
            let middle = (low + high) / 2
            if unread[middle].number < number { low = middle + 1 } else { high = middle }
        }
        return low < unread.count && unread[low].number == number ? low : nil
    }

    /// For how long we had read when the oldest frame was written whose receipt may have come without being read; nil for none.
    var oldestUnread: Int64? { unread.first?.readBefore }

    /// Takes out those, from the oldest on, whose frames were written when we had read for at most so long: they have not come.
    mutating func takeUnread(writtenBy readBefore: Int64) -> [Unread] {
        let late = Array(unread.prefix { $0.readBefore <= readBefore })
        unread.removeFirst(late.count)
        return late
    }

    /// Waits for the oldest of them for so many nanoseconds of reading more. Later waits may end too late by as much.
    mutating func postponeOldestUnread(by time: Int64) {
        if !unread.isEmpty { unread[0].readBefore += time }
    }

    /// The connection ended: its receipts cannot arrive any more.
    mutating func forgetExpired() { (named, unread) = ([:], []) }

    private mutating func endWait(for number: UInt64) -> UInt64? {
        guard isPending(number) else { return nil }
        let index = index(of: number)
        ring[index].isPending = false
        pending &-= 1
        let token = ring[index].token
        while used > 0, !ring[head].isPending {
            head = (head &+ 1) & (ring.count &- 1)
            first &+= 1
            used &-= 1
        }
        return token
    }

    /// The number of the oldest awaited receipt.
    var oldest: UInt64? { pending == 0 ? nil : first }

    /// Ends the oldest wait; nil if no receipt is awaited.
    mutating func takeOldest() -> UInt64? { pending == 0 ? nil : take(first) }

    /// Ends the oldest wait because its time is over; nil if no receipt is awaited.
    ///
    /// - Parameter timeRead: for how long we have read on this connection. If that is less than `timeout` since the frame was
    ///   written, its receipt may have come without being read.
    mutating func expireOldest(timeRead: Int64, timeout: Int64) -> UInt64? {
        guard pending > 0 else { return nil }
        let slot = ring[head]
        if slot.readBefore >= 0, timeRead - slot.readBefore < timeout {
            unread.append(Unread(number: first, token: slot.token, readBefore: slot.readBefore))
        }
        return endWait(for: first)
    }

    /// Gives the oldest wait until `deadline`. Later waits may end too late by as much.
    mutating func postponeOldest(until deadline: Int64) {
        if pending > 0 { ring[head].deadline = deadline }
    }

    /// Gives all waits until `deadline` at least.
    mutating func postpone(until deadline: Int64) {
        for offset in 0..<used {
            let place = (head + offset) & (ring.count - 1)
            ring[place].deadline = max(ring[place].deadline, deadline)
        }
    }

    private mutating func grow() {
        var larger: [Slot] = []
        larger.reserveCapacity(max(16, ring.count * 2))
        for offset in 0..<used { larger.append(ring[(head + offset) & (ring.count - 1)]) }
        let free = Slot(token: 0, deadline: .max, readBefore: -1, isPending: false)
        while larger.count < max(16, ring.count * 2) { larger.append(free) }
        ring = larger
        head = 0
    }
}
