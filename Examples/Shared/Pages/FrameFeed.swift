import Messaging

/// What the inspector page asks for.
///
///     GET  /frames.json?since=N    the frames after number N and what became of the rest; N is the last answer's cursor
///     GET  /frame.json?number=N    everything about one frame
///     GET  /frames.pcapng          all frames, for Wireshark
///     POST /frames/pause, /frames/resume, /frames/clear
enum FrameFeed: String {
    case frames = "/frames.json"
    case frame = "/frame.json"
    case capture = "/frames.pcapng"
    case pause = "/frames/pause"
    case resume = "/frames/resume"
    case clear = "/frames/clear"

    struct Answer {
        var contentType = "application/json; charset=utf-8"
        var fields: [String] = []
        var body: [UInt8]
    }

    /// Octets of a frame that the page shows.
    private static let shownOctets = 1024
    /// Octets of a frame's note in a row of the page's table.
    private static let longestNote = 160

    init?(_ path: String) {
        self.init(rawValue: path)
    }

    var method: String {
        switch self {
        case .frames, .frame, .capture: "GET"
        case .pause, .resume, .clear: "POST"
        }
    }

    /// Nil when what was asked for is not there.
    func answer(from log: FrameLog, _ request: PageRequest) -> Answer? {
        switch self {
        case .frames: break
        case .frame:
            guard let frame = request.parameter("number").flatMap({ UInt64($0) }).flatMap(log.frame) else { return nil }
            return Answer(body: Array(Self.details(frame).utf8))
        case .capture:
            return Answer(
                contentType: "application/x-pcapng",
                fields: ["Content-Disposition: attachment; filename=\"frames.pcapng\""], body: log.pcapng())
        case .pause: log.pause()
        case .resume: log.resume()
        case .clear: log.clear()
        }
        // Nothing newer than the highest number, for who only wants something done.
        let since = self == .frames ? request.parameter("since").flatMap { UInt64($0) } ?? 0 : .max
        return Answer(body: Array(Self.text(log.snapshot(since: since)).utf8))
    }

    private static func text(_ snapshot: FrameLog.Snapshot) -> String {
        let rows = snapshot.frames.map(row).joined(separator: ",\n")
        return """
            {"cursor":\(snapshot.cursor),"missed":\(snapshot.missedCount),"dropped":\(snapshot.droppedCount),\
            "skipped":\(snapshot.skippedCount),"clears":\(snapshot.clearCount),"paused":\(snapshot.isPaused),\
            "frames":[\(rows)]}
            """
    }

    /// What stands in the table.
    private static func row(_ frame: LoggedFrame) -> String {
        let note = frame.note
        let shown =
            note.utf8.count <= longestNote ? note : String(decoding: note.utf8.prefix(longestNote), as: UTF8.self) + "…"
        return "{" + head(frame) + ",\"note\":\(JSONText.quoted(shown))}"
    }

    private static func details(_ frame: LoggedFrame) -> String {
        let fields = frame.fields.map { "[\(JSONText.quoted($0.name)),\(JSONText.quoted($0.value))]" }
        let digits = frame.bytes.prefix(shownOctets).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
        return """
            {\(head(frame)),"protocol":\(JSONText.quoted(frame.protocolName)),"connection":\(frame.connection),\
            "payload":\(frame.payload.map(JSONText.quoted) ?? "null"),"payloadSize":\(frame.payloadCount),\
            "octets":"\(digits)","fields":[\(fields.joined(separator: ","))]}
            """
    }

    private static func head(_ frame: LoggedFrame) -> String {
        """
        "number":\(frame.number),"time":\(frame.time),"sent":\(frame.direction == .sent),\
        "client":\(JSONText.quoted(frame.client)),"type":\(JSONText.quoted(frame.type)),"size":\(frame.size),\
        "destination":\(frame.destination.map(JSONText.quoted) ?? "null"),"qos":\(frame.qos.map(String.init) ?? "null")
        """
    }
}
