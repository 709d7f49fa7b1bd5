/// How a device is held: three angles in radians.
package struct Attitude: Sendable, Equatable {
    package var pitch: Double
    package var roll: Double
    package var yaw: Double

    package init(pitch: Double, roll: Double, yaw: Double) {
        self.pitch = pitch
        self.roll = roll
        self.yaw = yaw
    }

    /// The payload of a motion message: pitch, roll and yaw as big-endian IEEE 754 doubles, 24 bytes.
    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(24)
        for angle in [pitch, roll, yaw] {
            for shift in stride(from: 56, through: 0, by: -8) {
                bytes.append(UInt8(truncatingIfNeeded: angle.bitPattern >> UInt64(shift)))
            }
        }
        return bytes
    }
}

extension Attitude: CustomStringConvertible {
    /// What the app shows: `pitch: 12°  roll: -3°  yaw: 45°`.
    package var description: String {
        func degrees(_ angle: Double) -> String {
            DecimalText.fixed(angle * 180 / .pi, places: 0) + "°"
        }
        return "pitch: \(degrees(pitch))  roll: \(degrees(roll))  yaw: \(degrees(yaw))"
    }
}
