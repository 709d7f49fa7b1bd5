import Synchronization
import TestSupport
import Testing
import Transport

@Suite(.turns) struct EventLoopTests {
    @Test(arguments: SelectorKind.allCases)
    func `runs what each thread hands in, in its order`(selector: SelectorKind) async throws {
        let loop = try EventLoop.start(selector: selector)
        defer { loop.stop() }
        let seen = Collected<(Int, Int)>()
        let each = 2000
        await withTaskGroup { group in
            for sender in 0..<4 {
                group.addTask {
                    for number in 0..<each { loop.execute { seen.append((sender, number)) } }
                }
            }
        }
        #expect(await eventually { seen.all.count == 4 * each })
        for sender in 0..<4 { #expect(seen.all.filter { $0.0 == sender }.map(\.1) == Array(0..<each)) }
    }

    @Test func `a loop that cannot start says what is missing, and does its work once it can`() async throws {
        let failuresLeft = Atomic(3)
        let loop = EventLoop { () throws(TransportError) in
            guard failuresLeft.subtract(1, ordering: .relaxed).newValue < 0 else { throw noDescriptorForLoop(EMFILE) }
            return try SelectorKind.automatic.make()
        }
        defer { loop.stop() }
        let error = #expect(throws: TransportError.self) { try loop.start() }
        #expect(error?.code == .systemLimit && error?.errno == EMFILE)
        #expect(error?.message.hasPrefix("The process cannot open another descriptor") == true)
        await withUnsafeContinuation { continuation in loop.execute { continuation.resume() } }
        // It runs already.
        try loop.start()
    }

    @Test func `does what other threads hand in while it starts`() async throws {
        let done = Tally()
        let (loops, each) = (300, 8)
        for round in 1...loops {
            let loop = EventLoop { () throws(TransportError) in try SelectorKind.automatic.make() }
            defer { loop.stop() }
            await withTaskGroup { group in
                for _ in 0..<each { group.addTask { loop.execute { done.add(1) } } }
            }
            guard await eventually(every: .microseconds(100), { done.value == round * each }) else {
                Issue.record("loop \(round) did not do all of its work")
                return
            }
        }
    }

    @Test func `is not woken for what its own handlers hand in`() async throws {
        let selector = CountingSelector(try SelectorKind.automatic.make())
        let loop = EventLoop { () throws(TransportError) in selector }
        defer { loop.stop() }
        let handed = Tally()
        let listener = try await Listener.listen(on: .host("127.0.0.1", port: 0), loop: loop) { stream in
            // As the task of a message does whose receiver prefers the loop.
            loop.execute {
                stream.close()
                handed.add(1)
            }
        }
        let before = selector.counts.wakes
        for round in 1...20 {
            let stream = try await Connector.connect(
                to: .host("127.0.0.1", port: listener.port), timeout: 60_000_000_000, loop: .shared)
            #expect(await eventually(every: .microseconds(200), { handed.value == round }))
            stream.close()
        }
        #expect(selector.counts.wakes == before)
        await listener.close()
    }

    @Test(arguments: SelectorKind.allCases)
    func `work that hands in more work for ever does not starve descriptors`(selector: SelectorKind) async throws {
        let loop = try EventLoop.start(selector: selector)
        defer { loop.stop() }
        let isOver = Tally()
        @Sendable func again() {
            if isOver.value == 0 { loop.execute { again() } }
        }
        again()
        let accepted = Tally()
        let listener = try await Listener.listen(on: .host("127.0.0.1", port: 0), loop: loop) { stream in
            stream.close()
            accepted.add(1)
        }
        let stream = try await Connector.connect(
            to: .host("127.0.0.1", port: listener.port), timeout: 60_000_000_000, loop: .shared)
        #expect(await eventually { accepted.value == 1 })
        isOver.add(1)
        stream.close()
        await listener.close()
    }

    @Test(arguments: SelectorKind.allCases)
    func `wakes for every job, even for those that jobs hand in`(selector: SelectorKind) async throws {
        let loop = try EventLoop.start(selector: selector)
        defer { loop.stop() }
        #expect(!loop.isCurrent)
        for _ in 0..<500 {
            await withUnsafeContinuation { continuation in
                loop.execute {
                    precondition(loop.isCurrent)
                    loop.execute { continuation.resume() }
                }
            }
        }
    }

    @Test(arguments: SelectorKind.allCases)
    func `does the work that is posted before it stops`(selector: SelectorKind) async throws {
        let loop = try EventLoop.start(selector: selector)
        let seen = Tally()
        for _ in 0..<100 { loop.execute { loop.execute { seen.add(1) } } }
        loop.stop()
        #expect(await eventually { seen.value == 100 })
    }

    @Test(arguments: SelectorKind.allCases)
    func `fires alarms in order, never early, and not those that are moved or cancelled`(
        selector: SelectorKind
    ) async throws {
        let loop = try EventLoop.start(selector: selector)
        defer { loop.stop() }
        var random = SeededGenerator(seed: Campaign.seed)
        let fired = Collected<(name: Int, at: Int64)>()
        let count = Campaign.rounds(20_000, least: 200)
        let alarms = (0..<count).map { name in LoopAlarm(loop: loop) { fired.append((name, $0)) } }
        let start = MonotonicClock.now
        var due = [Int64](repeating: .max, count: count)
        var changes: [(Int, Int64)] = []
        // Set all, then move or cancel some, at random.
        for name in Array(0..<count) + (0..<count).map({ _ in Int.random(in: 0..<count, using: &random) }) {
            let isCancelled = Int.random(in: 0..<4, using: &random) == 0
            let deadline = isCancelled ? .max : start + Int64.random(in: 30_000_000...120_000_000, using: &random)
            due[name] = deadline
            changes.append((name, deadline))
        }
        let (deadlines, plan) = (due, changes)
        loop.execute { for (name, deadline) in plan { alarms[name].set(deadline) } }
        let expected = deadlines.filter { $0 != .max }.count
        #expect(await eventually { fired.all.count >= expected })
        try await Task.sleep(for: .milliseconds(20))
        let all = fired.all
        #expect(all.count == expected)
        #expect(Set(all.map(\.name)).count == expected)
        for (name, at) in all { #expect(at >= deadlines[name]) }
        #expect(all.map { deadlines[$0.name] } == all.map { deadlines[$0.name] }.sorted())
    }

    @Test(arguments: SelectorKind.allCases)
    func `an alarm that is always due starves nobody`(selector: SelectorKind) async throws {
        let loop = try EventLoop.start(selector: selector)
        defer { loop.stop() }
        let isOver = Tally()
        let rounds = Tally()
        let holder = Collected<LoopAlarm>()
        holder.append(
            LoopAlarm(loop: loop) { now in
                rounds.add(1)
                if isOver.value == 0 { holder.all[0].set(now) }
            })
        loop.execute { holder.all[0].set(0) }
        await withUnsafeContinuation { continuation in loop.execute { continuation.resume() } }
        #expect(await eventually { rounds.value > 10 })
        isOver.add(1)
    }

    @Test(arguments: SelectorKind.allCases)
    func `a machine is told of its deadline once, and again after it sets the next`(
        selector: SelectorKind
    ) async throws {
        let setting = try Setting(selector)
        let link = setting.link(Probe())
        for round in 1...3 {
            let deadline = MonotonicClock.now + 15_000_000
            // A later one first: the machine's deadline may come nearer.
            link.perform { $0.nextDeadline = deadline + 60_000_000_000 }
            link.perform { $0.nextDeadline = deadline }
            #expect(await eventually { link.probe.timeouts.count == round })
            #expect(link.probe.timeouts[round - 1] >= deadline)
        }
        // If a deadline is moved away, the machine may be asked about it early, which does not count as a timeout. If
        // this thread was suspended until the deadline came, another deadline is tried.
        var (count, near, hasMoved) = (3, Int64(0), false)
        while !hasMoved {
            near = MonotonicClock.now + 20_000_000
            link.perform { $0.nextDeadline = near }
            hasMoved = link.perform { machine in
                guard machine.nextDeadline == near else { return false }
                machine.nextDeadline = near + 40_000_000
                return true
            }
            count += 1
            #expect(await eventually { link.probe.timeouts.count == count })
        }
        #expect(link.probe.timeouts[count - 1] >= near + 40_000_000)
    }

    @Test(arguments: SelectorKind.allCases)
    func `serves a thousand connections on one thread`(selector: SelectorKind) async throws {
        let setting = try Setting(selector)
        let count = 1000
        let servers = Collected<LineLink>()
        let listener = try await Listener.listen(on: setting.endpoint(), loop: setting.loop) { stream in
            let link = setting.link(Probe()) { $0.echoes = true }
            link.attach(stream)
            servers.append(link)
        }
        let endpoint = Endpoint.host("127.0.0.1", port: listener.port)
        var clients: [LineLink] = []
        for _ in 0..<count {
            let link = setting.link(Probe())
            link.attach(try await Connector.connect(to: endpoint, timeout: 60_000_000_000, loop: setting.loop))
            clients.append(link)
        }
        for link in clients { #expect(await eventually { link.perform { $0.isOpen } }) }
        for (number, link) in clients.enumerated() { link.append(Array("\(number)\n".utf8)) }
        for (number, link) in clients.enumerated() {
            #expect(await eventually { link.probe.bytes == Array("\(number)\n".utf8) })
        }
        for link in clients { link.dropConnection() }
        #expect(await eventually { servers.all.allSatisfy { $0.probe.ends.count == 1 } })
        #expect(servers.all.count == count)
        await listener.close()
    }
}
