import Foundation
import TestSupport
import Testing

@testable import MessagingDeviceSupport

@Suite(.turns)
struct RecordingTests {
    private func locations(_ text: String) throws -> Recording<Fix> {
        try withFile(text) { try RecordingLoader.locations(path: $0) }
    }

    private func motions(_ text: String) throws -> Recording<Attitude> {
        try withFile(text) { try RecordingLoader.motions(path: $0) }
    }

    /// Without the path, which differs each time.
    private func problem(_ body: () throws -> some Any) -> String? {
        let failure = failure(body)
        #expect(failure?.status == .dataError)
        guard let message = failure?.message, let comma = message.firstRange(of: ", line ") else {
            return failure?.message
        }
        return String(message[comma.lowerBound...].dropFirst(2))
    }

    private func gpx(_ body: String) -> String {
        "<gpx version=\"1.1\"><trk><trkseg>\n\(body)\n</trkseg></trk></gpx>"
    }

    // MARK: GPX

    @Test func readsARecordingOfRealSize() throws {
        let track = try RecordingLoader.locations(path: recordingPath("valley.gpx"))
        #expect(track.count == 5400)
        #expect(track.values[0].time?.description == "2024-05-04T07:00:00+00:00")
        #expect(track.values[1].time?.description == "2024-05-04T07:00:01.007+00:00")
        #expect(track.offsets[1] == 1_007_000_000)
        // Three segments with pauses of five minutes between them.
        #expect(abs(track.length - (5399 + 600) * 1_000_000_000) < 1_000_000_000)
    }

    @Test func readsPointsWithAndWithoutTime() throws {
        let track = try locations(
            gpx(
                """
                <trkpt lat="1.5" lon="-2"><time>2020-12-18T06:21:48Z</time></trkpt>
                <trkpt lat="2" lon="3"/>
                <trkpt lat=" -90 " lon="180"><time> 2020-12-18T08:21:58.5+02:00 </time></trkpt>
                <trkpt lat="4" lon="5"><time/></trkpt>
                """))
        #expect(track.values.map(\.latitude) == [1.5, 2, -90, 4])
        #expect(track.offsets == [0, 1_000_000_000, 10_500_000_000, 11_500_000_000])
        #expect(track.values[2].time?.description == "2020-12-18T08:21:58.5+02:00")
    }

    @Test func readsOldPrefixedAndTracklessFiles() throws {
        let old = """
            \u{FEFF}<?xml version="1.0"?>
            <g:gpx version="1.0" xmlns:g="http://www.topografix.com/GPX/1/0"><g:wpt lat="9" lon="9"/>
            <g:rte><g:rtept lat="7" lon="7"/></g:rte>
            <g:trk><g:trkseg/><g:trkseg><g:trkpt lat="1" lon="2"><g:speed>3</g:speed></g:trkpt></g:trkseg>
            <g:trkseg><g:trkpt lat="3" lon="4"></g:trkpt></g:trkseg></g:trk></g:gpx>
            """
        #expect(try locations(old).values == [Fix(latitude: 1, longitude: 2), Fix(latitude: 3, longitude: 4)])
        let route = "<gpx><rte><rtept lat='7' lon='8'/><rtept lat='7' lon='9'/></rte></gpx>"
        #expect(try locations(route).count == 2)
    }

    @Test func ignoresWhatExtensionsHold() throws {
        let track = try locations(
            gpx(
                """
                <trkpt lat="1" lon="2"><extensions><time>nonsense</time><x><trkpt lat="99" lon="0"/></x></extensions>
                <time>2020-12-18T06:21:48Z</time></trkpt>
                <trkpt lat="3" lon="4"/>
                """))
        #expect(track.count == 2)
        #expect(track.values[0].time != nil)
    }

    @Test(arguments: ["xmlns:xsi='x'", ""], ["xmlns:gpxtpx='y'", ""])
    func aPrefixNeedNotBeDeclared(schema: String, points: String) throws {
        let track = try locations(
            """
            <gpx version="1.1" \(schema) xsi:schemaLocation="a b"><trk><trkseg \(points)>
            <trkpt lat="1" lon="2"><extensions><gpxtpx:hr>99</gpxtpx:hr></extensions>
            <time>2020-12-18T06:21:48Z</time></trkpt>
            <trkpt lat="3" lon="4"><time>2020-12-18T06:21:50Z</time></trkpt>
            </trkseg></trk></gpx>
            """)
        #expect(track.values.map(\.latitude) == [1, 3])
        #expect(track.offsets == [0, 2_000_000_000])
    }

