import MessagingWire
import STOMPCore

@testable import MessagingJudge

/// What a client and a server of STOMP write to each other, one after the other: the steps of a test of a judge.
struct STOMPScript {
    enum Step {
        case client(String)
        case server(String)
        /// Seconds pass.
        case wait(Int64)
    }

    private(set) var steps: [Step] = []

    private func adding(_ step: Step) -> STOMPScript {
        var script = self
        script.steps.append(step)
        return script
    }

    /// A frame: its lines, separated by blanks, and its body.
    func client(_ lines: String, body: String = "") -> STOMPScript { adding(.client(Self.frame(lines, body))) }
    func server(_ lines: String, body: String = "") -> STOMPScript { adding(.server(Self.frame(lines, body))) }
    func client(bytes: String) -> STOMPScript { adding(.client(bytes)) }
    func wait(_ seconds: Int64) -> STOMPScript { adding(.wait(seconds)) }

    private static func frame(_ lines: String, _ body: String) -> String {
        lines.split(separator: " ").joined(separator: "\n") + "\n\n" + body + "\0"
    }

    /// A client that is accepted, with heart-beats every ten seconds.
    static func connected(_ version: String) -> STOMPScript {
        STOMPScript().client("CONNECT accept-version:\(version) host:h client-id:c heart-beat:10000,0")
            .server("CONNECTED version:\(version) heart-beat:0,10000")
    }

    /// A subscription of this id, and a message of it; `ack` is for 1.2.
    func subscribed(_ id: String, _ mode: String) -> STOMPScript {
        client("SUBSCRIBE id:\(id) destination:/queue/q ack:\(mode)")
    }

    func message(_ subscription: String, _ id: String) -> STOMPScript {
        server("MESSAGE destination:/queue/q subscription:\(subscription) message-id:m\(id) ack:\(id)", body: "x")
    }

    // MARK: Judging

    /// The clauses that a judge finds broken, in their order.
    ///
    /// - Parameter pieces: how many bytes it gets at a time.
    func judged(pieces: Int = .max) -> [Clause] { violations(pieces: pieces).map(\.clause) }

    func violations(pieces: Int = .max, _ options: JudgeOptions? = nil) -> [Violation] {
        var usual = JudgeOptions()
        usual.judgesTime = true
        var judge = STOMPJudge(options ?? usual)
        var now: Int64 = 0
        judge.opened(1)
        for step in steps {
            switch step {
            case .client(let text):
                Bytes.inPieces(Array(text.utf8), pieces) { judge.clientWrote($0.span.bytes, on: 1, at: now) }
            case .server(let text):
                Bytes.inPieces(Array(text.utf8), pieces) { judge.serverWrote($0.span.bytes, on: 1, at: now) }
            case .wait(let seconds): now += seconds * 1_000_000_000
            }
        }
        judge.closed(1)
        return judge.takeViolations()
    }
}
