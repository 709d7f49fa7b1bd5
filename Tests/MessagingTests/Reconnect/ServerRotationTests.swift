import Messaging
import TestSupport
import Testing

@Suite(.turns) struct ServerRotationTests {
    /// The servers of the rest of this round.
    private func round(_ rotation: inout ServerRotation) -> [Int] {
        var servers = [rotation.current]
        while rotation.failed() { servers.append(rotation.current) }
        return servers
    }

    @Test func `goes through the list and begins again`() {
        var rotation = ServerRotation(count: 3, order: .listed)
        #expect(round(&rotation) == [0, 1, 2])
        #expect(round(&rotation) == [0, 1, 2])
    }

    @Test(arguments: [0, 1]) func `one server, or none, has all the turns`(count: Int) {
        var rotation = ServerRotation(count: count, order: .shuffled)
        for _ in 0..<3 { #expect(round(&rotation) == [0]) }
        rotation.lost(wasStable: false)
        #expect(round(&rotation) == [0])
    }

    @Test func `the server that worked comes first, until another one works`() {
        var rotation = ServerRotation(count: 3, order: .listed)
        _ = rotation.failed()
        rotation.lost(wasStable: true)
        #expect(round(&rotation) == [1, 0, 2])
        #expect(round(&rotation) == [1, 0, 2])
        for _ in 0..<2 { _ = rotation.failed() }
        rotation.lost(wasStable: true)
        #expect(round(&rotation) == [2, 0, 1])
    }

    @Test func `a server that drops its clients at once comes last, for one round`() {
        var rotation = ServerRotation(count: 3, order: .listed)
        rotation.lost(wasStable: true)
        rotation.lost(wasStable: false)
        #expect(round(&rotation) == [1, 2, 0])
        #expect(round(&rotation) == [0, 1, 2])
    }

    @Test func `a server that is left comes last for one round, or the list begins again`() {
        var rotation = ServerRotation(count: 3, order: .listed)
        rotation.lost(wasStable: true)
        rotation.left(isLast: true)
        #expect(round(&rotation) == [1, 2, 0])
        _ = rotation.failed()
        rotation.lost(wasStable: true)
        rotation.left(isLast: false)
        #expect(round(&rotation) == [0, 1, 2])
    }

    @Test func `shuffled rounds hold each server once, and a seed draws the same ones`() {
        var first = ServerRotation(count: 5, order: .shuffled(seed: 7))
        var second = ServerRotation(count: 5, order: .shuffled(seed: 7))
        var seen: Set<[Int]> = []
        for _ in 0..<20 {
            let servers = round(&first)
            #expect(servers.sorted() == [0, 1, 2, 3, 4])
            #expect(servers == round(&second))
            seen.insert(servers)
        }
        #expect(seen.count > 5)
        let worked = first.current
        first.lost(wasStable: true)
        for _ in 0..<20 { #expect(round(&first).first == worked) }
        var random = ServerRotation(count: 5, order: .shuffled)
        #expect(Set((0..<50).map { _ in round(&random) }).count > 5)
    }
}
