import MessagingShell
import TestSupport
import Testing

@Suite(.turns) struct ServersTests {
    private typealias Rounds = ServerRounds<Void>

    /// The servers of the rest of this round.
    private func round(_ rounds: Rounds) -> [Int] {
        var servers = [rounds.current]
        while rounds.failed(()) == nil { servers.append(rounds.current) }
        return servers
    }

    @Test func `goes through the list and begins again`() {
        let rounds = Rounds(count: 3, order: .listed)
        #expect(round(rounds) == [0, 1, 2])
        #expect(round(rounds) == [0, 1, 2])
    }

    @Test(arguments: [0, 1]) func `one server, or none, has all the turns`(count: Int) {
        let rounds = Rounds(count: count, order: .shuffled)
        for _ in 0..<3 { #expect(round(rounds) == [0]) }
        rounds.beginRound(.last)
        #expect(round(rounds) == [0])
    }

    @Test func `the server that worked comes first, until another one works`() {
        let rounds = Rounds(count: 3, order: .listed)
        _ = rounds.failed(())
        rounds.beginRound(.first)
        #expect(round(rounds) == [1, 0, 2])
        #expect(round(rounds) == [1, 0, 2])
        for _ in 0..<2 { _ = rounds.failed(()) }
        rounds.beginRound(.first)
        #expect(round(rounds) == [2, 0, 1])
    }

    @Test func `a server that drops its clients at once, or is left, comes last for one round`() {
        let rounds = Rounds(count: 3, order: .listed)
        rounds.beginRound(.first)
        rounds.beginRound(.last)
        #expect(round(rounds) == [1, 2, 0])
        #expect(round(rounds) == [0, 1, 2])
    }

    @Test func `after a server that is left at its age the list begins again`() {
        let rounds = Rounds(count: 3, order: .listed)
        _ = rounds.failed(())
        rounds.beginRound(.first)
        rounds.beginRound(.any)
        #expect(round(rounds) == [0, 1, 2])
    }

    @Test func `shuffled rounds hold each server once, and a seed draws the same ones`() {
        let first = Rounds(count: 5, order: .shuffled(seed: 7))
        let second = Rounds(count: 5, order: .shuffled(seed: 7))
        var seen: Set<[Int]> = []
        for _ in 0..<20 {
            let servers = round(first)
            #expect(servers.sorted() == [0, 1, 2, 3, 4])
            #expect(servers == round(second))
            seen.insert(servers)
        }
        #expect(seen.count > 5)
        let worked = first.current
        first.beginRound(.first)
        for _ in 0..<20 { #expect(round(first).first == worked) }
        let random = Rounds(count: 5, order: .shuffled)
        #expect(Set((0..<50).map { _ in round(random) }).count > 5)
    }
}