    @Test func aMistakeBehindAnUndeclaredPrefixIsToldAsItself() {
        let mistake = "<gpx xsi:schemaLocation='a b'><trk><trkseg>\n<trkpt lat='91' lon='1'/>\n</trkseg></trk></gpx>"
        let message = problem { try locations(mistake) }
        #expect(message?.contains("latitude 91.0") == true, "\(message ?? "")")
        let cut = problem { try locations("<gpx xsi:schemaLocation='a b'>\n<trk><trkseg>\n<trkpt lat='9") }
        #expect(cut == "line 3: the file ends in the middle; it was cut off")
    }

    @Test func readsUTF16() throws {
        let text =
            "<?xml version=\"1.0\" encoding=\"UTF-16\"?>"
            + gpx("<trkpt lat=\"1\" lon=\"2\"/><trkpt lat=\"1\" lon=\"3\"/>")
        var bytes: [UInt8] = [0xFF, 0xFE]
        for unit in text.utf16 { bytes += [UInt8(unit & 0xFF), UInt8(unit >> 8)] }
        #expect(try withFile(bytes: bytes) { try RecordingLoader.locations(path: $0) }.count == 2)
    }

    @Test func `a file that begins with a zero byte is not taken for UTF-16`() throws {
        let track = try withFile(bytes: Array("\01,2\n3,4\n".utf8)) { try RecordingLoader.locations(path: $0) }
        #expect(track.values.map(\.latitude) == [1, 3])
    }

    @Test func readsFilesBeyondTenMillionBytes() throws {
        let point =
            "<trkpt lat=\"1.0000000\" lon=\"2.0000000\"><ele>100</ele><time>2020-12-18T06:21:48Z</time></trkpt>\n"
        let track = try locations(gpx(String(repeating: point, count: 108_000)))
        #expect(track.count == 108_000)
    }

    @Test(arguments: [
        ("<trkpt lat=\"91\" lon=\"0\"/>", "line 2: latitude 91.0 is outside -90...90"),
        ("\n<trkpt lat=\"0\" lon=\"-360.5\"/>", "line 3: longitude -360.5 is outside -180...180"),
        ("<trkpt lat=\"nan\" lon=\"0\"/>", "line 2: the latitude 'nan' is not a number"),
        ("<trkpt lat=\"1\"/>", "line 2: a trkpt without lat and lon"),
        (
            "<trkpt lat=\"1\" lon=\"1\">\n<time>yesterday</time></trkpt>",
            "line 3: 'yesterday' is not an ISO 8601 date and time"
        ),
        ("<trkpt lat=\"1\" lon=\"1\">", "line 3: an element is closed by another's tag"),
        ("<trkpt lat=\"1\" lon=1/>", "line 2: the value of an attribute is not in quotes"),
    ])
    func malformedPointsAreToldWithTheirLine(body: String, message: String) {
        #expect(problem { try locations(gpx(body)) } == message)
    }

    @Test func aFileThatWasCutOffSaysSoWithItsLineWhereverThatWas() throws {
        let whole = """
            <?xml version="1.0"?>
            <gpx version="1.1" creator="x"><metadata><name>A &amp; B</name></metadata>
            <trk><trkseg>
            <trkpt lat="45.5" lon="7.25"><time>2020-12-18T06:21:48Z</time></trkpt>
            <trkpt lat="45.6" lon="7.35"><ele>3</ele></trkpt>
            </trkseg></trk></gpx>
            """
        for count in 12...whole.count {
            let text = String(whole.prefix(count))
            let lines = text.reversed().drop { $0 == "\n" }.count { $0 == "\n" } + 1
            let sentence = "line \(lines): the file ends in the middle; it was cut off"
            if text.count(of: "</trkpt>") == 2 {
                // What was read before is not lost.
                let track = try locations(text)
                #expect(track.count == 2)
                #expect(track.note == (count == whole.count ? nil : "Left out: \(sentence)."), "\(text)")
            } else {
                #expect(problem { try locations(text) } == sentence, "\(text)")
            }
        }
        // A mistake before the place of the cut is the mistake.
        let mistake = problem { try locations("<gpx><trk><trkseg>\n<trkpt lat='91' lon='1'/>\n<trkpt lat='4") }
        #expect(mistake?.contains("line 2: ") == true && mistake?.contains("latitude 91.0") == true)
    }

