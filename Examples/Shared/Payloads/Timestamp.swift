#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// A moment and the offset from UTC in which it was written.
package struct Timestamp: Sendable, Equatable {
    /// Since 1970-01-01T00:00:00Z.
    package var nanoseconds: Int64
    /// East of Greenwich.
    package var offsetMinutes: Int16
    /// False if the year is one in which no recording was made, so that the clock of the device was wrong.
    package var isPlausible = true

    package init(nanoseconds: Int64, offsetMinutes: Int16 = 0) {
        self.nanoseconds = nanoseconds
        self.offsetMinutes = offsetMinutes
    }

    /// The moment and the offset of this machine's clock, to the second as in the app.
    package static func now() -> Timestamp {
        var time = timespec()
        unsafe clock_gettime(CLOCK_REALTIME, &time)
        var seconds = time.tv_sec
        var local = unsafe tm()
        unsafe localtime_r(&seconds, &local)
        return unsafe Timestamp(
            nanoseconds: Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec),
            offsetMinutes: Int16(clamping: local.tm_gmtoff / 60))
    }

    /// Nanoseconds from here to `now`; negative for a time to come.
    package func age(at now: Timestamp) -> Int64 {
        let (age, overflow) = now.nanoseconds.subtractingReportingOverflow(nanoseconds)
        return overflow ? now.nanoseconds > nanoseconds ? .max : .min : age
    }

    package var wholeSeconds: Timestamp {
        let second: Int64 = 1_000_000_000
        let below = nanoseconds % second
        return Timestamp(nanoseconds: nanoseconds - (below < 0 ? below + second : below), offsetMinutes: offsetMinutes)
    }
}

extension Timestamp: CustomStringConvertible {
    /// ISO 8601 with a numeric offset; the fraction of the second only where there is one.
    package var description: String {
        let second: Int64 = 1_000_000_000
        var below = nanoseconds % second
        if below < 0 { below += second }
        let local = (nanoseconds - below) / second + Int64(offsetMinutes) * 60
        let day = Int((Double(local) / 86_400).rounded(.down))
        let (year, month, date) = Self.civil(day)
        let time = Int(local) - day * 86_400
        var text = "\(year)-\(two(month))-\(two(date))T\(two(time / 3600)):\(two(time / 60 % 60)):\(two(time % 60))"
        if below != 0 {
            let digits = String(second + below).dropFirst()
            text += "." + digits[..<(digits.lastIndex { $0 != "0" }.map { digits.index(after: $0) } ?? digits.endIndex)]
        }
        let offset = abs(Int(offsetMinutes))
        return text + (offsetMinutes < 0 ? "-" : "+") + "\(two(offset / 60)):\(two(offset % 60))"
    }

    private func two(_ number: Int) -> String {
        number < 10 ? "0\(number)" : "\(number)"
    }

    /// Days since 1970-01-01 as a date of the proleptic Gregorian calendar, by eras of 400 years.
    private static func civil(_ day: Int) -> (year: Int, month: Int, day: Int) {
        let shifted = day + 719_468
        let era = (shifted >= 0 ? shifted : shifted - 146_096) / 146_097
        let dayOfEra = shifted - era * 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shiftedMonth = (5 * dayOfYear + 2) / 153
        let month = shiftedMonth < 10 ? shiftedMonth + 3 : shiftedMonth - 9
        let year = yearOfEra + era * 400 + (month <= 2 ? 1 : 0)
        return (year, month, dayOfYear - (153 * shiftedMonth + 2) / 5 + 1)
    }

    static func days(year: Int, month: Int, day: Int) -> Int {
        let year = month <= 2 ? year - 1 : year
        let era = (year >= 0 ? year : year - 399) / 400
        let yearOfEra = year - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }
}
