/// Reads the track points of GPX 1.0 and 1.1, or the route points of a file that has no track, or the waypoints of a file
/// that has neither.
///
/// Takes what people's files have: any namespace prefix, extensions, empty segments, points with and without time. What
/// is wrong and not needed is left out.
struct GPXReader {
    private enum Kind: String, CaseIterable {
        case track = "trkpt"
        case route = "rtept"
        case waypoint = "wpt"
    }

    private var scanner: MarkupScanner
    private let name: String
    private var points: [Kind: Rows<Fix>] = [:]
    /// What is wrong with the file beside its points.
    private var leftOut = LeftOut(unit: "point")
    /// The elements that are open, from the outside in.
    private var open: [String] = []
    /// How many of them are open up to the outermost `extensions`: vendors have a `time` and more there, none of it ours.
    private var extensionDepth: Int?
    /// The point that is open, with its line; nil if it is not needed or has no position.
    private var point: Fix?
    private var pointLine = 0
    private var text: String?
    /// Of the track, the route or the whole file: the first that there is.
    private var place: String?

    /// - Parameter wantsWaypoints: Whether the waypoints are the track, whatever else the file has.
    /// - Throws: `.dataError` with the line of the first mistake if the file is no track.
    static func read(
        _ contents: [UInt8], name: String, wantsWaypoints: Bool = false
    ) throws(DeviceFailure) -> Recording<Fix> {
        var reader = GPXReader(scanner: MarkupScanner(contents), name: name)
        try reader.readRoot()
        return try reader.recording(wantsWaypoints)
    }

    private init(scanner: MarkupScanner, name: String) {
        self.scanner = scanner
        self.name = name
    }

    // MARK: The result

    private func recording(_ wantsWaypoints: Bool) throws(DeviceFailure) -> Recording<Fix> {
        let kinds: [Kind] = wantsWaypoints ? [.waypoint] : [.track, .route]
        let found = kinds.compactMap { points[$0] }
        // A track that cannot be replayed is no reason to leave a route alone.
        if let rows = found.first(where: \.isGood) ?? found.first(where: { !$0.isEmpty }) ?? found.first {
            var leftOut = leftOut
            for other in found.prefix(while: { rows.isGood && !$0.isGood }) { leftOut.merge(other.leftOutAsAWhole) }
            return try rows.recording(named: name, place: place, leftOut)
        }
        let waypoints = points[.waypoint] ?? Rows(step: LocationCSV.step, unit: "point")
        if waypoints.haveRisingTimes { return try waypoints.recording(named: name, place: place, leftOut) }
        if waypoints.isEmpty, !open.isEmpty, let cut = leftOut.problem(.rest) {
            throw DeviceFailure(.dataError, "\(name), \(cut)")
        }
        let only =
            waypoints.isEmpty
            ? "" : ", only waypoints: \(waypoints.count). --waypoints replays them in the order of the file"
        let missing = wantsWaypoints ? "no waypoints" : "no track points and no route points"
        throw DeviceFailure(.dataError, "\(name) has \(missing)\(only)")
    }

    // MARK: The file

    private mutating func readRoot() throws(DeviceFailure) {
        while let token = scanner.next() {
            switch token {
            case .start(let element, _, let isEmpty, let problem):
                guard element == "gpx" else {
                    throw DeviceFailure(
                        .dataError,
                        "\(name), line \(scanner.line()): the file is not GPX: it starts with <\(element.printable)>")
                }
                if let problem { leaveOut(.markup, problem) }
                if !isEmpty {
                    open = [element]
                    readContents()
                }
                return
            case .mistake(let problem): leaveOut(.markup, problem)
            case .end: leaveOut(.markup, "an element is closed that is not open")
            case .text: break
            }
        }
        let isBlank = !scanner.bytes.contains { $0 > 0x20 }
        throw DeviceFailure(
            .dataError,
            isBlank ? "\(name), line 1: the file is empty" : "\(name), line \(scanner.lastLine()): \(Self.cutOff)")
    }

    private static let cutOff = "the file ends in the middle; it was cut off"

