import TestSupport
import Testing

@testable import MessagingDeviceSupport

/// The lines at the bottom of a terminal.
@Suite(.turns)
struct StatusLineTests {
    private func status() -> StatusLine {
        var progress = ReplayProgress(unit: "fixes", sent: 12, unconfirmed: 2, elapsed: 12_000_000_000)
        progress.remaining = 17_000_000_000
        progress.fraction = 0.42
        return StatusLine(devices: 1, connected: 1, progress: progress, rate: 1)
    }

    private func text(_ status: StatusLine, _ width: Int) -> String {
        status.texts(width: width).map(\.text).joined()
    }

    @Test func `shows connection, counts, rate and progress`() {
        let wide = "connected  12 sent  10 acknowledged  2 unconfirmed  1.0/s  "
        #expect(text(status(), 106) == wide + "[===========>               ]   42%  0:17 left")
        #expect(text(status(), 61) == "connected  12 sent  2 unconfirmed  1.0/s   42%  0:17 left")
    }

    @Test func `leaves out what matters least, and never fills the last column`() {
        #expect(text(status(), 46) == "connected  12 sent  2 unconfirmed   42%")
        #expect(text(status(), 16) == "connected")
        #expect(text(status(), 7) == "connec")
        for width in 0...200 { #expect(text(status(), width).count <= max(0, width - 1)) }
    }

    private func lines(_ block: StatusBlock, _ columns: Int, _ rows: Int) -> [String] {
        block.lines(columns: columns, rows: rows).map { $0.map(\.text).joined() }
    }

    @Test func `the whole address of the page is there wherever it has room`() {
        let address = "http://127.0.0.1:54321/abcdefghijklmnopqrst/"
        let block = StatusBlock(pinned: [[address]], figures: status())
        for columns in [80, 100, 120, address.count + 1] { #expect(lines(block, columns, 24).first == address) }
        // Half an address leads nowhere.
        #expect(lines(block, address.count, 24).count == 1)
    }

    @Test func `addresses are shown whole, as many as have room, and the last lines of them are left out first`() {
        let pinned = [["http://x/"], ["stomp://127.0.0.1:1", "mqtt://127.0.0.1:2", "ws://127.0.0.1:3"], ["device: T"]]
        let block = StatusBlock(pinned: pinned, figures: status(), received: StyledText("text: Hi"))
        let figures = "connected  12 sent  2 unconfirmed   42%"
        let all = ["http://x/", "stomp://127.0.0.1:1  mqtt://127.0.0.1:2", "device: T", figures, "text: Hi"]
        #expect(lines(block, 42, 24) == all)
        #expect(lines(block, 80, 24)[1] == "stomp://127.0.0.1:1  mqtt://127.0.0.1:2  ws://127.0.0.1:3")
        #expect(lines(block, 15, 24) == ["http://x/", "device: T", "connected", "text: Hi"])
        // The page's address, the figures and what came matter more than the addresses of the broker.
        #expect(lines(block, 42, 6) == [all[0], all[1], figures, all[4]])
        #expect(lines(block, 42, 5) == [all[0], figures, all[4]])
        #expect(lines(block, 42, 4) == [all[0], figures])
    }

    @Test func `a text stays in sight, on one line, unless the terminal is too low`() {
        let event = StyledText("van-3: connected")
        let text = StyledText("text: one\u{1B}[31m\ntwo " + String(repeating: "x", count: 80), .accent)
        let block = StatusBlock(pinned: [["http://x/"]], figures: status(), received: text, notice: event)
        let shown = lines(block, 40, 24)
        #expect(shown.count == 4)
        #expect(shown[2] == "van-3: connected")
        #expect(shown[3].hasPrefix("text: one\\u{1b}[31m\\ntwo xxx") && shown[3].hasSuffix("…"))
        #expect(shown[3].count == 39)
        #expect(lines(block, 40, 4) == ["http://x/", "connected  12 sent  2 unconfirmed   42%"])
        #expect(lines(block, 40, 3) == ["connected  12 sent  2 unconfirmed   42%"])
    }

    @Test func `a loop counts its runs, and a live source shows the time`() {
        var status = status()
        status.run = 3
        #expect(text(status, 70).contains("  run 3  "))
        status.run = nil
        status.progress.fraction = nil
        status.progress.remaining = nil
        status.progress.unconfirmed = nil
        #expect(text(status, 80) == "connected  12 sent  1.0/s  0:12 elapsed")
    }

    @Test func `the connection of one device and of a fleet`() {
        var status = status()
        status.connected = 0
        #expect(status.texts(width: 80).contains(StyledText("not connected", .bad)))
        status.devices = 5
        status.connected = 3
        #expect(status.texts(width: 80).contains(StyledText("3 of 5 connected", .caution)))
        status.connected = 5
        #expect(status.texts(width: 80).contains(StyledText("5 of 5 connected", .good)))
    }

    // MARK: Rate

    /// Every rate that is shown while values go out at these times, in seconds, for a minute.
    private func shown(_ times: [Double]) -> [Double] {
        var rate = SendRate()
        var next = times[...]
        var shown: [Double] = []
        for tick in 1...300 {
            let now = Double(tick) * 0.2
            while let time = next.first, time <= now {
                rate.sent(at: Int64(time * 1e9))
                next = next.dropFirst()
            }
            if let value = rate.perSecond(at: Int64(now * 1e9)), value != shown.last { shown.append(value) }
        }
        return shown
    }

    @Test func `the rate of a steady replay does not flicker`() {
        var generator = SeededGenerator(seed: Campaign.seed)
        /// Values that go out every so many seconds, each but the first a little late.
        func steady(_ count: Int, every step: Double, late: Double = 0.01) -> [Double] {
            (0..<count).map { number in
                number == 0 ? 0 : Double(number) * step + Double.random(in: 0..<late, using: &generator)
            }
        }
        #expect(shown(steady(60, every: 1)) == [1])
        #expect(shown(steady(30, every: 2)) == [0.5])
        #expect(shown(steady(3000, every: 0.02, late: 0.001)).count <= 2)
        // A fleet whose devices start a tenth of a second apart.
        var fleet: [Double] = []
        for device in 0..<5 { fleet += steady(60, every: 1).map { $0 + Double(device) / 10 } }
        #expect(shown(fleet.sorted()) == [5])
    }

    @Test func `a delay in the first seconds is forgotten`() {
        let shown = shown((0..<60).map { $0 > 5 && $0 < 12 ? 12 : Double($0) })
        #expect(shown.last == 1)
        #expect(self.shown([0, 1, 2, 3, 4, 5, 6, 7, 8] + (10..<60).map { Double($0) }).last == 1)
    }

    @Test func `the rate follows a change, and silence is zero`() {
        let times: [Double] = (0..<20).map { Double($0) } + (0..<200).map { 20 + Double($0) / 10 }
        let shown = shown(times)
        #expect(shown.first == 1)
        #expect(shown.contains { $0 > 9 })
        #expect(shown.last == 0)
    }
}
