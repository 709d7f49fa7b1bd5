import Foundation
import TestSupport
import Testing

@testable import MessagingDeviceSupport

/// One track in all the forms in which devices and people write it, and what becomes of each.
@Suite(.turns)
struct TrackFormTests {
    enum Outcome: Sendable {
        /// All of it, without a word.
        case read
        /// What matters of it, with this in the note.
        case corrected(String)
        case refused(String)
    }

    struct Form: Sendable, CustomTestStringConvertible {
        let name: String
        let bytes: [UInt8]
        let outcome: Outcome

        init(_ name: String, _ text: String, _ outcome: Outcome = .read) {
            self.init(name, bytes: Array(text.utf8), outcome)
        }

        init(_ name: String, bytes: [UInt8], _ outcome: Outcome = .read) {
            self.name = name
            self.bytes = bytes
            self.outcome = outcome
        }

        var testDescription: String { name }
    }

    private static let place = "Rund um den See & zurück"
    private static let positions = [("45.0", "13.0"), ("45.001", "13.001"), ("45.002", "13.002"), ("45.003", "13.003")]
    private static let times = ["15:32:30", "15:32:31.25", "15:32:32", "15:32:33.5"]
    private static let offsets: [Int64] = [0, 1_250_000_000, 2_000_000_000, 3_500_000_000]

    private func read(_ form: Form) throws -> Recording<Fix> {
        try withFile(bytes: form.bytes) { try RecordingLoader.locations(path: $0) }
    }