    private mutating func readContents() {
        while !open.isEmpty {
            scanner.readsText = text != nil
            guard let token = scanner.next() else {
                let line = scanner.lastLine()
                return leftOut.add(.rest, Self.cutOff, line: line)
            }
            switch token {
            case .start(let element, let attributes, let isEmpty, let problem):
                start(element, attributes, problem)
                if isEmpty { end() }
            case .end(let element): close(element)
            case .text(let text, let problem):
                if let problem { leaveOut(.markup, problem) }
                if let length = self.text?.utf8.count, length < 256 { self.text? += text }
            case .mistake(let problem): leaveOut(.markup, problem)
            }
        }
        // Tags, text or zeros; remarks may follow.
        scanner.readsText = true
        while let token = scanner.next() {
            if case .text(let text, _) = token, text.unicodeScalars.allSatisfy({ $0.properties.isWhitespace }) {
                continue
            }
            return leaveOut(.rest, "what follows </gpx>")
        }
    }

    private mutating func leaveOut(_ kind: LeftOut.Kind, _ problem: String) {
        let line = scanner.line()
        leftOut.add(kind, problem, line: line)
    }

    /// Closes the elements inside one whose end is here.
    private mutating func close(_ element: String) {
        if open.last != element {
            leaveOut(.markup, "an element is closed by another's tag")
            guard open.contains(element) else { return }
            while open.last != element { end() }
        }
        end()
    }

    // MARK: Elements

    private mutating func start(_ element: String, _ attributes: [(name: String, value: String)], _ problem: String?) {
        let parent = open.last
        open.append(element)
        guard extensionDepth == nil else { return }
        if element == "extensions" {
            extensionDepth = open.count
        } else if let kind = Kind(rawValue: element) {
            startPoint(kind, attributes, problem)
            return
        } else if element == "time", point != nil, parent.flatMap(Kind.init) != nil {
            text = ""
        } else if element == "name", ["trk", "rte", "metadata", "gpx"].contains(parent), place == nil {
            text = ""
        }
        if let problem { leaveOut(.markup, problem) }
    }

    private mutating func startPoint(
        _ kind: Kind, _ attributes: [(name: String, value: String)], _ problem: String?
    ) {
        pointLine = scanner.line()
        do throws(RowProblem) {
            if let problem { throw RowProblem(message: problem) }
            func coordinate(_ attribute: String, _ meaning: String) throws(RowProblem) -> Double {
                guard let text = attributes.first(where: { $0.name == attribute })?.value else {
                    throw RowProblem(message: "a \(kind.rawValue) without lat and lon")
                }
                return try number(text.trimmed, meaning)
            }
            point = try Fix(wrapping: coordinate("lat", "latitude"), coordinate("lon", "longitude"))
        } catch {
            point = nil
            points[kind, default: Rows(step: LocationCSV.step, unit: "point")].leftOut
                .add(.point, error.message, line: pointLine)
        }
    }

    /// Ends the innermost element.
    private mutating func end() {
        guard let element = open.popLast() else { return }
        if let depth = extensionDepth {
            if open.count < depth { extensionDepth = nil }
        } else if let text = text.take()?.trimmed, element == "time" || element == "name" {
            if element == "name" {
                place = text.isEmpty ? nil : text
            } else if !text.isEmpty {
                point?.time = Timestamp(recorded: text)
                if point?.time == nil { leaveOut(.time, Timestamp.problem(text)) }
            }
        } else if let kind = Kind(rawValue: element), let fix = point.take() {
            points[kind, default: Rows(step: LocationCSV.step, unit: "point")].add(fix, at: fix.time, line: pointLine)
        }
    }
}

extension String {
    /// Without the blanks and zeros around it.
    fileprivate var trimmed: String {
        // Usually there are none.
        if let first = utf8.first, let last = utf8.last, (0x21...0x7E).contains(first), (0x21...0x7E).contains(last) {
            return self
        }
        let isBlank = { (scalar: Unicode.Scalar) in scalar.properties.isWhitespace || scalar == "\0" }
        let scalars = unicodeScalars.drop(while: isBlank)
        return String(String.UnicodeScalarView(scalars.reversed().drop(while: isBlank).reversed()))
    }
}
