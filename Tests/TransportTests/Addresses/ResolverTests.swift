import Foundation
import MessagingWire
import TestSupport
import Testing

@testable import Transport

@Suite(.turns) struct ResolverTests {
    @Test func `finds names and literal addresses`() async throws {
        #expect(try await !Resolver.shared.resolve(.host("localhost", port: 1)).isEmpty)
        #expect(try await Resolver.shared.resolve(.host("127.0.0.1", port: 1)).map(\.isIPv6) == [false])
        #expect(try await Resolver.shared.resolve(.host("::1", port: 1)).map(\.isIPv6) == [true])
    }

    @Test func `many look-ups at once all come back`() async throws {
        try await withThrowingTaskGroup { group in
            for _ in 0..<50 {
                group.addTask { try await Resolver.shared.resolve(.host("localhost", port: 1)).count }
            }
            for try await count in group { #expect(count > 0) }
        }
    }

    @Test func `equal questions share one look-up`() async {
        let names = ScriptedNames()
        let resolver = names.resolver()
        let answers = Collected<Bool>()
        for _ in 0..<50 {
            resolver.start(NameQuery("a", .ipv4)) { answers.append((try? $0.get()) == nil) }
        }
        #expect(await eventually { names.questions.count == 1 })
        names.release()
        #expect(await eventually { answers.all.count == 50 })
        #expect(names.questions.count == 1)
        // What is answered is asked anew.
        resolver.start(NameQuery("a", .ipv4)) { answers.append((try? $0.get()) == nil) }
        #expect(await eventually { names.questions.count == 2 })
        names.release()
        #expect(await eventually { answers.all.count == 51 })
    }

    @Test func `a question that is cancelled leaves the queue`() async {
        let names = ScriptedNames()
        let resolver = names.resolver(maximumThreads: 2)
        let answers = Collected<String>()
        let tickets = ["a", "b", "c", "c", "d"].map { name in
            resolver.start(NameQuery(name, .ipv4)) { _ in answers.append(name) }
        }
        #expect(await eventually { names.questions.count == 2 })
        #expect(resolver.queuedCount == 2)
        resolver.cancel(tickets[2])
        #expect(resolver.queuedCount == 2, "another caller waits for the same name")
        resolver.cancel(tickets[3])
        #expect(resolver.queuedCount == 1)
        resolver.cancel(tickets[0])
        names.release()
        #expect(await eventually { names.questions.count == 3 })
        names.release()
        #expect(await eventually { answers.all.count == 2 })
        #expect(Set(names.questions.map(\.name)) == ["a", "b", "d"])
        #expect(Set(answers.all) == ["b", "d"])
    }

    /// The network may have changed, and a name server that was asked over the old one answers late or never.
    @Test func `a question that nobody waits for any more is asked anew`() async {
        let names = ScriptedNames()
        let resolver = names.resolver()
        let answers = Collected<Int>()
        resolver.cancel(resolver.start(NameQuery("a", .ipv4)) { _ in answers.append(1) })
        #expect(await eventually { names.questions.count == 1 })
        let second = resolver.start(NameQuery("a", .ipv4)) { _ in answers.append(2) }
        #expect(await eventually { names.questions.count == 2 })
        // Not a thread for each attempt, though: those that hang stay two.
        resolver.cancel(second)
        resolver.start(NameQuery("a", .ipv4)) { _ in answers.append(3) }
        resolver.start(NameQuery("b", .ipv4)) { _ in answers.append(4) }
        #expect(await eventually { names.questions.contains(NameQuery("b", .ipv4)) })
        #expect(names.questions.count == 3)
        names.release()
        #expect(await eventually { answers.all.count == 2 })
        #expect(Set(answers.all) == [3, 4])
    }

    /// A name server that needs longer than an attempt is waited for all the same.
    @Test(arguments: [true, false])
    func `what an abandoned question finds is the answer to the next, and its failure is not`(finds: Bool) async {
        let (first, second) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
        let asked = Tally()
        let resolver = Resolver(
            ask: { _ in
                let isFirst = asked.add(1) == 1
                (isFirst ? first : second).wait()
                guard isFirst == finds else { return .failure(TransportError(.unknownHost, "nobody knows it")) }
                return NameQuery("127.0.0.1", .any).lookUp()
            }, known: { _ in nil })
        let answers = Collected<Bool>()
        resolver.cancel(resolver.start(NameQuery("a", .ipv4)) { _ in answers.append(false) })
        #expect(await eventually { asked.value == 1 })
        resolver.start(NameQuery("a", .ipv4)) { answers.append((try? $0.get()) != nil) }
        #expect(await eventually { asked.value == 2 })
        first.signal()
        if finds { #expect(await eventually { answers.all == [true] }) }
        second.signal()
        #expect(await eventually { answers.all == [true] })
        // Nothing is left of either.
        resolver.start(NameQuery("a", .ipv4)) { _ in }
        #expect(await eventually { asked.value == 3 })
        second.signal()
        #expect(answers.all == [true])
    }

    @Test func `optional questions leave most threads to others until they are needed`() async {
        let names = ScriptedNames()
        let resolver = names.resolver(maximumThreads: 8)
        let answers = Collected<String>()
        let tickets = ["a", "b", "c", "d"].map { name in
            resolver.start(NameQuery(name, .ipv6), isOptional: true) { _ in answers.append(name) }
        }
        #expect(await eventually { names.questions.count == 2 })
        #expect(resolver.queuedCount == 2)
        resolver.hurry(tickets[3])
        #expect(await eventually { names.questions.count == 3 })
        #expect(names.questions.last?.name == "d" && resolver.queuedCount == 1)
        names.release()
        #expect(await eventually { answers.all.count == 3 && names.questions.count == 4 })
        names.release()
        #expect(await eventually { answers.all.count == 4 })
    }

    @Test func `names that hang make other names wait, and not fail`() async {
        let names = ScriptedNames([NameQuery("late", .ipv4): "127.0.0.1"])
        let resolver = names.resolver(maximumThreads: 4)
        let answers = Collected<String>()
        let stuck = Collected<Bool>()
        for name in 0..<4 { resolver.start(NameQuery("silent\(name)", .ipv4)) { _ in stuck.append(true) } }
        #expect(await eventually { names.questions.count == 4 })
        resolver.start(NameQuery("late", .ipv4)) { answers.append((try? $0.get()) == nil ? "failed" : "found") }
        // A name that is being looked up shares that look-up.
        resolver.start(NameQuery("silent0", .ipv4)) { _ in stuck.append(true) }
        #expect(answers.all.isEmpty && resolver.queuedCount == 1)
        names.release()
        #expect(await eventually { stuck.all.count == 5 && answers.all == ["found"] })
    }

    @Test func `names that this machine knows do not wait for names that hang`() async {
        let names = ScriptedNames()
        let resolver = names.resolver(
            maximumThreads: 16,
            hosts: "# a comment\n192.0.2.7\tbroker.lan broker # 192.0.2.8 other\n2001:db8::7 broker\n")
        for name in 0..<16 { resolver.start(NameQuery("silent\(name)", .ipv4)) { _ in } }
        #expect(await eventually { names.questions.count == 16 })
        let answers = Collected<[Bool]>()
        for (name, family) in [("Broker", NameQuery.Family.ipv4), ("broker", .ipv6), ("broker", .any)] {
            resolver.start(NameQuery(name, family)) { answers.append(((try? $0.get()) ?? []).map(\.isIPv6)) }
        }
        let other = Collected<Bool>()
        resolver.start(NameQuery("other", .ipv4)) { _ in other.append(true) }
        #expect(await eventually { answers.all.count == 3 })
        #expect(Set(answers.all) == [[false], [true], [false, true]])
        #expect(resolver.queuedCount == 1 && other.all.isEmpty)
        #expect(names.questions.count == 16)
        names.release()
        #expect(await eventually { names.questions.contains(NameQuery("other", .ipv4)) })
        names.release()
        #expect(await eventually { other.all.count == 1 })
    }

    @Test func `a process without a free descriptor or memory does not blame the host's name`() {
        let query = NameQuery("broker.example", .ipv4)
        for (code, advice) in [(EMFILE, "ulimit -n"), (ENFILE, "fs.file-max"), (ENOMEM, "Free some memory")] {
            let shortage = query.failure(EAI_SYSTEM, errno: code)
            #expect(shortage.code == .systemLimit && shortage.errno == code)
            #expect(shortage.message.contains("'broker.example'") && shortage.message.contains(advice))
        }
        #expect(query.failure(EAI_MEMORY, errno: 0).code == .systemLimit)
        // Another failure of the system is named.
        let other = query.failure(EAI_SYSTEM, errno: EIO)
        #expect(other.code == .unknownHost && other.errno == EIO)
        #expect(other.message.contains(System.describe(EIO)) && !other.message.contains("spelling"))
        // The number means nothing beside another reason.
        #expect(query.failure(EAI_NONAME, errno: EMFILE).code == .unknownHost)
        #expect(query.failure(EAI_NONAME, errno: EMFILE).message.contains("spelling"))
    }

    @Test func `the system's file of hosts is read`() {
        #expect((try? NameQuery("localhost", .ipv4).knownHere()?.get().isEmpty) == false)
        #expect(NameQuery("no-such-host.invalid", .any).knownHere() == nil)
    }

    @Test func `an endpoint reads as one would write it`() {
        #expect("\(Endpoint.host("example.org", port: 1883))" == "example.org:1883")
        #expect("\(Endpoint.host("::1", port: 1883))" == "[::1]:1883")
        #expect("\(Endpoint.unix(path: "/tmp/s"))" == "unix:/tmp/s")
    }

    @Test func `durations become nanoseconds without overflow`() {
        #expect(Duration.milliseconds(1500).inNanoseconds == 1_500_000_000)
        #expect(Duration.milliseconds(-1500).inNanoseconds == -1_500_000_000)
        #expect(Duration.seconds(Int64.max).inNanoseconds == .max)
        #expect(Duration.seconds(Int64.min).inNanoseconds == .min)
        #expect(Int64.max.advanced(byNanoseconds: 1) == .max)
    }
}
