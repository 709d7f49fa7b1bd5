import Foundation

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
