extension Timestamp {
    /// Years in which recordings are made. They fit in 64 bits of nanoseconds, differences included.
    static let years = 1970...2199
    /// Years that fit in 64 bits of nanoseconds since 1970.
    private static let representableYears = 1800...2199

    /// Reads `2014-03-13T17:19:05.25+01:00` and its relatives: a blank for the T, no seconds, a comma before the
    /// fraction, `Z`, `+0100`, `+01`. Without an offset the time is UTC, as GPX has it.
    package init?(iso8601 text: String) {
        self.init(recorded: text)
        guard isPlausible else { return nil }
    }

    /// Reads the same forms in any year, because devices with a wrong clock write 1901 or 0001. Years that cannot be
    /// represented become 1800 or 2199.
    init?(recorded text: String) {
        var scanner = Scanner(bytes: Array(text.utf8.prefix(64)))
        guard text.utf8.count <= 64,
            let year = scanner.digits(4), scanner.take("-"), let month = scanner.digits(2), scanner.take("-"),
            let day = scanner.digits(2), scanner.take("T") || scanner.take("t") || scanner.take(" "),
            let hour = scanner.digits(2), scanner.take(":"), let minute = scanner.digits(2)
        else { return nil }
        var second = 0
        var fraction: Int64 = 0
        if scanner.take(":") {
            guard let value = scanner.digits(2) else { return nil }
            second = value
            if scanner.take(".") || scanner.take(",") {
                guard let value = scanner.nanoseconds() else { return nil }
                fraction = value
            }
        }
        guard let offset = scanner.offset(), scanner.isAtEnd else { return nil }
        // 60 is a leap second; it lands on the next minute, as in every clock that ignores leap seconds.
        guard (1...12).contains(month), (1...Self.length(month, of: year)).contains(day), hour < 24, minute < 60,
            second <= 60
        else { return nil }
        let nearest = min(max(year, Self.representableYears.lowerBound), Self.representableYears.upperBound)
        let days = Self.days(year: nearest, month: month, day: day)
        let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset * 60
        self.init(nanoseconds: Int64(seconds) * 1_000_000_000 + fraction, offsetMinutes: Int16(offset))
        isPlausible = Self.years.contains(year)
    }

    /// Reads a number of seconds since 1970; milli-, micro- and nanoseconds are told by their size.
    init?(unix text: String) {
        guard let value = DecimalText.parse(text), value >= 0 else { return nil }
        let seconds =
            switch value {
            case ..<1e11: value
            case ..<1e14: value / 1e3
            case ..<1e17: value / 1e6
            default: value / 1e9
            }
        guard seconds < 7.2e9 else { return nil }
        self.init(nanoseconds: Int64((seconds * 1e9).rounded()))
    }

    private static func length(_ month: Int, of year: Int) -> Int {
        switch month {
        case 4, 6, 9, 11: 30
        case 2: year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28
        default: 31
        }
    }
}

private struct Scanner {
    let bytes: [UInt8]
    var position = 0

    init(bytes: [UInt8]) {
        self.bytes = bytes
    }

    var isAtEnd: Bool { position == bytes.count }

    mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        guard position < bytes.count, UInt32(bytes[position]) == scalar.value else { return false }
        position += 1
        return true
    }

    mutating func digit() -> Int? {
        guard position < bytes.count, (0x30...0x39).contains(bytes[position]) else { return nil }
        position += 1
        return Int(bytes[position - 1] - 0x30)
    }

    mutating func digits(_ count: Int) -> Int? {
        var value = 0
        for _ in 0..<count {
            guard let digit = digit() else { return nil }
            value = value * 10 + digit
        }
        return value
    }

    /// The digits after the point, at least one; those beyond the ninth are dropped.
    mutating func nanoseconds() -> Int64? {
        guard var value = digit().map(Int64.init) else { return nil }
        var places = 1
        while let digit = digit() {
            guard places < 9 else { continue }
            value = value * 10 + Int64(digit)
            places += 1
        }
        for _ in places..<9 { value *= 10 }
        return value
    }

    /// In minutes; nothing at all and Z are 0.
    mutating func offset() -> Int? {
        if isAtEnd || take("Z") || take("z") { return 0 }
        let sign = take("+") ? 1 : take("-") ? -1 : 0
        guard sign != 0, let hours = digits(2), hours <= 18 else { return nil }
        if isAtEnd { return sign * hours * 60 }
        _ = take(":")
        guard let minutes = digits(2), minutes < 60 else { return nil }
        return sign * (hours * 60 + minutes)
    }
}
