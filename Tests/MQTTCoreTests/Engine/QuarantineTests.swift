import MessagingWire
import Testing

@testable import MQTTCore

/// What is known of a request × how the connection ends on which it alone is unanswered.
@Suite struct QuarantineTests {
    private static let topic = Quarantine.Name.topic(ByteKey("suspect"))
    private static let other = Quarantine.Name.topic(ByteKey("other"))

    enum Known: CaseIterable {
        case nothing, accused, accusedByAnswer, passedOver, passedOverByAnswer, refused
    }

    enum End: CaseIterable {
        /// The connection lasts, and the request is answered.
        case answered
        case unrelated, closed, disconnected, unansweredAtLeastOnce, unansweredExactlyOnce

        var isExactlyOnce: Bool { self == .unansweredExactlyOnce }

        var connectionEnd: MQTTConnectionEnd? {
            switch self {
            case .answered: nil
            case .unrelated: .unrelated
            case .closed: .closed
            case .disconnected: .disconnected(.init(reasonCode: .notAuthorized))
            case .unansweredAtLeastOnce, .unansweredExactlyOnce: .unanswered
            }
        }
    }

    struct Row: Sendable {
        let before: Known
        let end: End
        let after: Known
        let verdict: Quarantine.Verdict?
        /// The same on a connection that has answered another message, carried as much and lasted longer.
        let afterBetter: Known
        let verdictOfBetter: Quarantine.Verdict?

        init(
            _ before: Known, _ end: End, _ after: Known, _ verdict: Quarantine.Verdict? = nil,
            better: (Known, Quarantine.Verdict?)? = nil
        ) {
            (self.before, self.end, self.after, self.verdict) = (before, end, after, verdict)
            (afterBetter, verdictOfBetter) = better ?? (after, verdict)
        }
    }

    private static let convicted = (Known.refused, Quarantine.Verdict.refused)

    static let rows: [Row] = [
        Row(.nothing, .answered, .nothing),
        Row(.nothing, .unrelated, .nothing),
        Row(.nothing, .closed, .accused),
        Row(.nothing, .disconnected, .accusedByAnswer),
        Row(.nothing, .unansweredAtLeastOnce, .accused),
        Row(.nothing, .unansweredExactlyOnce, .accusedByAnswer),

        Row(.accused, .answered, .nothing),
        Row(.accused, .unrelated, .accused),
        Row(.accused, .closed, .passedOver, .passedOver, better: convicted),
        Row(.accused, .disconnected, .passedOverByAnswer, .passedOver, better: convicted),
        Row(.accused, .unansweredAtLeastOnce, .passedOver, .passedOver),
        Row(.accused, .unansweredExactlyOnce, .passedOverByAnswer, .passedOver),

        Row(.accusedByAnswer, .answered, .nothing),
        Row(.accusedByAnswer, .unrelated, .accusedByAnswer),
        Row(.accusedByAnswer, .closed, .passedOver, .passedOver, better: convicted),
        Row(.accusedByAnswer, .disconnected, .refused, .refused),
        Row(.accusedByAnswer, .unansweredAtLeastOnce, .passedOver, .passedOver),
        Row(.accusedByAnswer, .unansweredExactlyOnce, .refused, .refused),

        Row(.passedOver, .answered, .nothing),
        Row(.passedOver, .unrelated, .passedOver),
        Row(.passedOver, .closed, .passedOver, better: convicted),
        Row(.passedOver, .disconnected, .passedOverByAnswer, better: convicted),
        Row(.passedOver, .unansweredAtLeastOnce, .passedOver),
        Row(.passedOver, .unansweredExactlyOnce, .passedOverByAnswer),

        Row(.passedOverByAnswer, .answered, .nothing),
        Row(.passedOverByAnswer, .unrelated, .passedOverByAnswer),
        Row(.passedOverByAnswer, .closed, .passedOver, better: convicted),
        Row(.passedOverByAnswer, .disconnected, .refused, .refused),
        Row(.passedOverByAnswer, .unansweredAtLeastOnce, .passedOver),
        Row(.passedOverByAnswer, .unansweredExactlyOnce, .refused, .refused),

        Row(.refused, .answered, .nothing),
        Row(.refused, .unrelated, .refused),
        Row(.refused, .closed, .refused, .refused),
        Row(.refused, .disconnected, .refused, .refused),
        Row(.refused, .unansweredAtLeastOnce, .refused),
        Row(.refused, .unansweredExactlyOnce, .refused, .refused),
    ]

