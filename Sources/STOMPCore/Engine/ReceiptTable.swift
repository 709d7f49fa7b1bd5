import MessagingWire

/// The receipts awaited on one connection: thousands at once, each found in constant time by its number, in the order
/// of sending, with one time-out for all, so that the oldest is always the next to expire.
///
/// Numbers rise over the life of the engine, so that a RECEIPT of an earlier connection never fits.
struct ReceiptTable {
    struct Slot {
        var token: UInt64
        /// A time of the listening clock.
        var deadline: Int64
        var isPending: Bool
    }

    /// A ring; its size is a power of two.
    private(set) var ring: [Slot] = []
    private(set) var head = 0
    private var used = 0
    /// The number of the slot at `head`.
    private var first: UInt64 = 1
    /// The numbers of receipts whose ids the user of SUBSCRIBE has chosen, by the bytes of these ids, until they arrive.
    private(set) var named: [[UInt8]: UInt64] = [:]

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

    mutating func add(token: UInt64, deadline: Int64, name: [UInt8]? = nil) {
        if used == ring.count { grow() }
        let number = nextNumber
        ring[(head &+ used) & (ring.count &- 1)] = Slot(token: token, deadline: deadline, isPending: true)
        used &+= 1
        pending &+= 1
        if let name { named[name] = number }
    }

    /// Whether a frame awaits the receipt with this id of the user's own.
    func isAwaited(named name: [UInt8]) -> Bool { named[name].map(isPending) ?? false }

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
        return endWait(for: number)
    }

    /// The connection ended: its receipts cannot arrive any more.
    mutating func forgetNames() { named = [:] }

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

    /// Ends the oldest wait because its time is over, and keeps its name; nil if no receipt is awaited.
    mutating func expireOldest() -> UInt64? { pending == 0 ? nil : endWait(for: first) }

    /// Ends the waits with such tokens, and keeps the names. Returns their numbers and tokens, in the order of sending.
    mutating func expire(where isChosen: (UInt64) -> Bool) -> [(number: UInt64, token: UInt64)] {
        let numbers = (first..<nextNumber).filter { isPending($0) && isChosen(ring[index(of: $0)].token) }
        return numbers.compactMap { number in endWait(for: number).map { (number, $0) } }
    }

    /// No receipt is awaited for longer than until `deadline`, but for those without a time: frames that were written last may be.
    mutating func limitDeadlines(to deadline: Int64) {
        for offset in (0..<used).reversed() {
            let place = (head + offset) & (ring.count - 1)
            if ring[place].isPending, ring[place].deadline <= deadline { break }
            if ring[place].deadline != .max { ring[place].deadline = min(ring[place].deadline, deadline) }
        }
    }

    /// Gives the oldest wait until `deadline`. Later waits may end too late by as much.
    mutating func postponeOldest(until deadline: Int64) {
        if pending > 0 { ring[head].deadline = deadline }
    }

    private mutating func grow() {
        var larger: [Slot] = []
        larger.reserveCapacity(max(16, ring.count * 2))
        for offset in 0..<used { larger.append(ring[(head + offset) & (ring.count - 1)]) }
        let free = Slot(token: 0, deadline: .max, isPending: false)
        while larger.count < max(16, ring.count * 2) { larger.append(free) }
        ring = larger
        head = 0
    }
}
