import Foundation
import TestSupport
import Testing

@testable import MessagingDeviceSupport

/// How a fleet with a name is spread along the track and beside it.
@Suite(.turns)
struct FleetPlaceTests {
    @Test(arguments: [2, 5, 200])
    func `devices start apart, beside each other and at their own speeds`(count: Int) {
        let places = (0..<count).map { FleetPlace.place(of: $0, among: count) }
        #expect(places[0].start == 0 && places[0].metresAside == 0)
        #expect(Set(places.map(\.start)).count == count)
        #expect(Set(places.map(\.pace)).count == count)
        #expect(Set(places.map(\.metresAside)).count == count)
        #expect(places.allSatisfy { (0..<1).contains($0.start) && (0.85...1.15).contains($0.pace) })
        #expect(places.allSatisfy { abs($0.metresAside) <= 125 })
    }

    private func recording(_ fixes: [(Double, Double)]) -> Recording<Fix> {
        var recording = Recording<Fix>(name: "test", step: .seconds(1))
        for (latitude, longitude) in fixes {
            recording.append(Fix(latitude: latitude, longitude: longitude), recordedAt: nil)
        }
        return recording
    }

    @Test func `aside is to the right of the direction of travel`() {
        let degree = 111_195.0
        let north = recording([(0, 0), (1, 0), (2, 0)]).fix(at: 1, metresAside: degree)
        #expect(abs(north.latitude - 1) < 1e-9)
        #expect(abs(north.longitude - 1) < 1e-3)
        let west = recording([(60, 2), (60, 1), (60, 0)]).fix(at: 1, metresAside: degree)
        #expect(abs(west.latitude - 61) < 1e-9 && abs(west.longitude - 1) < 1e-9)
        // A degree of longitude is half as long there.
        let south = recording([(61, 0), (60, 0), (59, 0)]).fix(at: 1, metresAside: degree)
        #expect(abs(south.longitude + 2) < 1e-9)
    }

    @Test(arguments: [-125.0, -75, -20, 20, 75, 125])
    func `inside a narrow turn a device does not go backwards`(metresAside: Double) {
        let drive = BuiltInDrive.recording()
        let track = (0..<drive.count).map { drive.fix(at: $0, metresAside: metresAside) }
        let steps = zip(track, track.dropFirst()).map { from, to in
            (north: to.latitude - from.latitude, east: (to.longitude - from.longitude) * cos(from.latitude * .pi / 180))
        }
        let backwards = zip(steps, steps.dropFirst()).filter { $0.north * $1.north + $0.east * $1.east <= 0 }
        #expect(backwards.isEmpty)
    }

    @Test func `on a round track a device stays beside it, also where the track passes its own beginning`() {
        // Two laps of 400 fixes and 500 m of radius, which waver by 3 m.
        let metres = 1 / 111_195.0
        let track = recording(
            (0..<800).map { step in
                let (angle, radius) = (Double(step) * .pi / 200, step / 4 % 2 == 0 ? 503.0 : 497)
                return (radius * metres * sin(angle), radius * metres * cos(angle))
            })
        for step in 60..<740 {
            let angle = Double(step) * .pi / 200
            let fix = track.fix(at: step, metresAside: -125)
            let radius = (fix.latitude * sin(angle) + fix.longitude * cos(angle)) / metres
            let along = (fix.latitude * cos(angle) - fix.longitude * sin(angle)) / metres
            #expect(abs(radius - 375) < 5 && abs(along) < 5, "\(step)")
        }
    }

    @Test func `a device that stands still, and one at the edge of the map, stay on it`() {
        #expect(recording([(5, 6), (5, 6)]).fix(at: 0, metresAside: 100) == Fix(latitude: 5, longitude: 6))
        for fixes in [[(90.0, 0.0), (90, 1)], [(-90, 0), (-90, 1)], [(0, 180), (1, 180)], [(0, -180), (-1, -180)]] {
            let fix = recording(fixes).fix(at: 0, metresAside: 1_000)
            #expect(Fix.problem(latitude: fix.latitude, longitude: fix.longitude) == nil)
        }
    }
}
