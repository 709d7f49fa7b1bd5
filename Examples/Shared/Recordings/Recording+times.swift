extension Recording where Value == Fix {
    /// The same recording with a time for each fix, if any has one: the time of the last fix before it that has one, and
    /// the recorded offset from there. No fix has a time if one of them has an impossible year, because the clock of the
    /// device was wrong then.
    package func withTimes() -> Recording {
        guard var known = values.firstIndex(where: { $0.time != nil }) else { return self }
        var result = self
        guard values.allSatisfy({ $0.time?.isPlausible ?? true }) else {
            for index in values.indices { result.values[index].time = nil }
            return result
        }
        for index in values.indices {
            guard var time = values[known].time, values[index].time == nil else {
                known = index
                continue
            }
            time.nanoseconds += offsets[index] - offsets[known]
            result.values[index].time = time
        }
        // Recorded times may be closer together than a step: none in between is later than the next recorded one.
        var next: Timestamp?
        for index in values.indices.reversed() {
            if let time = values[index].time {
                next = time
            } else if let next, let time = result.values[index].time, time.nanoseconds > next.nanoseconds {
                result.values[index].time = next
            }
        }
        return result
    }
}
