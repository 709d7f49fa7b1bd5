import Foundation
import MessagingShell
import Synchronization
import TestSupport
import Testing

@testable import MessagingDeviceSupport

@Suite(.turns)
struct TerminalTests {
    // MARK: Progress

    @Test func progressIsAPlainLineWhenPiped() {
        let progress = ReplayProgress(
            unit: "motions", sent: 5, elapsed: 2_000_000_000, remaining: 65_000_000_000, fraction: 0.035)
        #expect(progress.line == "progress: 3%, 5 motions, 0:02 elapsed, 1:05 left, 2.5/s")
        var fixes = ReplayProgress(unit: "fixes", sent: 5, unconfirmed: 0, elapsed: 2_000_000_000)
        #expect(fixes.line == "progress: 5 fixes, 0:02 elapsed, 2.5/s")
        fixes.sent = 1
        #expect(fixes.line == "progress: 1 fix, 0:02 elapsed, 0.5/s")
        #expect(ReplayProgress.count(1, "motions") == "1 motion")
        fixes.sent = 5
        fixes.unconfirmed = 3
        #expect(fixes.line == "progress: 5 fixes, 3 unconfirmed, 0:02 elapsed, 2.5/s")
    }

    @Test func theMeterAddsUpTheFleet() {
        let console = Console(output: -1, errors: -1, environment: [:]) { _ in }
        let meter = ProgressMeter(unit: "fixes", devices: 2, isConfirmed: true, console: console)
        #expect(meter.current() == nil)
        meter.begin(device: 0, duration: 100)
        meter.begin(device: 1, duration: 200)
        meter.sent(device: 0, due: 80)
        meter.sent(device: 1, due: 40)
        meter.answered()
        let progress = meter.current()
        #expect(progress?.sent == 2)
        #expect(progress?.unconfirmed == 1)
        #expect(progress?.fraction == 0.5)
        #expect(progress?.remaining == 160)
    }

    @Test func aFinishedRunIsAtAHundredPercent() {
        let console = Console(output: -1, errors: -1, environment: [:]) { _ in }
        let meter = ProgressMeter(unit: "motions", devices: 1, console: console)
        meter.begin(device: 0, duration: 100)
        // The last sample of an interval comes before the end of the recording.
        meter.sent(device: 0, due: 50)
        #expect(meter.current()?.line.hasPrefix("progress: 50%, ") == true)
        meter.ended(device: 0)
        #expect(meter.current()?.line.hasPrefix("progress: 100%, ") == true)
    }

    @Test func theMeterCountsTheRunsOfALoop() {
        let console = Console(output: -1, errors: -1, environment: [:]) { _ in }
        let meter = ProgressMeter(unit: "motions", devices: 1, console: console)
        meter.begin(device: 0, duration: 100, loops: true)
        meter.sent(device: 0, due: 225)
        meter.connection(of: 0, isThere: true)
        let status = meter.status()
        #expect(status.run == 3)
        #expect(status.progress.fraction == 0.25)
        #expect(status.progress.remaining == 75)
        #expect(status.connected == 1)
        // Piped, a loop has no end.
        #expect(meter.current()?.fraction == nil)
    }

    @Test func anEventOfAConnectionIsShownWhileADeviceHasNone() {
        let console = Console(output: -1, errors: -1, environment: [:]) { _ in }
        let meter = ProgressMeter(unit: "motions", devices: 2, console: console)
        let lost = StyledText("2: connection lost")
        meter.connection(of: 0, isThere: true)
        meter.notice(lost)
        #expect(meter.block().notice == lost)
        meter.connection(of: 1, isThere: true)
        #expect(meter.block().notice == nil)
    }

    // MARK: Console

    @Test func linesIntoAPipeAreWholeAndWithoutEscapes() throws {
        let pipe = Pipe()
        let console = Console(
            output: pipe.fileHandleForWriting.fileDescriptor, errors: -1, environment: ["TERM": "xterm"]
        ) { _ in }
        console.bar([[StyledText("a bar")]])
        console.line("one\u{1B}[31m\ntwo")
        console.alert("green")
        console.alert("red", prefix: "phone-1: ")
        console.close()
        try pipe.fileHandleForWriting.close()
        let text = String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        #expect(text == "one\\u{1b}[31m\\ntwo\nalert: green\nphone-1: alert: red\n")
    }

