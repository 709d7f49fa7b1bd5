extension Timestamp {
    /// Years in which recordings are made. They fit in 64 bits of nanoseconds, differences included.
    static let years = 1970...2199
    /// Years that fit in 64 bits of nanoseconds since 1970.
    private static let representableYears = 1800...2199

    /// Reads `2014-03-13T17:19:05.25+01:00` and its relatives: a blank for the T, slashes in the date, no seconds, a comma
    /// before the fraction, AM and PM, `Z`, `UTC`, `+0100`, `+01`, and the name of a zone behind the offset. Without an
    /// offset the time is UTC, as GPX has it. 24:00 is the midnight that ends the day.
    package init?(iso8601 text: String) {
        self.init(recorded: text)
        guard isPlausible else { return nil }
    }

    /// Reads the same forms in any year, because devices with a wrong clock write 1901 or 0001. Years that cannot be
    /// represented become 1800 or 2199.
    init?(recorded text: String) {
        guard text.utf8.count <= 96 else { return nil }
        var scanner = Scanner(text)
        guard let year = scanner.digits(4), let separator = scanner.take(oneOf: "-/"),
            let month = scanner.digits(1...2),
            scanner.take(separator), let day = scanner.digits(1...2),
            scanner.take(oneOf: "Tt") != nil || scanner.takeBlanks(), let written = scanner.digits(1...2),
            scanner.take(":"), let minute = scanner.digits(2)
        else { return nil }
        var second = 0
        var fraction: Int64 = 0
        if scanner.take(":") {
            guard let value = scanner.digits(2) else { return nil }
            second = value
            if scanner.take(oneOf: ".,") != nil {
                guard let value = scanner.nanoseconds() else { return nil }
                fraction = value
            }
        }
        var hour = written
        if let isAfternoon = scanner.halfOfDay() {
            guard (1...12).contains(written) else { return nil }
            hour = written % 12 + (isAfternoon ? 12 : 0)
        }
        guard let offset = scanner.offset(), scanner.isAtEnd else { return nil }
        let isMidnight = hour == 24 && minute == 0 && second == 0
        // 60 is a leap second; it lands on the next minute, as in every clock that ignores leap seconds.
        guard (1...12).contains(month), (1...Self.length(month, of: year)).contains(day), hour < 24 || isMidnight,
            minute < 60, second <= 60
        else { return nil }
        let nearest = min(max(year, Self.representableYears.lowerBound), Self.representableYears.upperBound)
        let days = Self.days(year: nearest, month: month, day: day)
        let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset * 60
        self.init(nanoseconds: Int64(seconds) * 1_000_000_000 + fraction, offsetMinutes: Int16(offset))
        isPlausible = Self.years.contains(year)
    }

    /// What to say about a text that is no time.
    static func problem(_ text: String) -> String { "'\(text.printable)' is not an ISO 8601 date and time" }

    /// Reads a number of seconds since 1970; milli-, micro- and nanoseconds are told by their size.
    init?(unix text: String) {
        guard let value = DecimalText.parse(text), value >= 0 else { return nil }
        let nanoseconds =
            switch value {
            case ..<1e11: 1e9
            case ..<1e14: 1e6
            case ..<1e17: 1e3
            default: 1.0
            }
        guard value * nanoseconds < 7.2e18 else { return nil }
        self.init(value, unit: nanoseconds)
    }

    /// A number of units since 1970 or any other zero; nil if it is beyond 290 years.
    init?(_ value: Double, unit nanoseconds: Double) {
        guard abs(value * nanoseconds) < 9e18 else { return nil }
        // The fraction by itself: the product would be rounded to quarters of a microsecond.
        let whole = value.rounded(.down)
        self.init(
            nanoseconds: Int64(whole) * Int64(nanoseconds) + Int64(((value - whole) * nanoseconds).rounded()))
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
    private let bytes: [UInt8]
    private var position = 0

    init(_ text: String) {
        // Some systems write a space before AM and PM at which no line is broken.
        let isASCII = text.utf8.allSatisfy { $0 < 0x80 }
        bytes = Array((isASCII ? text : String(text.map { $0.isWhitespace ? " " : $0 })).utf8)
    }

    var isAtEnd: Bool { position == bytes.count }

    mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        guard position < bytes.count, UInt32(bytes[position]) == scalar.value else { return false }
        position += 1
        return true
    }

    mutating func take(oneOf scalars: String) -> Unicode.Scalar? {
        scalars.unicodeScalars.first { take($0) }
    }

    @discardableResult
    mutating func takeBlanks() -> Bool {
        let start = position
        while take(" ") {}
        return position > start
    }

    private mutating func digit() -> Int? {
        guard position < bytes.count, (0x30...0x39).contains(bytes[position]) else { return nil }
        position += 1
        return Int(bytes[position - 1] - 0x30)
    }

    mutating func digits(_ count: Int) -> Int? { digits(count...count) }

    mutating func digits(_ counts: ClosedRange<Int>) -> Int? {
        var (value, count) = (0, 0)
        while count < counts.upperBound, let digit = digit() {
            value = value * 10 + digit
            count += 1
        }
        return count < counts.lowerBound ? nil : value
    }

    /// The letters here, in lower case; they are not taken if `isWanted` is false.
    private mutating func word(_ isWanted: (String) -> Bool) -> String? {
        let start = position
        takeBlanks()
        let letters = bytes[position...].prefix { (0x41...0x5A).contains($0 & 0xDF) || $0 == UInt8(ascii: ".") }
        let word = String(decoding: letters, as: UTF8.self).lowercased()
        guard isWanted(word) else {
            position = start
            return nil
        }
        position += letters.count
        return word
    }

    /// True for PM, false for AM, nil for neither.
    mutating func halfOfDay() -> Bool? {
        word { ["am", "pm", "a.m.", "p.m."].contains($0) }.map { $0.hasPrefix("p") }
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

    /// In minutes; nothing at all, Z and UTC are 0. The name of a zone may follow.
    mutating func offset() -> Int? {
        let isUTC = word { ["z", "utc", "gmt"].contains($0) } != nil
        takeBlanks()
        if isAtEnd { return 0 }
        guard let sign = take(oneOf: "+-") else { return isUTC && takeZone() ? 0 : nil }
        guard let hours = digits(isUTC ? 1...2 : 2...2), hours <= 18 else { return nil }
        let hasColon = take(":")
        let minutes = digits(2)
        guard minutes ?? 0 < 60, minutes != nil || !hasColon, isAtEnd || takeZone() else { return nil }
        return (sign == "+" ? 1 : -1) * (hours * 60 + (minutes ?? 0))
    }

    /// ` CEST`, ` (CEST)` or `[Europe/Brussels]`, to the end. It changes nothing, since the offset says it all.
    private mutating func takeZone() -> Bool {
        let hasBlank = takeBlanks()
        let closing: Unicode.Scalar? = take("[") ? "]" : take("(") ? ")" : nil
        guard hasBlank || closing != nil else { return false }
        while position < bytes.count,
            (0x41...0x5A).contains(bytes[position] & 0xDF) || "/_-+ 0123456789".utf8.contains(bytes[position])
        {
            position += 1
        }
        return (closing.map { take($0) } ?? true) && isAtEnd
    }
}