    @Test(arguments: [
        ("<gpx><metadata><name> Valley </name></metadata><trk><name>Ride</name>TRACK</trk></gpx>", "Valley"),
        ("<gpx><metadata><author><name>Ann</name></author></metadata><trk><name>Ride</name>TRACK</trk></gpx>", "Ride"),
        ("<gpx><wpt lat='1' lon='2'><name>Hut</name></wpt><trk><name/>TRACK</trk></gpx>", nil),
        ("<gpx><name>Old</name><trk>TRACK</trk></gpx>", "Old"),
    ])
    func theNameOfATrackIsItsPlace(file: String, place: String?) throws {
        let points = "<trkseg><trkpt lat='1' lon='2'><name>point</name></trkpt><trkpt lat='1' lon='3'/></trkseg>"
        #expect(try locations(file.replacing("TRACK", with: points)).place == place)
        #expect(try locations("1,2\n1,3\n").place == nil)
    }

    @Test func filesThatAreNoTracksAreRefused() {
        #expect(
            problem { try locations("<gpx><trk>\n<trkseg>\n") } == "line 2: the file ends in the middle; it was cut off"
        )
        #expect(problem { try locations("<html></html>") }?.hasSuffix("it starts with <html>") == true)
        #expect(
            problem { try locations("<gpx><wpt lat='1' lon='1'/></gpx>") }?
                .hasSuffix(
                    "has no track points and no route points, only waypoints: 1. --waypoints replays them in the order of the file"
                ) == true)
        #expect(problem { try locations("") } == "line 1: the file ends without any values")
        #expect(failure { try RecordingLoader.locations(path: "/nonexistent") }?.status == .noInput)
        #expect(failure { try RecordingLoader.locations(path: "/") }?.message == "cannot read /: it is a directory")
    }

    @Test func timesOfAWrongClockAreLeftOut() throws {
        let old = try locations(
            gpx(
                """
                <trkpt lat="1" lon="2"><time>1901-12-13T20:45:52Z</time></trkpt>
                <trkpt lat="2" lon="2"><time>0001-01-01T00:00:00Z</time></trkpt>
                <trkpt lat="3" lon="2"><time>2020-12-18T06:21:48Z</time></trkpt>
                """))
        #expect(old.offsets == [0, 1_000_000_000, 2_000_000_000])
        #expect(old.values.map { $0.time == nil } == [true, true, false])
        #expect(
            old.note == "Left out: 2 times, first line 2: 1901-12-13T20:45:52+00:00 is no date of a recording.")
        let gap = try locations("1,2,1970-01-01T00:00:00Z\n2,2,1970-01-01T00:00:09Z\n3,2,2020-12-18T06:21:48Z\n")
        #expect(gap.offsets == [0, 9_000_000_000, 10_000_000_000])
        #expect(gap.note == "Left out: 1 time, line 3: a time that is years away from those beside it.")
        let pause = try locations("1,2,2020-01-01T00:00:00Z\n2,2,2020-12-18T06:21:48Z\n")
        #expect(pause.offsets[1] > 86_400_000_000_000)
        #expect(pause.note == nil)
    }

    @Test func aMotionWithoutATimeIsOneStepAfterTheLast() throws {
        #expect(try motions("t,pitch,roll,yaw\n1,1,1,1\n,1,1,1\n1.1,1,1,1\n").offsets == [0, 20_000_000, 100_000_000])
        #expect(try motions("pitch,roll,yaw,t\n1,1,1,1\n1,1,1\n").offsets == [0, 20_000_000])
    }

    @Test func aGapOfYearsBetweenMotionsIsAsShortAsOthers() throws {
        let recording = try motions("time,pitch,roll,yaw\n0,1,1,1\n1608272510,1,1,1\n")
        #expect(recording.offsets == [0, 20_000_000])
        #expect(recording.note == "A gap of more than a year between two recorded times is replayed as 20 ms.")
    }

    // MARK: CSV of locations

    @Test func readsLocationsAsCSV() throws {
        let plain = try locations(
            "45.5,13.25\r\n# a comment\r\n\r\n \"46\" , 14 ,2020-12-18T06:21:48Z\r\n47,15,1608272510")
        #expect(plain.values.map(\.latitude) == [45.5, 46, 47])
        #expect(plain.offsets == [0, 1_000_000_000, 3_000_000_000])
        let named = try locations("\u{FEFF}Time,Longitude,\"Latitude\",speed\n2020-12-18 06:21:48,1,2,\"a,b\"\n,3,4\n")
        #expect(named.values.map(\.latitude) == [2, 4])
        #expect(named.values[0].time?.nanoseconds == 1_608_272_508_000_000_000)
        // The date beside the time of day, in any order and with gaps; a time that needs no date; the column that says most.
        for text in [
            "date,time,lat,lng\n2020-12-18,06:21:48Z,1,2\n,,3,4\n",
            "lat,lng,time,date\n1,2,06:21:48,2020-12-18\n3,4\n",
            "date,lat,lng,time\n2020-12-18,1,2,2020-12-18T06:21:48Z\n,3,4,\n",
            "date,time,lat,lng\n,2020-12-18T06:21:48Z,1,2\n,,3,4\n",
            "date,time,lat,lng,timestamp\n18.12.,noon,1,2,1608272508\n,,3,4,\n",
            "date,lat,lng\n2020-12-18 06:21:48,1,2\n,3,4\n",
        ] {
            #expect(try locations(text).values[0].time?.nanoseconds == 1_608_272_508_000_000_000, "\(text)")
        }
    }

    @Test(arguments: [
        ("1,2\n3", "line 2: 1 field, but a row is lat,lng or lat,lng,ts"),
        ("1,2\n3,4,5,6", "line 2: 4 fields, but a row is lat,lng or lat,lng,ts"),
        ("1,2\n\n\n3,x", "line 4: the longitude 'x' is not a number"),
        ("1,2\n91,0", "line 2: latitude 91.0 is outside -90...90"),
        ("1,2\n0x10,0", "line 2: the latitude '0x10' is not a number"),
        ("1,2\ninf,0", "line 2: the latitude 'inf' is not a number"),
        (
            "date,time,lat,lng\nx,7:00,1,2",
            "line 2: 'x 7:00' is not an ISO 8601 date and time"
        ),
        ("1,2,noon", "line 1: 'noon' is not an ISO 8601 date and time"),
        ("\"1,2", "line 1: a quote is not closed"),
        ("\"1\"x,2", "line 1: text follows a closing quote"),
        ("name,place\n1,2", "line 1: neither lat,lng[,ts] nor a header with the columns lat and lng"),
        ("lat,lng,ts\n1", "line 2: 1 field, too few for the header"),
        ("lat,lng\n", "line 1: the file ends without any values"),
    ])
    func malformedLocationRowsAreToldWithTheirLine(text: String, message: String) {
        #expect(problem { try locations(text) } == message)
    }

    @Test func bytesThatAreNoTextAreToldWithTheirLine() throws {
        #expect(
            problem {
                try withFile(bytes: [0x31, 0x2C, 0x32, 0x0A, 0xFF, 0x2C]) { try RecordingLoader.locations(path: $0) }
            }
                == "line 2: the latitude 'ÿ' is not a number")
        let long = [UInt8](repeating: 0x31, count: 100_000)
        #expect(
            problem { try withFile(bytes: long) { try RecordingLoader.locations(path: $0) } }
                == "line 1: longer than 65536 bytes")
    }

    // MARK: Motions

    @Test func readsMotionSenseAtFiftyHertz() throws {
        let walk = try RecordingLoader.motions(path: recordingPath("walk-motionsense.csv"))
        #expect(walk.count == 3000)
        #expect(walk.offsets[50] == 1_000_000_000)
        #expect(walk.values[0] == Attitude(pitch: -1.2, roll: 0.252441, yaw: 0))
    }

    @Test func readsSensingKitByItsOwnTimes() throws {
        let desk = try RecordingLoader.motions(path: recordingPath("desk-sensingkit.csv"))
        #expect(desk.count == 3000)
        #expect(abs(desk.offsets[100] - 1_000_000_000) < 1000)
        #expect(desk.values[0].pitch == -1.2)
    }

    @Test func readsPlainAngles() throws {
        #expect(try motions("0.1,0.2,0.3\n1,1,1\n").values[0] == Attitude(pitch: 0.1, roll: 0.2, yaw: 0.3))
        #expect(try motions("yaw,roll,pitch\n3,2,1\n1,1,1\n").values[0] == Attitude(pitch: 1, roll: 2, yaw: 3))
        #expect(try motions("time_ms,pitch,roll,yaw\n10,1,1,1\n35,1,1,1\n").offsets == [0, 25_000_000])
    }

    @Test(arguments: [
        ("1,2", "line 1: 2 fields, but a row is pitch,roll,yaw"),
        ("1,2,3\n1,2,x", "line 2: the yaw 'x' is not a number"),
        ("1,2,3\n1,nan,3", "line 2: the roll 'nan' is not a number"),
        ("1,2,3\n1e300,2,3", "line 2: the pitch 1e300 is no angle in radians (-1000...1000)"),
        (
            "pitch,yaw\n1,2",
            "line 1: neither pitch,roll,yaw nor a header with attitude.pitch, attitude.roll and attitude.yaw"
        ),
        ("t,pitch,roll,yaw\nnow,1,2,3", "line 2: 'now' is not an ISO 8601 date and time"),
        ("pitch,roll,yaw\n1,2", "line 2: 2 fields, too few for the header"),
    ])
    func malformedMotionRowsAreToldWithTheirLine(text: String, message: String) {
        #expect(problem { try motions(text) } == message)
    }

    // MARK: Built in

    @Test func theBuiltInDriveIsAPlausibleDrive() throws {
        let drive = try RecordingLoader.locations(path: nil)
        #expect(drive.count > 90 && drive.count < 180)
        let first = try #require(drive.values.first)
        let last = try #require(drive.values.last)
        #expect(abs(first.latitude - 37.33) < 0.01 && abs(first.longitude + 122.03) < 0.01)
        #expect(abs(last.latitude - 37.333) < 0.01 && abs(last.longitude + 122.055) < 0.01)
        for (one, next) in zip(drive.values, drive.values.dropFirst()) {
            let north = (next.latitude - one.latitude) * 111_195
            let east = (next.longitude - one.longitude) * 88_000
            #expect((north * north + east * east).squareRoot() < 35)
        }
        #expect(drive.offsets[60] == 60_000_000_000)
    }

    @Test func theBuiltInMotionLoopsWithoutAJump() throws {
        let motion = try RecordingLoader.motions(path: nil)
        #expect(motion.count == 3000)
        #expect(motion.period == 60_000_000_000)
        let first = motion.values[0]
        let last = try #require(motion.values.last)
        #expect(abs(first.yaw - last.yaw) < 0.1 && abs(first.pitch - last.pitch) < 0.1)
        #expect(motion.values.allSatisfy { abs($0.pitch) < 3 && abs($0.roll) < 3 && abs($0.yaw) < 3 })
    }

    @Test func timesThatRunBackwardsOrFarAwayDoNotBreakTheTimeline() {
        var timeline = Timeline(step: 10)
        #expect([100, 150, 40, 60, nil, 65].map { timeline.offset(of: $0) } == [0, 50, 60, 80, 90, 90])
        var wild = Timeline(step: 10)
        let offsets = [Int64(0), 7_000_000_000_000_000_000, 0, 7_000_000_000_000_000_000, -1, nil].map {
            wild.offset(of: $0)
        }
        #expect(offsets == offsets.sorted())
    }
}

extension String {
    fileprivate func count(of text: String) -> Int { components(separatedBy: text).count - 1 }
}