    @Test func linesGoAboveTheBarOnATerminal() async throws {
        let terminal = try PseudoTerminal()
        let console = Console(output: terminal.slave, errors: -1, environment: ["TERM": "xterm"]) { _ in }
        #expect(console.isTerminal)
        console.bar([[StyledText("[==>  ]")]])
        console.line("φ:1.0000, λ:2.0000")
        console.alert("blue")
        console.close()
        let text = try await terminal.read(until: "111\u{1B}\\")
        #expect(text.hasPrefix("[==>  ]\r\u{1B}[Kφ:1.0000, λ:2.0000\r\n[==>  ]\r\u{1B}[K"))
        #expect(text.contains("\u{1B}]11;#0000ff\u{1B}\\\u{1B}[48;2;0;0;255;97malert: blue\u{1B}[K\u{1B}[0m\r\n"))
        // The bar is gone at the end and the background is the terminal's own.
        #expect(text.hasSuffix("\r\u{1B}[K\u{1B}]111\u{1B}\\"))
    }

    @Test func severalStatusLinesAreOneScreenWhateverIsPrinted() async throws {
        let terminal = try PseudoTerminal()
        let console = Console(output: terminal.slave, errors: -1, environment: ["TERM": "xterm"]) { _ in }
        let long = String(repeating: "y", count: 100)
        console.bar([[StyledText("one")], [StyledText("two")], [StyledText(long)]])
        console.line("first")
        console.bar([[StyledText("1")], [StyledText("2")]])
        console.line("second")
        console.bar([[StyledText("1")], [StyledText("2")], [StyledText("3")]])
        console.line("third")
        console.bar([[StyledText("1")], [StyledText("2")], [StyledText("4")]])
        var screen = TerminalScreen(columns: 80, rows: 24)
        screen.write(try await terminal.read(until: "4\u{1B}[K\u{1B}[?7h"))
        #expect(screen.text == "first\nsecond\nthird\n1\n2\n4")
        console.close()
    }

