import TestSupport
import Testing

@testable import DeviceSupport

/// The line at the bottom of a terminal.
@Suite(.turns)
struct StatusLineTests {
    private func status() -> StatusLine {
        var progress = ReplayProgress(unit: "fixes", sent: 12, unconfirmed: 2, elapsed: 12_000_000_000)
        progress.remaining = 17_000_000_000
        progress.fraction = 0.42
        return StatusLine(
            address: "http://127.0.0.1:8080/", devices: 1, connected: 1, progress: progress, rate: 1)
    }

    private func text(_ status: StatusLine, _ width: Int) -> String {
        status.texts(width: width).map(\.text).joined()
    }

    @Test func `shows address, connection, counts, rate and progress`() {
        let wide = "http://127.0.0.1:8080/  connected  12 sent  10 acknowledged  2 unconfirmed  1.0/s  "
        #expect(text(status(), 130) == wide + "[===========>               ]   42%  0:17 left")
        let usual = "http://127.0.0.1:8080/  connected  12 sent  2 unconfirmed  1.0/s   42%  0:17 left"
        #expect(text(status(), 85) == usual)
    }

    @Test func `leaves out what matters least, and never fills the last column`() {
        #expect(text(status(), 70) == "http://127.0.0.1:8080/  connected  12 sent  2 unconfirmed   42%")
        #expect(text(status(), 40) == "http://127.0.0.1:8080/  connected")
        #expect(text(status(), 30) == "http://127.0.0.1:8080/")
        #expect(text(status(), 10) == "http://12")
        for width in 0...200 { #expect(text(status(), width).count <= max(0, width - 1)) }
    }

    @Test func `a long address becomes short before anything is left out`() {
        var status = status()
        status.shortAddress = status.address
        status.address += "abcdefghijklmnopqrst/"
        #expect(text(status, 140).hasPrefix("http://127.0.0.1:8080/abcdefghijklmnopqrst/  connected  "))
        #expect(text(status, 100).hasPrefix("http://127.0.0.1:8080/  connected  12 sent  10 acknowledged  "))
    }

    @Test func `a loop counts its runs, and a live source shows the time`() {
        var status = status()
        status.run = 3
        #expect(text(status, 90).contains("  run 3  "))
        status.run = nil
        status.progress.fraction = nil
        status.progress.remaining = nil
        status.progress.unconfirmed = nil
        #expect(text(status, 80) == "http://127.0.0.1:8080/  connected  12 sent  1.0/s  0:12 elapsed")
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
