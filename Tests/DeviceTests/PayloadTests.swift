import Foundation
import TestSupport
import Testing

@testable import MessagingDeviceSupport

@Suite(.turns)
struct PayloadTests {
    @Test func aFixIsShownWithFourDecimals() {
        #expect("\(Fix(latitude: 37.33521504, longitude: -122.03254905))" == "φ:37.3352, λ:-122.0325")
        #expect("\(Fix(latitude: -0.00001, longitude: 0.00005))" == "φ:0.0000, λ:0.0001")
        #expect("\(Fix(latitude: -0.5, longitude: 180))" == "φ:-0.5000, λ:180.0000")
    }

    @Test func anAttitudeIsShownInWholeDegreesWithoutMinusZero() {
        let angles = Attitude(pitch: 12.4 * .pi / 180, roll: -3.4 * .pi / 180, yaw: 45 * .pi / 180)
        #expect("\(angles)" == "pitch: 12°  roll: -3°  yaw: 45°")
        #expect("\(Attitude(pitch: -0.001, roll: -0.0, yaw: 0))" == "pitch: 0°  roll: 0°  yaw: 0°")
        // Neither is ever read from a file; showing them must not trap all the same.
        #expect("\(Attitude(pitch: 1e300, roll: .nan, yaw: .infinity))".hasPrefix("pitch: "))
    }

    @Test func aMotionIsPitchRollYawInBigEndian() {
        let bytes = Attitude(pitch: 1, roll: -2, yaw: 0.5).bytes
        #expect(bytes.count == 24)
        #expect(bytes[0..<8].elementsEqual([0x3F, 0xF0, 0, 0, 0, 0, 0, 0]))
        #expect(bytes[8..<16].elementsEqual([0xC0, 0, 0, 0, 0, 0, 0, 0]))
        #expect(bytes[16..<24].elementsEqual([0x3F, 0xE0, 0, 0, 0, 0, 0, 0]))
    }