    @Test func aListIsBrokenBetweenItsItems() async throws {
        let terminal = try PseudoTerminal()
        let console = Console(output: terminal.slave, errors: -1, environment: ["TERM": "xterm"]) { _ in }
        // A terminal that does not say its size has 80 columns.
        console.list(
            "summary:",
            ["5 devices", "12345 fixes sent", "0 unconfirmed", "2 texts received", "1 reconnect", "0:07 elapsed"])
        #expect(
            try await terminal.read(until: "elapsed\r\n")
                == "summary: 5 devices, 12345 fixes sent, 0 unconfirmed, 2 texts received,\r\n  1 reconnect, 0:07 elapsed\r\n"
        )
        let pipe = Pipe()
        let piped = Console(output: pipe.fileHandleForWriting.fileDescriptor, errors: -1, environment: [:]) { _ in }
        piped.list("summary:", Array(repeating: "12345 fixes sent", count: 10))
        try pipe.fileHandleForWriting.close()
        let text = String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        #expect(text.count { $0 == "\n" } == 1)
    }

    @Test func aLongLineIsBrokenBetweenItsWords() async throws {
        let terminal = try PseudoTerminal()
        let console = Console(output: terminal.slave, errors: -1, environment: ["TERM": "xterm"]) { _ in }
        console.line(
            "cannot connect: 127.0.0.1:9 refused the connection. Check the address and the port, and whether it runs",
            .bad)
        #expect(
            try await terminal.read(until: "0m\r\n")
                == "\u{1B}[31mcannot connect: 127.0.0.1:9 refused the connection. Check the address and the"
                + "\r\n  port, and whether it runs\u{1B}[0m\r\n")
        // An address is not broken, so that it can be opened.
        let address = "http://127.0.0.1/" + String(repeating: "x", count: 80)
        console.line("page: \(address) here")
        #expect(try await terminal.read(until: "here\r\n") == "page:\r\n  \(address)\r\n  here\r\n")
    }

    @Test func linesHaveColoursOnATerminalUnlessTheUserWantsNone() async throws {
        for (environment, line) in [
            (["TERM": "xterm"], "\u{1B}[32mconnected\u{1B}[0m\r\n"),
            (["TERM": "xterm", "NO_COLOR": ""], "\u{1B}[32mconnected\u{1B}[0m\r\n"),
            (["TERM": "xterm", "NO_COLOR": "1"], "connected\r\n"),
        ] {
            let terminal = try PseudoTerminal()
            let console = Console(output: terminal.slave, errors: -1, environment: environment) { _ in }
            console.line("connected", .good)
            #expect(try await terminal.read(until: "\r\n") == line)
        }
    }

    @Test func anAlertColoursTheWholeStatusLine() async throws {
        let terminal = try PseudoTerminal()
        let console = Console(output: terminal.slave, errors: -1, environment: ["TERM": "xterm"]) { _ in }
        defer { console.close() }
        console.bar([[StyledText("connected", .good), StyledText("  1.0/s")]])
        console.alert("blue")
        let text = try await terminal.read(until: "1.0/s\u{1B}[K\u{1B}[0m")
        #expect(text.hasSuffix("\r\n\u{1B}[48;2;0;0;255;97mconnected  1.0/s\u{1B}[K\u{1B}[0m"))
    }

    @Test func anAlertHasNoColourIfTheUserWantsNone() async throws {
        let terminal = try PseudoTerminal()
        let console = Console(
            output: terminal.slave, errors: -1, environment: ["TERM": "xterm", "NO_COLOR": "1"]
        ) { _ in }
        defer { console.close() }
        console.bar([[StyledText("status", .good)]])
        console.alert("blue")
        #expect(try await terminal.read(until: "blue\r\nstatus") == "status\r\u{1B}[Kalert: blue\r\nstatus")
    }

    @Test func anAlertLastsTwoSecondsFromTheNewest() async throws {
        let terminal = try PseudoTerminal()
        let console = Console(output: terminal.slave, errors: -1, environment: ["TERM": "xterm"]) { _ in }
        defer { console.close() }
        let start = ContinuousClock.now
        console.alert("red")
        try await Task.sleep(for: .milliseconds(700))
        let newest = ContinuousClock.now
        console.alert("green")
        // False if this thread was suspended for so long that the two seconds of the older alert have passed.
        let isInTime = ContinuousClock.now - start < .seconds(2)
        _ = try await terminal.read(until: "\u{1B}]111\u{1B}\\")
        if isInTime { #expect(ContinuousClock.now - newest >= .seconds(2)) }
    }

    @Test func aReaderThatIsGoneIsToldOnce() throws {
        signal(SIGPIPE, SIG_IGN)
        let pipe = Pipe()
        let problems = Mutex<[CInt]>([])
        let console = Console(
            output: pipe.fileHandleForWriting.fileDescriptor, errors: -1, environment: [:]
        ) { problem in problems.withLock { $0.append(problem) } }
        try pipe.fileHandleForReading.close()
        console.line("one")
        console.line("two")
        #expect(problems.withLock { $0 } == [EPIPE])
    }

    @Test func aConsoleIsClosedWithoutWaitingForAReaderThatHasStopped() async throws {
        let pipe = Pipe()
        let output = pipe.fileHandleForWriting.fileDescriptor
        let flags = fcntl(output, F_GETFL)
        _ = fcntl(output, F_SETFL, flags | O_NONBLOCK)
        let filler = [UInt8](repeating: 32, count: 4096)
        while write(output, filler, filler.count) > 0 {}
        _ = fcntl(output, F_SETFL, flags)
        let console = Console(output: output, errors: -1, environment: [:]) { _ in }
        // Waits in the console, until the reader reads.
        Thread.detachNewThread { console.line("late") }
        console.closeWithoutWaiting()
        var text = Data()
        while !text.suffix(5).elementsEqual("late\n".utf8) { text += pipe.fileHandleForReading.availableData }
    }

    @Test func aTerminalThatTakesOutputIsClosedLikeAnyOther() async throws {
        let terminal = try PseudoTerminal()
        let console = Console(output: terminal.slave, errors: -1, environment: ["TERM": "xterm"]) { _ in }
        console.bar([[StyledText("a bar")]])
        console.closeWithoutWaiting()
        console.line("after")
        #expect(try await terminal.read(until: "after") == "a bar\r\u{1B}[Kafter")
    }

    // MARK: Keys

    @Test func keysOfATerminalComeOneByOne() {
        var previous: UInt8?
        let keys = Key.keys(in: Array("a\nrx\n\u{4}".utf8), isTerminal: true, previous: &previous)
        #expect(keys == [.accept, .shake, .reject, .shake])
    }

    @Test func keysOfAPipeComeInLines() {
        var previous: UInt8?
        #expect(
            Key.keys(in: Array("a\n\nr".utf8), isTerminal: false, previous: &previous) == [.accept, .shake, .reject])
        // The rest of the line comes with the next read.
        #expect(Key.keys(in: Array("\n\r\n".utf8), isTerminal: false, previous: &previous) == [.shake])
    }

    @Test func theEndOfInputEndsTheKeys() async throws {
        let pipe = Pipe()
        let reader = KeyReader()
        reader.start(
            try InputFile(path: "/dev/fd/\(pipe.fileHandleForReading.fileDescriptor)"), isTerminal: false)
        try pipe.fileHandleForWriting.write(contentsOf: Data("\na\n".utf8))
        try pipe.fileHandleForWriting.close()
        var keys: [Key] = []
        for await key in reader.keys { keys.append(key) }
        #expect(keys == [.shake, .accept])
    }

    // MARK: Frames

    @Test func framesAreOneLineOfBoundedLength() {
        #expect(Console.frameLine(.sent, "PINGREQ") == ">>> PINGREQ")
        let long = Console.frameLine(.received, "MESSAGE x:" + String(repeating: "é", count: 10_000))
        #expect(long.hasPrefix("<<< MESSAGE x:é"))
        #expect(long.utf8.count < 1100)
    }
}

