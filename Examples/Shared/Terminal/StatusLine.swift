/// The figures at the bottom of a terminal, as far as the line has room:
///
///     connected  12 sent  0 unconfirmed  1.0/s  [====>      ]  42%  0:17 left
struct StatusLine: Sendable, Equatable {
    var devices = 1
    /// How many devices have a connection.
    var connected = 0
    var progress: ReplayProgress
    /// How many are sent per second; nil while that is unknown.
    var rate: Double?
    /// Counts the passes of a loop from 1; nil if there is only one.
    var run: Int?

    private struct Part {
        let text: StyledText
        /// Parts of low rank are left out first.
        let rank: Int
    }

    private static let gap = "  "

    /// The parts that fit into `width` columns, with the gaps between them.
    func texts(width: Int) -> [StyledText] {
        // The last column stays free: writing there makes some terminals go to the next line.
        let room = max(0, width - 1)
        var parts = parts
        func length() -> Int { parts.reduce(-Self.gap.count) { $0 + Self.gap.count + $1.text.text.count } }
        while length() > room, parts.count > 1, let least = parts.map(\.rank).min() {
            parts.removeAll { $0.rank == least }
        }
        var texts = parts.map(\.text)
        let cells = min(30, room - length() - Self.gap.count - 2)
        if let fraction = progress.fraction, cells >= 8,
            let place = parts.firstIndex(where: { $0.rank == Self.percent })
        {
            texts.insert(StyledText(Self.bar(fraction, cells: cells)), at: place)
        }
        if texts.count == 1 { texts[0].text = String(texts[0].text.prefix(room)) }
        return texts.enumerated().flatMap { $0 == 0 ? [$1] : [StyledText(Self.gap), $1] }
    }

    private static let percent = 6

    private var parts: [Part] {
        var parts = [Part(text: connection, rank: 8)]
        parts.append(Part(text: StyledText("\(progress.sent) sent"), rank: 7))
        if let unconfirmed = progress.unconfirmed {
            parts.append(Part(text: StyledText("\(progress.sent - unconfirmed) acknowledged"), rank: 1))
            parts.append(
                Part(text: StyledText("\(unconfirmed) unconfirmed", unconfirmed > 0 ? .caution : .plain), rank: 7))
        }
        if let rate { parts.append(Part(text: StyledText(ReplayProgress.rate(rate)), rank: 3)) }
        if let run { parts.append(Part(text: StyledText("run \(run)"), rank: 4)) }
        if let fraction = progress.fraction, let remaining = progress.remaining {
            let percent = String(Int(fraction * 100))
            let space = String(repeating: " ", count: 3 - percent.count)
            parts.append(Part(text: StyledText("\(space)\(percent)%"), rank: Self.percent))
            parts.append(Part(text: StyledText("\(ReplayProgress.time(remaining)) left"), rank: 5))
        } else {
            parts.append(Part(text: StyledText("\(ReplayProgress.time(progress.elapsed)) elapsed"), rank: 2))
        }
        return parts
    }

    private var connection: StyledText {
        let style: TextStyle = connected == devices ? .good : connected == 0 ? .bad : .caution
        guard devices > 1 else { return StyledText(connected == 1 ? "connected" : "not connected", style) }
        return StyledText("\(connected) of \(devices) connected", style)
    }

    private static func bar(_ fraction: Double, cells: Int) -> String {
        let filled = Int(Double(cells) * fraction)
        let head = filled < cells ? ">" : ""
        return "[" + String(repeating: "=", count: filled) + head
            + String(repeating: " ", count: cells - filled - head.count) + "]"
    }
}