    @Test func `the table has each state with each event`() {
        #expect(Self.rows.count == Known.allCases.count * End.allCases.count)
        for known in Known.allCases {
            #expect(Self.rows.filter { $0.before == known }.map(\.end) == End.allCases, "\(known)")
        }
    }

    @Test(arguments: rows) func `what the end of a connection proves`(row: Row) {
        for isBetter in [false, true] {
            var scene = Scene(row.before)
            #expect(scene.known == row.before)
            let verdict = scene.connection(row.end, isBetter: isBetter)
            #expect(verdict == (isBetter ? row.verdictOfBetter : row.verdict), "\(row), better: \(isBetter)")
            #expect(scene.known == (isBetter ? row.afterBetter : row.after), "\(row), better: \(isBetter)")
        }
    }

    @Test func `how a request leaves follows from what is known of it`() {
        for known in Known.allCases {
            let quarantine = Scene(known).quarantine
            switch known {
            // Requests are sent one at a time after three ends.
            case .nothing, .refused: #expect(quarantine.turn(of: Self.topic) == .alone, "\(known)")
            case .accused, .accusedByAnswer, .passedOver, .passedOverByAnswer:
                #expect(quarantine.turn(of: Self.topic) == .later, "\(known)")
            }
        }
        #expect(Quarantine().turn(of: Self.topic) == .freely)
    }

    @Test func `behind a message of QoS 0 nothing is sent alone before PINGREQ is answered`() {
        var quarantine = Quarantine()
        #expect(quarantine.isProven && !quarantine.needsPing)
        quarantine.countWritten(100, packets: 1, atMostOnce: 1)
        #expect(!quarantine.isProven && quarantine.needsPing)
        quarantine.pinged()
        #expect(!quarantine.isProven && !quarantine.needsPing)
        quarantine.countWritten(100, packets: 1, atMostOnce: 1)
        #expect(quarantine.needsPing)
        quarantine.pinged()
        quarantine.pingAnswered(at: 1)
        #expect(!quarantine.isProven)
        quarantine.pingAnswered(at: 2)
        #expect(quarantine.isProven && !quarantine.needsPing)
    }

    /// Connections with one request that may be at fault.
    private struct Scene {
        var quarantine = Quarantine()
        var now: Int64 = 0

        /// - Parameter known: what is known of the request at the beginning.
        init(_ known: Known) {
            for _ in 1...3 {
                quarantine.connectionBegan(at: now)
                pass(1)
                _ = quarantine.connectionEnded(
                    .closed, unanswered: .init(hasSubscription: false, messages: 1...9), written: 0, at: now)
            }
            let ends: [End] =
                switch known {
                case .nothing: []
                case .accused: [.closed]
                case .accusedByAnswer: [.disconnected]
                case .passedOver: [.closed, .closed]
                case .passedOverByAnswer: [.closed, .disconnected]
                case .refused: [.disconnected, .disconnected]
                }
            for end in ends { _ = connection(end, isBetter: false) }
        }

        private mutating func pass(_ seconds: Int64) { now += seconds * 1_000_000_000 }

        /// A connection on which the request is sent alone.
        mutating func connection(_ end: End, isBetter: Bool) -> Quarantine.Verdict? {
            quarantine.connectionBegan(at: now)
            pass(1)
            if isBetter {
                quarantine.countWritten(10_000, packets: 100, atMostOnce: 0)
                quarantine.answered(QuarantineTests.other)
                quarantine.pinged()
                pass(100)
                quarantine.pingAnswered(at: now)
            }
            quarantine.countWritten(100, packets: 1, atMostOnce: 0)
            quarantine.pinged()
            quarantine.sentAlone(QuarantineTests.topic, isExactlyOnce: end.isExactlyOnce, at: now)
            pass(1)
            guard let connectionEnd = end.connectionEnd else {
                quarantine.answered(QuarantineTests.topic)
                quarantine.becameQuiet(written: 0)
                return nil
            }
            return quarantine.connectionEnded(
                connectionEnd, unanswered: .init(hasSubscription: false, messages: 1...1), written: 0, at: now)
        }

        var known: Known {
            switch quarantine.standing(of: QuarantineTests.topic) {
            case nil: .nothing
            case .refused: .refused
            case .accused(let charge):
                switch (charge.ends, charge.isEvident) {
                case (1, false): .accused
                case (1, true): .accusedByAnswer
                case (_, false): .passedOver
                case (_, true): .passedOverByAnswer
                }
            }
        }
    }
}
