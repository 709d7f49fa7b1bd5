import Foundation
import MessagingWire
import Synchronization
import TestSupport
import Testing
import Transport

/// In which order a tap sees what a link exchanges.
@Suite(.turns) struct LinkTapTests {
    private static let streams: [StreamKind] = [.tcp, .memory]

    /// Two links, of which the client's answers what it receives, and is watched.
    private func ends(_ selector: SelectorKind, _ kind: StreamKind, _ tap: HoldingTap) async throws -> Ends {
        let ends = try await Setting(selector, kind).links()
        ends.client.perform { $0.echoes = true }
        _ = ends.client.tap(orElse: { tap })
        return ends
    }

    @Test(arguments: SelectorKind.allCases, Self.streams)
    func `an answer that a caller could send is shown behind what it answers`(
        selector: SelectorKind, kind: StreamKind
    ) async throws {
        let tap = HoldingTap()
        let ends = try await ends(selector, kind, tap)
        ends.server.append(Array("question\n".utf8))
        #expect(await eventually { tap.holds(.received) })
        // The answer is in the outbox by now, and this caller would send both.
        ends.client.append(Array("own\n".utf8), urgent: true)
        #expect(tap.shown.isEmpty)
        tap.release(.received)
        #expect(await eventually { ends.server.probe.bytes.elementsEqual("question\nown\n".utf8) })
        #expect(tap.shown == ["received question\n", "sent question\nown\n"])
        // The next message of a caller leaves as before.
        ends.client.append(Array("next\n".utf8), urgent: true)
        #expect(tap.shown.last == "sent next\n")
    }

    @Test(arguments: SelectorKind.allCases, Self.streams)
    func `an answer is shown behind what it answers although a caller is sending`(
        selector: SelectorKind, kind: StreamKind
    ) async throws {
        let tap = HoldingTap(holdsSent: true)
        let ends = try await ends(selector, kind, tap)
        let isDone = Flag()
        Thread.detachNewThread {
            ends.client.append(Array("own\n".utf8), urgent: true)
            isDone.set()
        }
        #expect(await eventually { tap.holds(.sent) })
        ends.server.append(Array("question\n".utf8))
        #expect(await eventually { tap.holds(.received) })
        // The caller writes its message, and finds the answer in the outbox.
        tap.release(.sent)
        #expect(await eventually { isDone.isSet })
        #expect(tap.shown == ["sent own\n"])
        tap.release(.received)
        #expect(await eventually { ends.server.probe.bytes.elementsEqual("own\nquestion\n".utf8) })
        #expect(tap.shown == ["sent own\n", "received question\n", "sent question\n"])
    }
}

private final class Flag: Sendable {
    private let value = Atomic(false)
    var isSet: Bool { value.load(ordering: .acquiring) }
    func set() { value.store(true, ordering: .releasing) }
}

/// Holds the thread that shows it the first bytes of a direction until the test releases it.
private final class HoldingTap: LinkTap {
    enum Direction: String { case received, sent }

    private struct State {
        var shown: [String] = []
        var held: Set<Direction> = []
        var holds: Set<Direction>
    }

    private let state: Mutex<State>
    private let received = DispatchSemaphore(value: 0)
    private let sent = DispatchSemaphore(value: 0)

    init(holdsSent: Bool = false) {
        state = Mutex(State(holds: holdsSent ? [.received, .sent] : [.received]))
    }

    /// What was shown: the direction and the bytes as text.
    var shown: [String] { state.withLock { $0.shown } }

    func holds(_ direction: Direction) -> Bool { state.withLock { $0.held.contains(direction) } }

    func release(_ direction: Direction) { _ = semaphore(direction).signal() }

    func received(_ bytes: RawSpan) { show(.received, bytes) }
    func sent(_ bytes: RawSpan) { show(.sent, bytes) }

    private func semaphore(_ direction: Direction) -> DispatchSemaphore { direction == .sent ? sent : received }

    private func show(_ direction: Direction, _ bytes: RawSpan) {
        let waits = state.withLock { state in
            guard state.holds.remove(direction) != nil else { return false }
            state.held.insert(direction)
            return true
        }
        if waits { _ = semaphore(direction).wait(timeout: .now() + 60) }
        let text = bytes.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
        state.withLock { $0.shown.append("\(direction.rawValue) \(text)") }
    }
}
