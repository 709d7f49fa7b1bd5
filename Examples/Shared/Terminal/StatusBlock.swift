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