/// A terminal without a screen: what a program writes to `slave` is read here.
///
/// Close a console that showed an alert before its terminal goes: the end of the alert, two seconds later, would be
/// written to whatever has the descriptor's number by then.
private final class PseudoTerminal {
    private let master: CInt
    let slave: CInt
    private static let opening = Mutex(())

    init() throws {
        // By name, because glibc's header hides the functions behind feature macros that Swift does not set.
        guard let library = dlopen(nil, RTLD_NOW) else { throw CocoaError(.fileReadUnknown) }
        func function<T>(_ name: String, as: T.Type) throws -> T {
            guard let symbol = dlsym(library, name) else { throw CocoaError(.fileReadUnknown) }
            return unsafeBitCast(symbol, to: T.self)
        }
        let call = try (
            open: function("posix_openpt", as: (@convention(c) (CInt) -> CInt).self),
            grant: function("grantpt", as: (@convention(c) (CInt) -> CInt).self),
            unlock: function("unlockpt", as: (@convention(c) (CInt) -> CInt).self),
            name: function("ptsname", as: (@convention(c) (CInt) -> UnsafePointer<CChar>?).self)
        )
        // `ptsname` returns the same memory to every test.
        (master, slave) = try Self.opening.withLock { _ in
            let master = call.open(O_RDWR | O_NOCTTY)
            guard master >= 0, call.grant(master) == 0, call.unlock(master) == 0, let name = call.name(master) else {
                throw CocoaError(.fileReadUnknown)
            }
            return (master, open(name, O_RDWR | O_NOCTTY))
        }
    }

    deinit {
        close(slave)
        close(master)
    }

    /// What was written up to the first `end`.
    func read(until end: String) async throws -> String {
        let deadline = ContinuousClock.now + .patience
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 4096)
        while true {
            let text = String(decoding: bytes, as: UTF8.self)
            if let found = text.range(of: end) { return String(text[..<found.upperBound]) }
            var wait = pollfd(fd: master, events: Int16(POLLIN), revents: 0)
            guard poll(&wait, 1, 0) == 1 else {
                guard ContinuousClock.now < deadline else { throw CocoaError(.fileReadUnknown) }
                try await Task.sleep(for: .milliseconds(10))
                continue
            }
            let count = Foundation.read(master, &chunk, chunk.count)
            guard count > 0 else { throw CocoaError(.fileReadUnknown) }
            bytes += chunk[..<count]
        }
    }
}
