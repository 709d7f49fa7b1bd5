import Foundation

/// A drive from Cupertino along Interstate 280 to San Francisco, one fix per second.
///
/// Nobody drove it: the points follow the road, and the times follow from a plausible speed between them.
enum BuiltInDrive {
    static func recording() -> Recording<Fix> {
        var recording = Recording<Fix>(name: "the built-in drive", step: LocationCSV.step)
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
            27,  // Interstate 280 through Cupertino and Los Altos
            [
                (37.33425, -122.03590), (37.33392, -122.03830), (37.33347, -122.04150), (37.33303, -122.04480),
                (37.33272, -122.04830), (37.33263, -122.05180), (37.33268, -122.05560), (37.33290, -122.05930),
                (37.33350, -122.06290), (37.33470, -122.06620), (37.33640, -122.06930), (37.33830, -122.07240),
                (37.34050, -122.07570), (37.34290, -122.07900), (37.34560, -122.08240), (37.34850, -122.08590),
                (37.35140, -122.08970), (37.35420, -122.09400), (37.35680, -122.09870), (37.35900, -122.10380),
            ])
        + along(
            30,  // past Los Altos Hills, Page Mill Road and Sand Hill Road to Woodside
            [
                (37.36130, -122.10900), (37.36360, -122.11430), (37.36590, -122.11960), (37.36860, -122.12480),
                (37.37160, -122.12990), (37.37440, -122.13510), (37.37700, -122.14070), (37.37960, -122.14650),
                (37.38250, -122.15210), (37.38560, -122.15760), (37.38880, -122.16330), (37.39190, -122.16930),
                (37.39500, -122.17540), (37.39820, -122.18140), (37.40150, -122.18750), (37.40490, -122.19360),
                (37.40850, -122.19960), (37.41230, -122.20560), (37.41600, -122.21180), (37.41960, -122.21830),
                (37.42320, -122.22490), (37.42690, -122.23130), (37.43060, -122.23760), (37.43430, -122.24370),
            ])
        + along(
            30,  // Farm Hill, Edgewood Road and along Crystal Springs Reservoir
            [
                (37.43860, -122.24950), (37.44330, -122.25490), (37.44800, -122.26040), (37.45270, -122.26620),
                (37.45750, -122.27230), (37.46240, -122.27870), (37.46740, -122.28530), (37.47240, -122.29180),
                (37.47760, -122.29820), (37.48310, -122.30420), (37.48880, -122.31030), (37.49450, -122.31660),
                (37.50030, -122.32290), (37.50640, -122.32890), (37.51260, -122.33460), (37.51930, -122.33990),
                (37.52620, -122.34560), (37.53310, -122.35190), (37.54000, -122.35860), (37.54700, -122.36520),
                (37.55420, -122.37150), (37.56150, -122.37790), (37.56880, -122.38450), (37.57610, -122.39120),
                (37.58330, -122.39800), (37.59060, -122.40500), (37.59800, -122.41180), (37.60540, -122.41830),
            ])
        + along(
            27,  // San Bruno, South San Francisco and Daly City
            [
                (37.61270, -122.42480), (37.61990, -122.43090), (37.62720, -122.43680), (37.63470, -122.44260),
                (37.64230, -122.44880), (37.64960, -122.45490), (37.65690, -122.46010), (37.66430, -122.46420),
                (37.67180, -122.46780), (37.67930, -122.47060), (37.68680, -122.47190), (37.69420, -122.47160),
                (37.70130, -122.46990), (37.70740, -122.46560), (37.71250, -122.45950), (37.71690, -122.45270),
            ])
        + along(
            20,  // San Francisco, to the end of the freeway at King Street
            [
                (37.72080, -122.44630), (37.72500, -122.44020), (37.72910, -122.43370), (37.73180, -122.42620),
                (37.73230, -122.41830), (37.73350, -122.41030), (37.73610, -122.40370), (37.74060, -122.39850),
                (37.74590, -122.39510), (37.75160, -122.39310), (37.75760, -122.39260), (37.76330, -122.39330),
                (37.76820, -122.39460), (37.77220, -122.39640), (37.77480, -122.39400),
            ])
}
