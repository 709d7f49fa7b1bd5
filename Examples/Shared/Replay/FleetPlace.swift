import Foundation

/// Spreads a fleet over the map: where in the recording a device starts, how fast it is, and how far beside the track it
/// drives.
package struct FleetPlace: Sendable, Equatable {
    /// The part of the recording before its first value, 0..<1.
    package let start: Double
    /// Multiplies the speed of the replay.
    package let pace: Double
    /// Metres to the right of the track; negative is to the left.
    package let metresAside: Double

    /// For a single device, and for a fleet that replays the recording together.
    package static let alone = FleetPlace(start: 0, pace: 1, metresAside: 0)

    /// The place of a device. The first one starts at the beginning and drives on the track.
    package static func place(of index: Int, among count: Int) -> FleetPlace {
        // The fractions of multiples of an irrational number are spread evenly, however many there are.
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
        // The direction of travel is measured between fixes that are four times as far away as the device is aside:
        // neighbours jitter, and inside a narrow turn a device would drive backwards. It is measured equally far ahead and
        // behind, so near an end of the track from fixes nearer by. That is a distance along the track, since a round
        // track passes its ends on the way.
        let window = Swift.max(0, index - 60)...Swift.min(count - 1, index + 60)
        func reach(_ steps: some Sequence<Int>, _ wanted: Double) -> Double {
            var sum = 0.0
            for step in steps {
                sum += way(values[step], values[step + 1]).length
                if sum >= wanted { return wanted }
            }
            return sum
        }
        let behind = reach((window.lowerBound..<index).reversed(), 4 * abs(degrees))
        let reached = reach(index..<window.upperBound, behind)
        var (first, last) = (Swift.max(0, index - 2), Swift.min(count - 1, index + 2))
        while first > window.lowerBound, way(values[first], fix).length < reached { first -= 1 }
        while last < window.upperBound, way(fix, values[last]).length < reached { last += 1 }
        let (north, east, length) = way(values[first], values[last])
        guard length > 0 else { return fix }
        fix.latitude = Swift.max(-90, Swift.min(90, fix.latitude - degrees * east / length))
        let longitude = fix.longitude + degrees * north / length / narrowing
        fix.longitude = longitude > 180 ? longitude - 360 : longitude < -180 ? longitude + 360 : longitude
        return fix
    }
}