    private func expectTheTrack(_ track: Recording<Fix>, _ form: Form, sourceLocation: SourceLocation) {
        #expect(
            track.values.map(\.latitude) == [45, 45.001, 45.002, 45.003], "\(form.name)", sourceLocation: sourceLocation
        )
        #expect(
            track.values.map(\.longitude) == [13, 13.001, 13.002, 13.003], "\(form.name)",
            sourceLocation: sourceLocation)
        #expect(track.offsets == Self.offsets, "\(form.name)", sourceLocation: sourceLocation)
    }

    /// Reads a form and compares it with what is to become of it.
    @discardableResult
    private func check(
        _ form: Form, sourceLocation: SourceLocation = #_sourceLocation
    ) throws -> Recording<Fix>? {
        switch form.outcome {
        case .read:
            let track = try read(form)
            expectTheTrack(track, form, sourceLocation: sourceLocation)
            #expect(track.note == nil, "\(form.name)", sourceLocation: sourceLocation)
            return track
        case .corrected(let note):
            let track = try read(form)
            expectTheTrack(track, form, sourceLocation: sourceLocation)
            #expect(
                track.note?.contains(note) == true, "\(form.name): \(track.note ?? "no note")",
                sourceLocation: sourceLocation)
            return track
        case .refused(let message):
            let failure = failure({ try read(form) }, sourceLocation: sourceLocation)
            #expect(failure?.status == .dataError, sourceLocation: sourceLocation)
            #expect(
                failure?.message.contains(message) == true, "\(failure?.message ?? "")", sourceLocation: sourceLocation)
            return nil
        }
    }

    // MARK: Forms that are right

    private static func point(_ index: Int, _ element: String, _ decoration: String) -> String {
        let position = "lat=\"\(positions[index].0)\" lon=\"\(positions[index].1)\""
        let time = "2022-03-27T\(times[index])"
        return switch decoration {
        case "comments": "<\(element) \(position)><!-- a <time> --><time><!-- x -->\(time)Z</time></\(element)>"
        case "CDATA": "<\(element) \(position)><time><![CDATA[\(time)Z]]></time></\(element)>"
        case "references":
            "<\(element) \(position)><time>\(time.replacing(":", with: "&#58;"))&#x5A;</time></\(element)>"
        case "extensions":
            "<\(element) \(position.replacing("\"", with: "'"))><ele>3</ele><time> \(time)+00:00 </time><name>P</name>"
                + "<extensions><x:time>never</x:time><trkpt lat='99' lon='0'/></extensions></\(element)>"
        default: "<\(element) \(position)>\n<time>\(time)Z</time></\(element)>"
        }
    }

    private static func name(_ decoration: String) -> String {
        switch decoration {
        case "CDATA": "<![CDATA[\(place)]]>"
        case "references": "Rund um den See &#x26; zur&#252;ck"
        default: place.replacing("&", with: "&amp;")
        }
    }

    private static func text(_ encoding: String, _ container: String, _ kind: String, _ decoration: String) -> String {
        let element = kind == "route" ? "rtept" : "trkpt"
        let points = (0..<4).map { point($0, element, decoration) }
        let name = "<name>\(name(decoration))</name>"
        let track =
            switch kind {
            case "route": "<rte>\(name)\(points.joined(separator: "\n"))</rte>"
            case "segments":
                "<trk>\(name)<trkseg/><trkseg>\(points[0])\n\(points[1])</trkseg><trkseg></trkseg>\n<trkseg>\(points[2])\(points[3])</trkseg></trk>"
            case "tracks":
                "<wpt lat='1' lon='1'/><trk>\(name)<trkseg>\(points[0])</trkseg></trk>\n<trk><trkseg>\(points[1...].joined())</trkseg></trk>"
            default: "<trk>\(name)<trkseg>\n\(points.joined(separator: "\n"))\n</trkseg></trk>"
            }
        var file =
            switch container {
            case "1.0": "<gpx version=\"1.0\" xmlns=\"http://www.topografix.com/GPX/1/0\">\(track)</gpx>\n"
            case "no namespace": "<gpx>\(track)</gpx>"
            case "undeclared prefix": "<gpx version='1.1' xsi:schemaLocation='a b'>\(track)</gpx>"
            default: "<gpx version=\"1.1\" creator=\"t\" xmlns=\"http://www.topografix.com/GPX/1/1\">\(track)</gpx>\n"
            }
        if container == "prefix" {
            file = prefixed(file).replacing("xmlns=", with: "xmlns:g=")
        }
        return "<?xml version=\"1.0\" encoding=\"\(encoding)\"?>\n" + file
    }

    /// The same file with `g:` before the names of elements that have no prefix.
    private static func prefixed(_ file: String) -> String {
        let parts = file.split(separator: "<", omittingEmptySubsequences: false)
        return parts.enumerated().map { index, part in
            let name = part.drop { $0 == "/" }
            guard index > 0, name.first?.isLetter == true, !name.hasPrefix("x:") else { return String(part) }
            return (part.hasPrefix("/") ? "/g:" : "g:") + name
        }.joined(separator: "<")
    }

    private static func encode(_ text: String, _ encoding: String, mark: Bool) -> [UInt8] {
        switch encoding {
        case "UTF-16LE", "UTF-16BE":
            let units = (mark ? [0xFEFF] : []) + Array(text.utf16)
            return units.flatMap { unit in
                let bytes = [UInt8(unit & 0xFF), UInt8(unit >> 8)]
                return encoding == "UTF-16LE" ? bytes : bytes.reversed()
            }
        case "ISO-8859-1", "windows-1252": return text.unicodeScalars.map { UInt8($0.value) }
        default: return (mark ? [0xEF, 0xBB, 0xBF] : []) + Array(text.utf8)
        }
    }

    @Test(arguments: [
        ("UTF-8", true), ("UTF-8", false), ("UTF-16LE", true), ("UTF-16LE", false), ("UTF-16BE", true),
        ("UTF-16BE", false), ("ISO-8859-1", false), ("windows-1252", false),
    ])
    func `equal tracks read alike in every form`(encoding: String, mark: Bool) throws {
        var isCRLF = false
        for container in ["1.1", "1.0", "no namespace", "prefix", "undeclared prefix"] {
            for kind in ["track", "segments", "tracks", "route"] {
                for decoration in ["plain", "comments", "CDATA", "references", "extensions"] {
                    // Each form with the one or the other, in turn.
                    isCRLF.toggle()
                    let text = Self.text(encoding, container, kind, decoration)
                        .replacing("\n", with: isCRLF ? "\r\n" : "\n")
                    let name = "\(encoding), \(container), \(kind), \(decoration)\(isCRLF ? ", CRLF" : "")"
                    let form = Form(name, bytes: Self.encode(text, encoding, mark: mark))
                    #expect(try check(form)?.place == Self.place, "\(name)")
                }
            }
        }
    }

    // MARK: Forms with mistakes

    private static let points = (0..<4).map { point($0, "trkpt", "plain") }

    private static func file(
        _ points: [String] = points, before: String = "", name: String = "Tour", after: String = "",
        tag: String = "<gpx version=\"1.1\" xmlns=\"http://www.topografix.com/GPX/1/1\">"
    ) -> String {
        "\(before)<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\(tag)<trk><name>\(name)</name><trkseg>\n"
            + points.joined(separator: "\n") + "\n</trkseg></trk></gpx>\(after)"
    }

    private static func with(_ extra: String) -> String {
        file([points[0], points[1], extra, points[2], points[3]])
    }

    private static let clock = points.map { $0.replacing("2022-03-27T", with: "") }

    private static func timed(_ times: [String]) -> String {
        file(zip(positions, times).map { "<trkpt lat=\"\($0.0)\" lon=\"\($0.1)\"><time>\($1)</time></trkpt>" })
    }

    private static let mistakes: [Form] = [
        // Around the file.
        Form("blank lines first", file(before: "\n\n\n\n")), Form("spaces first", file(before: "          ")),
        Form("a thousand lines first", file(before: String(repeating: "\r\n", count: 1000))),
        Form("a mark and blanks first", file(before: "\u{FEFF} \n")),
        Form(
            "zeros behind the end", file(after: "\n" + String(repeating: "\0", count: 64)),
            .corrected("line 12: what follows </gpx>")),
        Form("text behind the end", file(after: "\nsaved by X\n"), .corrected("what follows </gpx>")),
        Form("a second file behind the end", file(after: "\n" + file()), .corrected("line 13: what follows </gpx>")),
        Form("blanks and remarks behind the end", file(after: " \r\n<!-- by X --> <?x y?>\n")),
        Form("an end that is cut off", String(file().dropLast(9)), .corrected("line 11: the file ends in the middle")),
        Form(
            "a point that is cut off", file().replacing("\n</trkseg></trk></gpx>", with: "\n<trkpt lat=\"45.004\" lo"),
            .corrected("line 11: the file ends in the middle")),
        // What the XML library warns of.
        Form("a relative name space", file(tag: "<gpx version=\"1.1\" xmlns=\"www.topografix.com/GPX/1/1\">")),
        Form("a name space that is no URI", file(tag: "<gpx xmlns=\"not a uri\" xmlns:x=\"\">")),
        Form("an unknown version of XML", file().replacing("?xml version=\"1.0\"", with: "?xml version=\"1.7\"")),
        Form("an unknown language and space", file(tag: "<gpx xml:lang='no_such_language!' xml:space='wide'>")),
        Form("an unknown encoding", file().replacing("UTF-8", with: "x-user-defined")),
        Form("a document type", file().replacing("\n<gpx", with: "<!DOCTYPE gpx [<!ENTITY a \"b\">]>\n<gpx")),
        // XML that is not well-formed.
        Form(
            "a bare &", file(name: "Tom & Ann"),
            .corrected("1 mistake in the XML, line 2: a & that is not written &amp;")),
        Form(
            "a name that XML does not know", file(name: "K&ouml;ln"),
            .corrected("line 2: a & that is not written &amp;")),
        Form("a bare <", with("<!-- --> 3 < 4"), .corrected("line 7: a < that is not written &lt;")),
        Form("an element that is not closed", with("<ele>3"), .corrected("an element is closed by another's tag")),
        Form(
            "an element that is not open", with("</ele>"), .corrected("line 7: an element is closed by another's tag")),
        Form(
            "a metadata tag without quotes", file().replacing("<trk>", with: "<bounds minlat=1 /><trk>"),
            .corrected("line 2: the value of an attribute is not in quotes")),
        Form(
            "an attribute twice", file().replacing("<trk>", with: "<trk a='1' a='2'>"),
            .corrected("line 2: an attribute is given twice")),
        Form("a character that XML does not have", with("<cmt>\u{1}</cmt>")),
        Form(
            "bytes that are no UTF-8", bytes: Array(file(name: "Z").utf8).map { $0 == UInt8(ascii: "Z") ? 0xFC : $0 },
            .refused("only one")),
        // Points.
        Form(
            "an empty position", with("<trkpt lat=\"\" lon=\"\"/>"),
            .corrected("Left out: 1 point, line 7: the latitude '' is not a number.")),
        Form("no position", with("<trkpt><ele>1</ele></trkpt>"), .corrected("line 7: a trkpt without lat and lon")),
        Form(
            "a position that is no number", with("<trkpt lat=\"nan\" lon=\"inf\"/>"),
            .corrected("the latitude 'nan' is not a number")),
        Form(
            "a position out of range", with("<trkpt lat=\"91\" lon=\"0\"/>"),
            .corrected("latitude 91.0 is outside -90...90")),
        Form(
            "two such", with("<trkpt lat=\"91\" lon=\"0\"/>\n<trkpt lat=\"0\" lon=\"400\"/>"),
            .corrected("2 points, first line 7: latitude 91.0")),
        Form(
            "a tag that is not closed", with("<trkpt lat=\"1\" lon=\"1\"\n<ele>1</ele></trkpt>"),
            .corrected("1 point, line 7: a tag without its closing >")),
        Form("blanks around a position", file().replacing("\"45.0\"", with: "\" 45.0\n\"")),
        // Times.
        Form("a time that belongs to no point", with("<time>noon</time>")),
        Form("a zone's name", timed(times.map { "2022-03-27T\($0)+02:00[Europe/Brussels]" })),
        Form("a zone's name behind a blank", timed(times.map { "2022-03-27 \($0) +0200 (CEST)" })),
        Form("UTC in words", timed(times.map { "2022-03-27 \($0) UTC" })),
        Form("the afternoon", timed(times.map { "2022-03-27T0\($0.dropFirst().replacing("5:", with: "3:")) PM" })),
        Form(
            "the afternoon with a space of its own", timed(times.map { "2022-03-27 3\($0.dropFirst(2))\u{202F}p.m." })),
        Form(
            "midnight as 24:00",
            timed(["2022-03-27T24:00:00Z", "2022-03-28T00:00:01.25Z", "2022-03-28T00:00:02Z", "2022-03-28T00:00:03.5Z"])
        ),
        Form("slashes in the date", timed(times.map { "2022/03/27 \($0)" })),
    ]

    @Test(arguments: mistakes) func `what is not needed is left out, and the track is read`(form: Form) throws {
        guard form.name != "bytes that are no UTF-8" else {
            #expect(try read(form).place == "ü")
            return
        }
        try check(form)
    }

    // MARK: Forms that are no tracks

    private static let noTracks: [Form] = [
        Form("nothing", "", .refused("line 1: the file ends without any values")),
        Form(
            "a web page", "<!DOCTYPE html><html><body></body></html>",
            .refused("line 1: the file is not GPX: it starts with <html>")),
        Form("KML", "<?xml version='1.0'?>\n<kml/>", .refused("line 2: the file is not GPX: it starts with <kml>")),
        Form("one point", file([points[0]]), .refused("has only one point: a replay needs two")),
        Form("no point", file([]), .refused("has no track points and no route points")),
        Form(
            "one good point and a bad one", file([points[0], "<trkpt/>"]),
            .refused("line 5: a trkpt without lat and lon")),
        Form(
            "more bad points than good ones",
            file(points[..<2] + Array(repeating: "<trkpt lat=\"99\" lon=\"0\"/>", count: 3)),
            .refused("line 7: latitude 99.0 is outside -90...90; 3 of 5 are bad")),
        Form(
            "a track that is cut off early", String(file().prefix(200)),
            .refused("the file ends in the middle; it was cut off")),
        Form("gzip", bytes: [0x1F, 0x8B, 8, 0], .refused("is compressed with gzip: unpack it first, with gunzip")),
        Form("a ZIP archive", bytes: [0x50, 0x4B, 3, 4], .refused("is a ZIP archive: unpack it first")),
    ]

    @Test(arguments: noTracks) func `a file is refused if fewer than two points are good, or more are bad`(form: Form)
        throws
    {
        try check(form)
    }

    private static let badTracks = [
        ("", nil), (points[0], "1 point, line 2: it is of a track with too few good points."),
        ("<trkpt/>", "1 point, line 2: a trkpt without lat and lon."),
        (points[0] + "<trkpt/><trkpt/>", "3 points, first line 3: a trkpt without lat and lon."),
        (points[0] + points[1] + "<trkpt/><trkpt/><trkpt/>", "5 points, first line 4: a trkpt without lat and lon."),
    ]

    @Test(arguments: badTracks) func `a track that cannot be replayed hides no route`(points: String, note: String?)
        throws
    {
        let route = (0..<4).map { Self.point($0, "rtept", "plain") }.joined()
        let file = "<gpx><trk><trkseg>\n\(points)</trkseg></trk><rte>\(route)</rte></gpx>"
        let track = try check(Form("a route", file, note.map { .corrected("Left out: \($0)") } ?? .read))
        #expect(track?.note == note.map { "Left out: \($0)" })
    }

    @Test func `as many bad points as good ones are left out`() throws {
        let bad = "<trkpt lat=\"99\" lon=\"0\"/>"
        let track = try withFile(Self.file([Self.points[0], bad, Self.points[1], bad])) {
            try RecordingLoader.locations(path: $0)
        }
        #expect(track.count == 2)
        #expect(track.note == "Left out: 2 points, first line 5: latitude 99.0 is outside -90...90.")
    }

    @Test func `a longitude beyond 180 degrees is wrapped`() throws {
        let file = Self.file(["-180.096474", "-179.903870", "190", "-360"].map { "<trkpt lat='66.51' lon='\($0)'/>" })
        let track = try withFile(file) { try RecordingLoader.locations(path: $0) }
        #expect(track.values.map(\.longitude) == [179.903526, -179.90387, -170, 0])
        #expect(track.note == nil)
        let csv = try withFile("lat,lng\n1,180.5\n1,-180.5\n1,180\n") { try RecordingLoader.locations(path: $0) }
        #expect(csv.values.map(\.longitude) == [-179.5, 179.5, 180])
    }

    // MARK: Waypoints

    private func waypoints(_ times: [String], rest: String = "", wanted: Bool = false) throws -> Recording<Fix> {
        let points = zip(Self.positions, times).map { position, time in
            "<wpt lat='\(position.0)' lon='\(position.1)'>\(time.isEmpty ? "" : "<time>\(time)</time>")<name>x</name></wpt>"
        }
        return try withFile("<gpx>\(points.joined())\(rest)</gpx>") {
            try RecordingLoader.locations(path: $0, wantsWaypoints: wanted)
        }
    }

    @Test func `waypoints are a track if there is no other and their times do not fall`() throws {
        let rising = Self.times.map { "2022-03-27T\($0)Z" }
        #expect(try waypoints(rising).offsets == Self.offsets)
        #expect(try waypoints([rising[0], rising[0], rising[2]]).count == 3)
        for (times, rest) in [
            ([rising[1], rising[0]], ""), ([rising[0], ""], ""), ([rising[0]], ""), (["", ""], ""),
        ] {
            let failure = failure { try waypoints(times, rest: rest) }
            #expect(failure?.message.contains("only waypoints: \(times.count). --waypoints replays them") == true)
        }
        let track = "<trk><trkseg><trkpt lat='1' lon='2'/><trkpt lat='1' lon='3'/></trkseg></trk>"
        #expect(try waypoints(rising, rest: track).values.map(\.longitude) == [2, 3])
        #expect(failure { try waypoints(rising, rest: "<rte><rtept lat='x' lon='2'/></rte>") } != nil)
    }

    @Test func `with the option, waypoints are the track whatever else there is`() throws {
        #expect(try waypoints(["", "", ""], wanted: true).count == 3)
        let track = "<trk><trkseg><trkpt lat='1' lon='2'/><trkpt lat='1' lon='3'/></trkseg></trk>"
        #expect(try waypoints(["", "", ""], rest: track, wanted: true).values[0].latitude == 45)
        let none = failure { try waypoints([], rest: track, wanted: true) }
        #expect(none?.message.hasSuffix("has no waypoints") == true)
    }

    // MARK: Times

    @Test func `one absurd date costs that date alone`() throws {
        for absurd in ["0001-01-01T00:00:00Z", "1970-01-01T00:00:07Z", "2036-02-07T06:28:16Z", "yesterday"] {
            var times = Self.times.map { "2022-03-27T\($0)Z" }
            times[1] = absurd
            let track = try withFile(Self.timed(times)) { try RecordingLoader.locations(path: $0) }
            #expect(track.offsets == [0, 1_000_000_000, 2_000_000_000, 3_500_000_000], "\(absurd)")
            #expect(track.values.map { $0.time == nil } == [false, true, false, false])
            #expect(track.note?.hasPrefix("Left out: 1 time, line 4: ") == true, "\(track.note ?? "")")
        }
    }

    @Test func `years between two parts of a file are not waited for`() throws {
        let times = ["2012-03-27T15:32:30Z", "2012-03-27T15:32:32Z", "2022-03-27T15:32:30Z", "2022-03-27T15:32:33Z"]
        let track = try withFile(Self.timed(times)) { try RecordingLoader.locations(path: $0) }
        #expect(track.offsets == [0, 2_000_000_000, 3_000_000_000, 6_000_000_000])
        #expect(track.values.allSatisfy { $0.time != nil })
        #expect(track.note == "A gap of more than a year between two recorded times is replayed as 1 s.")
    }

    // MARK: Tables

    private static let sensorLog = """
        loggingTime(txt),loggingSample(N),locationTimestamp_since1970(s),locationLatitude(WGS84),locationLongitude(WGS84),locationAltitude(m),motionYaw(rad),motionRoll(rad),motionPitch(rad)
        2023-06-17 12:47:00.504 +0200,1,1686998820.5,45.0,13.0,100.0,0.0,0.1,0.2
        2023-06-17 12:47:01.754 +0200,2,1686998821.75,45.001,13.001,100.0,0.1,0.1,0.2
        2023-06-17 12:47:02.504 +0200,3,1686998822.5,45.002,13.002,100.0,0.2,0.1,0.2
        2023-06-17 12:47:04.004 +0200,4,1686998824,45.003,13.003,100.0,0.2,0.1,0.2
        """

    private static let tables: [Form] = [
        Form("SensorLog", sensorLog),
        Form(
            "SensorLog without numbers of seconds", sensorLog.replacing("locationTimestamp_since1970(s)", with: "x(s)")),
        Form("units in brackets", table("Latitude [deg],Longitude [deg],Time [ms]", "0,1250,2000,3500")),
        Form("words in any order", table("gps_lat,gps_lng,gps_time_ms", "0,1250,2000,3500")),
        Form(
            "radians", "latitude(rad),longitude(rad),t(s)\n0.7853981633974483,0.22689280275926285,0\n",
            .refused("only one")),
        Form(
            "a row without a fix", table("lat,lng,ts_ms", "0,1250,2000,3500") + ",,9\n",
            .corrected("1 row, line 6: the latitude '' is not a number")),
        Form("zeros at the end", plain + "\0\0\0\0\n"),
        // A logger reserves space, and its power fails.
        Form("a thousand thousand zeros at the end", plain + zeros), Form("as many blanks", plain + blanks + "\n"),
        Form("zeros behind a row", String(plain.dropLast()) + zeros), Form("zeros before a row", gap(zeros)),
        Form("lines of blanks between rows", gap(blanks + "\n" + blanks + "\r\n")),
        Form("a long remark", gap("# " + long + "\n")),
        Form("a long line", gap(long + "\n"), .corrected("Left out: 1 row, line 3: longer than 65536 bytes.")),
        Form(
            "two long lines, one at the end", gap(long + "\n") + "1,2," + long,
            .corrected("Left out: 2 rows, first line 3: longer than 65536 bytes.")),
        Form(
            "text behind many blanks", plain + "45.004,13.004" + blanks + ",9\n",
            .corrected("Left out: 1 row, line 6: longer than 65536 bytes.")),
        // Encodings.
        Form("a byte order mark", bytes: encode(plain, "UTF-8", mark: true)),
        Form("CRLF", plain.replacing("\n", with: "\r\n")),
        Form("UTF-16 with a mark", bytes: encode(named, "UTF-16LE", mark: true)),
        Form("big-endian UTF-16 with a mark", bytes: encode(named, "UTF-16BE", mark: true)),
        Form("UTF-16 without a mark", bytes: encode(named, "UTF-16LE", mark: false)),
        Form("big-endian UTF-16 without a mark", bytes: encode(named, "UTF-16BE", mark: false)),
        Form("a name in UTF-8", named), Form("a name in Latin-1", bytes: encode(named, "ISO-8859-1", mark: false)),
        Form(
            "units in Latin-1",
            bytes: encode(table("Lat (°),Lng (°),Time [ms]", "0,1250,2000,3500"), "ISO-8859-1", mark: false)),
        Form(
            "a position that is no text", bytes: Array(plain.utf8) + [0xFF, 0x2C, 0x39, 0x0A],
            .corrected("1 row, line 6: the latitude 'ÿ' is not a number")),
        Form(
            "a header again", table("lat,lng,ts_ms", "0,1250,2000,3500") + "lat,lng,ts_ms\n",
            .corrected("line 6: the latitude 'lat' is not a number")),
        Form(
            "more bad rows than good ones", "1,2\n3,4\nx,1\ny,1\nz,1\n",
            .refused("line 3: the latitude 'x' is not a number; 3 of 5 are bad")),
    ]

    private static let plain = table("lat,lng,ts_ms", "0,1250,2000,3500")
    /// With a column that is not needed.
    private static let named = plain.replacing("\n", with: ",Zürich\n")
    private static let zeros = String(repeating: "\0", count: 1_000_000)
    private static let blanks = String(repeating: " ", count: 100_000)
    private static let long = String(repeating: "x", count: 200_000)

    /// The table with something between its first row and the next.
    private static func gap(_ text: String) -> String { plain.replacing("\n45.001", with: "\n\(text)45.001") }

    private static func table(_ header: String, _ times: String) -> String {
        header + "\n"
            + zip(positions, times.split(separator: ",")).map { "\($0.0),\($0.1),\($1)\n" }.joined()
    }

    @Test(arguments: tables) func `columns are found by their names and units`(form: Form) throws {
        try check(form)
    }

    @Test func `motions are found by their names and units`() throws {
        func motions(_ text: String) throws -> Recording<Attitude> {
            try withFile(text) { try RecordingLoader.motions(path: $0) }
        }
        let log = try motions(Self.sensorLog)
        #expect(log.values[1] == Attitude(pitch: 0.2, roll: 0.1, yaw: 0.1))
        #expect(log.offsets == Self.offsets)
        let degrees = try motions("Pitch (deg),Roll (deg),Yaw (deg)\n180,-90,0\n180,-90,0\n")
        #expect(degrees.values[0] == Attitude(pitch: .pi, roll: -.pi / 2, yaw: 0))
        let latin = try withFile(
            bytes: Self.encode("Pitch (°),Roll (°),Yaw (°)\n180,0,0\n180,0,0\n", "ISO-8859-1", mark: false)
        ) {
            try RecordingLoader.motions(path: $0)
        }
        #expect(latin.values[0] == Attitude(pitch: .pi, roll: 0, yaw: 0))
        let gap = try motions("t,pitch,roll,yaw\n0,1,1,1\n1,x,1,1\nnow,1,1,1\n")
        #expect(gap.count == 2)
        #expect(gap.note?.hasPrefix("Left out: 1 row, line 3: the pitch 'x' is not a number; 1 time, line 4: ") == true)
    }
}
