import Foundation

/// The first minutes of a drive from Cupertino along Interstate 280 towards San Francisco, one fix per second: short,
/// so that a first try of the program shows its end.
///
/// The drive is made up: the points follow the road, and the times follow from a plausible speed between them.
enum BuiltInDrive {
    static func recording() -> Recording<Fix> {
        var recording = Recording<Fix>(name: "the built-in drive", step: LocationCSV.step)
        recording.place = "Cupertino, Interstate 280"
        let start = Timestamp(iso8601: "2014-03-13T09:19:05-07:00") ?? Timestamp(nanoseconds: 0)
        var second: Int64 = 0
        /// Metres of the current leg that were already driven when the second began.
        var carried = 0.0
        for (leg, next) in zip(points, points.dropFirst()) {
            let length = distance(leg, next)
            while carried < length {
                let part = carried / length
                let time = Timestamp(
                    nanoseconds: start.nanoseconds + second * 1_000_000_000, offsetMinutes: start.offsetMinutes)
                let fix = Fix(
                    latitude: rounded(leg.latitude + (next.latitude - leg.latitude) * part),
                    longitude: rounded(leg.longitude + (next.longitude - leg.longitude) * part), time: time)
                recording.append(fix, recordedAt: time.nanoseconds)
                second += 1
                carried += leg.speed
            }
            carried -= length
        }
        return recording
    }

    private struct Point {
        let latitude: Double
        let longitude: Double
        /// Metres per second from here on.
        let speed: Double
    }

    /// A receiver's seven decimals, a centimetre.
    private static func rounded(_ degrees: Double) -> Double {
        (degrees * 1e7).rounded() / 1e7
    }

    /// Metres, on a plane: legs are short.
    private static func distance(_ from: Point, _ to: Point) -> Double {
        let metresPerDegree = 111_195.0
        let north = (to.latitude - from.latitude) * metresPerDegree
        let east = (to.longitude - from.longitude) * metresPerDegree * cos(from.latitude * .pi / 180)
        return (north * north + east * east).squareRoot()
    }

    private static func along(_ speed: Double, _ points: [(Double, Double)]) -> [Point] {
        points.map { Point(latitude: $0.0, longitude: $0.1, speed: speed) }
    }

    private static let points: [Point] =
        along(
            12,  // De Anza Boulevard, then the ramp
            [
                (37.33018, -122.03235), (37.33108, -122.03237), (37.33205, -122.03240), (37.33310, -122.03243),
                (37.33398, -122.03247), (37.33437, -122.03290), (37.33442, -122.03420),
            ])
        + along(
            27,  // Interstate 280
            [
                (37.33425, -122.03590), (37.33392, -122.03830), (37.33347, -122.04150), (37.33303, -122.04480),
                (37.33272, -122.04830), (37.33263, -122.05180), (37.33268, -122.05560),
            ])
}

/// The motion of a phone in a walker's hand: a minute at 50 Hz, made of sines.
///
/// All periods divide the minute, so that it loops without a jump.
enum BuiltInMotion {
    static func recording() -> Recording<Attitude> {
        var recording = Recording<Attitude>(name: "the built-in motion", step: MotionCSV.step)
        for sample in 0..<3000 {
            recording.append(attitude(at: Double(sample) / 50), recordedAt: nil)
        }
        return recording
    }

    static func attitude(at seconds: Double) -> Attitude {
        func wave(_ period: Double, _ phase: Double = 0) -> Double {
            sin(2 * .pi * seconds / period + phase)
        }
        return Attitude(
            pitch: 0.6 + 0.25 * wave(20) + 0.05 * wave(0.6),
            roll: 0.4 * wave(12, 1) + 0.08 * wave(1.2),
            yaw: 1.8 * wave(60) + 0.3 * wave(7.5, 2))
    }
}