    @Test func aLocationIsJSONWithExactlyFourKeys() throws {
        let time = try #require(Timestamp(iso8601: "2014-03-13T17:19:05+01:00"))
        let json = LocationPayload.json(
            deviceID: "a\"\\\u{1}é", fix: Fix(latitude: 37.33521504, longitude: -0.00001), at: time)
        #expect(
            json == #"{"deviceID":"a\"\\\u0001é","lat":37.33521504,"lng":-0.00001,"ts":"2014-03-13T17:19:05+01:00"}"#)
        let object = try JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any]
        #expect(object?.keys.sorted() == ["deviceID", "lat", "lng", "ts"])
        #expect(object?["deviceID"] as? String == "a\"\\\u{1}é")
    }

    @Test(arguments: [
        (0.0, "0.0"), (-0.0, "0.0"), (1e-7, "0.0000001"), (-1.25e-10, "-0.000000000125"), (180, "180.0"),
        (Double.leastNonzeroMagnitude, "0." + String(repeating: "0", count: 323) + "5"), (1e17, "100000000000000000.0"),
        (0.1, "0.1"),
    ])
    func numbersHaveNoExponent(value: Double, text: String) {
        #expect(value.plainDecimal == text)
        #expect(Double(text) == value)
    }

    @Test func numbersReadBackAsThemselves() {
        var generator = SeededGenerator(seed: Campaign.seed)
        for _ in 0..<Campaign.rounds(100_000) {
            let value =
                Double.random(in: -180...180, using: &generator) * [1, 1e-6, 1e-12].randomElement(using: &generator)!
            #expect(Double(value.plainDecimal) == value)
            #expect(!value.plainDecimal.contains("e"))
        }
    }

    @Test(arguments: [
        ("2014-03-13T17:19:05+01:00", "2014-03-13T17:19:05+01:00"),
        ("2020-02-29T00:00:00Z", "2020-02-29T00:00:00+00:00"),
        ("2014-03-13T17:19:05.250-0730", "2014-03-13T17:19:05.25-07:30"),
        ("2199-12-31 23:59", "2199-12-31T23:59:00+00:00"),
        ("1970-01-01t00:00:00,123456789999z", "1970-01-01T00:00:00.123456789+00:00"),
        ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00+00:00"), ("1970-01-01T00:30:00+01", "1970-01-01T00:30:00+01:00"),
        ("2014-03-13T24:00:00+01:00", "2014-03-14T00:00:00+01:00"), ("2014-3-1 7:05 PM", "2014-03-01T19:05:00+00:00"),
        ("2014-03-13 12:00:00 a.m. GMT+2", "2014-03-13T00:00:00+02:00"),
        ("2014-03-13T17:19:05Z[UTC]", "2014-03-13T17:19:05+00:00"),
    ])
    func timesAreReadAndWritten(text: String, written: String) {
        #expect(Timestamp(iso8601: text)?.description == written)
    }

    @Test(arguments: [
        "", "2014", "2014-03-13", "2014-13-01T00:00:00Z", "2014-02-29T00:00:00Z", "2100-02-29T00:00:00Z",
        "2014-03-13T24:00:01Z", "2014-03-13T17:60:00Z", "2014-03-13T17:19:05.Z", "2014-03-13T17:19:05+1:00",
        "2014-03-13T17:19:05+01:00x", "1969-12-31T23:59:59Z", "2200-01-01T00:00:00Z", "2014-03-13T17:19:05+19:00",
        "٢٠١٤-03-13T17:19:05Z", "2014-03-13T13:19:05 PM", "2014-03-13T17:19:05 CET", "2014-03-13T17:19:05+01:00[Europe",
    ])
    func whatIsNoTimeIsRefused(text: String) {
        #expect(Timestamp(iso8601: text) == nil)
    }

    @Test func timesAgreeWithFoundation() throws {
        var generator = SeededGenerator(seed: Campaign.seed)
        let formatter = ISO8601DateFormatter()
        for _ in 0..<Campaign.rounds(20_000) {
            let seconds = Int64.random(in: 0..<7_000_000_000, using: &generator)
            let time = Timestamp(nanoseconds: seconds * 1_000_000_000)
            let date = Date(timeIntervalSince1970: Double(seconds))
            #expect(time.description.replacing("+00:00", with: "Z") == formatter.string(from: date))
            #expect(Timestamp(iso8601: time.description) == time)
        }
    }

    /// Foundation does not read what POSIX allows in TZ, such as XYZ+3, and takes UTC instead.
    private static var foundationKnowsTimeZone: Bool {
        guard let zone = ProcessInfo.processInfo.environment["TZ"] else { return true }
        return TimeZone(identifier: zone) != nil
    }

    @Test(.enabled(if: foundationKnowsTimeZone, "Foundation does not know the time zone in TZ"))
    func nowIsNow() {
        let now = Timestamp.now()
        #expect(abs(Double(now.nanoseconds) / 1e9 - Date().timeIntervalSince1970) < 5)
        #expect(Int(now.offsetMinutes) * 60 == TimeZone.current.secondsFromGMT())
        #expect(now.wholeSeconds.nanoseconds % 1_000_000_000 == 0)
    }

    @Test func liveFixesOlderThanThirtySecondsAreStale() {
        let now = Timestamp(nanoseconds: 100_000_000_000)
        func fix(_ second: Int64) -> Fix {
            Fix(latitude: 0, longitude: 0, time: Timestamp(nanoseconds: second * 1_000_000_000))
        }
        #expect(fix(69).isStale(at: now))
        #expect(!fix(70).isStale(at: now))
        #expect(!fix(200).isStale(at: now))
        #expect(!Fix(latitude: 0, longitude: 0).isStale(at: now))
    }

    @Test func unknownColoursAreRed() {
        #expect(Colour(named: "green").hexadecimal == "#008000")
        #expect(Colour(named: " Dark Gray\n").hexadecimal == "#a9a9a9")
        #expect(Colour(named: "octarine") == Colour(named: "red"))
        #expect(Colour(named: "") == Colour(named: "red"))
    }

    @Test func controlCharactersBecomeVisible() {
        #expect("a\u{1B}[2Jb\nc\u{9B}d\u{202E}".printable == "a\\u{1b}[2Jb\\nc\\u{9b}d\\u{202e}")
        #expect("φ:1, λ:2°".printable == "φ:1, λ:2°")
    }
}
