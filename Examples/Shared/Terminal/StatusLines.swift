/// What the lines at the bottom of a terminal show:
///
///     http://127.0.0.1:8080/p9sHk0MdXCw1Zr4aYt5e/
///     stomp://127.0.0.1:61613  mqtt://127.0.0.1:1883  ws://127.0.0.1:61614
///     device: van
///     4 of 5 connected  605 sent  0 unconfirmed  121/s  run 2  [====>      ]  42%  0:17 left
///     van-3: connection lost: The server closed the connection; the replay waits; trying again in 0.4 s (attempt 1)
///     text: Take the next exit
struct StatusBlock: Sendable, Equatable {
    /// Addresses and names, one or more on each line; the first line matters most.
    var pinned: [[String]]
    var figures: StatusLine
    /// The newest text or alert, where other lines push it away.
    var received: StyledText?
    /// The newest event of a fleet's connections, while one is missing.
    var notice: StyledText?

    /// The lines that fit; on a low terminal the least important ones are left out. An address is shown whole or not at
    /// all, since half of one cannot be opened.
    func lines(columns: Int, rows: Int) -> [[StyledText]] {
        let room = max(0, columns - 1)
        var addresses = pinned.map { Self.whole($0, in: room) }.filter { !$0.isEmpty }
        let others = [notice, received].compactMap { $0 }.map { text in
            [StyledText(Self.shortened(text.text.printable, to: room), text.style)]
        }
        let most = max(1, rows - 2)
        addresses.removeLast(min(max(0, addresses.count + 1 + others.count - most), max(0, addresses.count - 1)))
        let lines = addresses.map { [StyledText($0, .strong)] } + [figures.texts(width: columns)] + others
        if lines.count <= most { return lines }
        return most > 1 ? Array(lines.prefix(most)) : [figures.texts(width: columns)]
    }

    /// As many of the first items as have room on a line.
    private static func whole(_ items: [String], in room: Int) -> String {
        var items = items
        while items.joined(separator: "  ").count > room { items.removeLast() }
        return items.joined(separator: "  ")
    }

    private static func shortened(_ text: String, to room: Int) -> String {
        text.count <= room ? text : text.prefix(max(0, room - 1)) + "…"
    }
}

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

/// How far a replay is, as text.
struct ReplayProgress: Sendable, Equatable {
    /// What the things sent are called: "fixes", "motions".
    var unit: String
    var sent = 0
    /// Of those, how many the broker has not confirmed; nil if it is not asked to.
    var unconfirmed: Int?
    /// Nanoseconds.
    var elapsed: Int64 = 0
    /// Nanoseconds; nil when the end is unknown (a loop, a live source).
    var remaining: Int64?
    /// 0...1; nil with `remaining`.
    var fraction: Double?

    /// For pipes: `progress: 42%, 12 fixes, 0:12 elapsed, 0:17 left, 1.0/s`.
    var line: String {
        let percent = fraction.map { "\(Int($0 * 100))%, " } ?? ""
        let waiting = (unconfirmed ?? 0) > 0 ? ", \(unconfirmed ?? 0) unconfirmed" : ""
        let left = remaining.map { ", \(Self.time($0)) left" } ?? ""
        let mean = elapsed > 0 ? Double(sent) * 1e9 / Double(elapsed) : 0
        return
            "progress: \(percent)\(Self.count(sent, unit))\(waiting), \(Self.time(elapsed)) elapsed\(left), \(Self.rate(mean))"
    }

    /// `1 fix`, `2 fixes`, `1 motion`.
    static func count(_ number: Int, _ unit: String) -> String {
        "\(number) \(number == 1 ? singular(unit) : unit)"
    }

    /// `fix`, `motion`.
    static func singular(_ unit: String) -> String { String(unit.dropLast(unit.hasSuffix("xes") ? 2 : 1)) }

    /// `1.0/s`, and no decimals from 100 per second.
    static func rate(_ rate: Double) -> String {
        DecimalText.fixed(rate, places: rate < 100 ? 1 : 0) + "/s"
    }

    /// `0:07`, `12:34`, `1:02:03`.
    static func time(_ nanoseconds: Int64) -> String {
        func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let seconds = max(0, nanoseconds) / 1_000_000_000
        let minutes = seconds / 60
        return minutes < 60
            ? "\(minutes):\(two(seconds % 60))" : "\(minutes / 60):\(two(minutes % 60)):\(two(seconds % 60))"
    }
}
