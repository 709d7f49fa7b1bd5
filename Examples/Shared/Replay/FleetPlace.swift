import Foundation

/// Where one device of a fleet with a name drives, so that the fleet is not one dot: where in the recording it starts, how
/// fast it is, and how far beside the track.
package struct FleetPlace: Sendable, Equatable {
    /// The part of the recording before its first value, 0..<1.
    package let start: Double
    /// Multiplies the speed of the replay.
    package let pace: Double
    /// Metres to the right of the track; negative is to the left.
    package let metresAside: Double

    /// A device on its own, or one of a fleet that replays the recording together.
    package static let alone = FleetPlace(start: 0, pace: 1, metresAside: 0)

    /// The place of a device; the first one starts at the beginning and stays on the track.
    package static func place(of index: Int, among count: Int) -> FleetPlace {
        // Multiples of the golden ratio are spread evenly, however many there are.
        func spread(_ ratio: Double) -> Double { (Double(index) * ratio).truncatingRemainder(dividingBy: 1) }
        let side = (spread(0.618034) + 0.5).truncatingRemainder(dividingBy: 1) - 0.5
        return FleetPlace(
            start: Double(index) / Double(max(1, count)),
            pace: 0.85 + 0.3 * (spread(0.754878) + 0.5).truncatingRemainder(dividingBy: 1),
            metresAside: index == 0 ? 0 : 250 * side)
    }
}

extension Recording where Value == Fix {
    /// The fix at `index`, moved to the right of the direction of travel.
    package func fix(at index: Int, metresAside: Double) -> Fix {
        var fix = values[index]
        let narrowing = Swift.max(0.01, cos(fix.latitude * .pi / 180))
        let degrees = metresAside / 111_195
        func way(_ from: Fix, _ to: Fix) -> (north: Double, east: Double, length: Double) {
            let (north, east) = (to.latitude - from.latitude, (to.longitude - from.longitude) * narrowing)
            return (north, east, (north * north + east * east).squareRoot())
        }
        // Two fixes either side, because single ones jitter, and so many that a turn takes longer than the device is
        // aside: inside a turn that is too narrow for it a device would go backwards. As many ahead as behind, or the way
        // would begin and end with a bend.
        let ends = Swift.min(way(values[0], fix).length, way(fix, values[count - 1]).length)
        let reach = Swift.min(4 * abs(degrees), ends)
        var (first, last) = (Swift.max(0, index - 2), Swift.min(count - 1, index + 2))
        while first > Swift.max(0, index - 60), way(values[first], fix).length < reach { first -= 1 }
        while last < Swift.min(count - 1, index + 60), way(fix, values[last]).length < reach { last += 1 }
        let (north, east, length) = way(values[first], values[last])
        guard length > 0 else { return fix }
        fix.latitude = Swift.max(-90, Swift.min(90, fix.latitude - degrees * east / length))
        let longitude = fix.longitude + degrees * north / length / narrowing
        fix.longitude = longitude > 180 ? longitude - 360 : longitude < -180 ? longitude + 360 : longitude
        return fix
    }
}
