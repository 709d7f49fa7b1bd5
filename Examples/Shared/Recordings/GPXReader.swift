import Foundation

#if canImport(FoundationXML)
    import FoundationXML
#endif

/// Reads the track points of GPX 1.0 and 1.1, or the route points of a file that has no track.
///
/// Tolerates what people's files have: any namespace prefix, extensions, empty segments, points with and without time.
final class GPXReader: NSObject, XMLParserDelegate {
    private let name: String
    private var track: Recording<Fix>
    private var route: Recording<Fix>
    private var failure: DeviceFailure?
    /// What to say if the parser stops at a prefix without a namespace; it may go on.
    private var undeclaredPrefix: DeviceFailure?
    private var sawRoot = false
    private var waypoints = 0
    /// Elements open inside `extensions`: vendors have a `time` and more there, none of it ours.
    private var extensionDepth = 0
    private var point: Fix?
    private var text: String?
    /// The elements that are open, from the outside in.
    private var open: [String] = []
    /// Of the track, the route or the whole file: the first that there is.
    private var place: String?
    private let ending: () -> FileEnding?

    private init(name: String, ending: @escaping () -> FileEnding?) {
        self.name = name
        self.ending = ending
        track = Recording(name: name, step: LocationCSV.step)
        route = Recording(name: name, step: LocationCSV.step)
    }

    /// - Parameter ending: How the file ends, which tells a mistake in it from a file that was cut off. Called after a
    ///   mistake only.
    /// - Throws: `.dataError` with the line of the first mistake.
    static func read(
        _ stream: InputStream, name: String, ending: @escaping () -> FileEnding?
    ) throws(DeviceFailure) -> Recording<Fix> {
        let reader = GPXReader(name: name, ending: ending)
        // A stream, not Data: the system's XML library gives up after ten million bytes of Data, and a stream needs
        // no memory for the file.
        let parser = XMLParser(stream: stream)
        parser.shouldProcessNamespaces = true
        parser.delegate = reader
        // The result is true after some errors on Linux, so only what the delegate heard counts.
        _ = parser.parse()
        return try reader.result()
    }

    private func result() throws(DeviceFailure) -> Recording<Fix> {
        if let failure { throw failure }
        if let undeclaredPrefix, !open.isEmpty || !sawRoot { throw undeclaredPrefix }
        guard sawRoot else { throw DeviceFailure(.dataError, "\(name), line 1: the file is empty") }
        var recording = track.isEmpty ? route : track
        recording.place = place
        guard !recording.isEmpty else {
            let found = waypoints > 0 ? ", only \(waypoints) waypoints" : ""
            throw DeviceFailure(.dataError, "\(name) has no track points and no route points\(found)")
        }
        return recording.withoutWrongTimes()
    }

    private func fail(_ parser: XMLParser, _ message: String, mayBeCutOff: Bool = true) {
        guard failure == nil else { return }
        // What the XML library calls the mistake depends on where in an element the file ends.
        if mayBeCutOff, let ending = ending(), parser.lineNumber >= ending.lastLine, ending.isCutOff {
            failure = DeviceFailure(
                .dataError, "\(name), line \(ending.lastLine): the file ends in the middle; it was cut off")
            return parser.abortParsing()
        }
        failure = DeviceFailure(.dataError, "\(place(parser)): \(message)")
        parser.abortParsing()
    }

    private func place(_ parser: XMLParser) -> String {
        "\(name), line \(max(1, parser.lineNumber)), column \(max(1, parser.columnNumber))"
    }

    func parser(
        _ parser: XMLParser, didStartElement element: String, namespaceURI: String?, qualifiedName: String?,
        attributes: [String: String]
    ) {
        guard failure == nil else { return }
        defer { open.append(element) }
        if !sawRoot {
            sawRoot = true
            if element != "gpx" {
                fail(
                    parser, "the file is not GPX: it starts with <\(element.printable)>",
                    mayBeCutOff: "gpx".hasPrefix(element))
            }
        } else if extensionDepth > 0 || element == "extensions" {
            extensionDepth += 1
        } else if element == "trkpt" || element == "rtept" {
            start(parser, element, attributes)
        } else if element == "time", point != nil {
            text = ""
        } else if element == "name", ["trk", "rte", "metadata", "gpx"].contains(open.last) {
            text = ""
        } else if element == "wpt" {
            waypoints += 1
        }
    }

    private func start(_ parser: XMLParser, _ element: String, _ attributes: [String: String]) {
        guard let lat = attributes["lat"], let lon = attributes["lon"] else {
            fail(parser, "a \(element) without lat and lon")
            return
        }
        do throws(RowProblem) {
            let trimmed = [lat, lon].map { $0.trimmingCharacters(in: .whitespacesAndNewlines) }
            let fix = Fix(latitude: try number(trimmed[0], "latitude"), longitude: try number(trimmed[1], "longitude"))
            if let problem = Fix.problem(latitude: fix.latitude, longitude: fix.longitude) {
                throw RowProblem(message: problem)
            }
            point = fix
        } catch {
            fail(parser, error.message)
        }
    }

    func parser(_ parser: XMLParser, foundCharacters string: String) {
        guard let length = text?.utf8.count, length < 256 else { return }
        text? += string
    }

    func parser(_ parser: XMLParser, didEndElement element: String, namespaceURI: String?, qualifiedName: String?) {
        guard failure == nil else { return }
        open.removeLast()
        if extensionDepth > 0 {
            extensionDepth -= 1
        } else if element == "name", let text {
            self.text = nil
            let trimmed = text.trimmingCharacters(in: .whitespacesAndNewlines)
            if place == nil, !trimmed.isEmpty { place = trimmed }
        } else if element == "time", let text {
            self.text = nil
            let trimmed = text.trimmingCharacters(in: .whitespacesAndNewlines)
            guard !trimmed.isEmpty else { return }
            point?.time = Timestamp(recorded: trimmed)
            if point?.time == nil {
                fail(parser, "'\(trimmed.printable)' is not an ISO 8601 date and time")
            }
        } else if element == "trkpt" || element == "rtept", let fix = point {
            point = nil
            if element == "trkpt" {
                track.append(fix, at: fix.time)
            } else {
                route.append(fix, at: fix.time)
            }
        }
    }

    func parser(_ parser: XMLParser, parseErrorOccurred error: any Error) {
        let code = (error as NSError).code
        guard code != 201 else {
            // The names that matter are found all the same.
            undeclaredPrefix =
                undeclaredPrefix
                ?? DeviceFailure(.dataError, "\(place(parser)): a prefix is used without its xmlns:")
            return
        }
        let message =
            switch code {
            case 4: "the file is not XML"
            case 5: "the file ends in the middle"
            case 9, 32, 81: "a character or an encoding that is not XML"
            case 23, 26, 68: "a & that is not written &amp;, or a name that XML does not know"
            case 38: "a < in the value of an attribute, which is written &lt;"
            case 39: "the value of an attribute is not in quotes"
            case 40: "the value of an attribute has no closing quote"
            case 41: "an attribute without a value"
            case 42: "an attribute is given twice"
            case 65: "a space is missing between two attributes"
            case 73: "a tag without its closing >"
            case 76: "an element is closed by another's tag"
            case 77: "an element is not closed"
            default: "not well-formed XML (number \(code) of the XML library)"
            }
        fail(parser, message)
    }
}
