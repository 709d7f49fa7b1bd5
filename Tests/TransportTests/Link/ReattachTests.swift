import Foundation
import TestSupport
import Testing
import Transport

@Suite(.turns) struct ReattachTests {
    @Test(.serialized, arguments: SelectorKind.allCases, StreamKind.allCases)
    func `nothing of a lost connection leaks into the next while many threads send`(
        selector: SelectorKind, kind: StreamKind
    ) async throws {
        let setting = try Setting(selector, kind)
        let client = setting.link(Probe(), limit: 20_000) { $0.greeting = Array("100 0\n".utf8) }
        let senders = 4
        let isOver = Tally()
        var servers: [LineLink] = []
        var random = SeededGenerator(seed: Campaign.seed)
        let sending = Task {
            await withTaskGroup { group in
                for sender in 0..<senders {
                    group.addTask {
                        var number = 0
                        while isOver.value == 0 {
                            // Every fifth line is large enough to be sent by its caller and to block.
                            let filler = number.isMultiple(of: 5) ? String(repeating: " ", count: 9000) : ""
                            let line = Array("\(sender) \(filler)\(number)\n".utf8)
                            if await client.send(line, urgent: number.isMultiple(of: 3), limit: 20_000) {
                                number += 1
                                // Others want to run on this thread as well.
                                if number.isMultiple(of: 16) { try? await Task.sleep(for: .microseconds(200)) }
                            } else {
                                try? await Task.sleep(for: .milliseconds(1))
                            }
                        }
                    }
                }
            }
        }
        let rounds = Campaign.rounds(500, least: 12)
        for round in 1...rounds {
            let streams = try await setting.streams()
            if let memory = streams.client as? MemoryStream {
                memory.changeFaults { $0.capacity = 3000 }
            }
            let server = setting.link(Probe())
            servers.append(server)
            server.attach(streams.server)
            // Attaching drops what is there; now and then it is dropped first, or by the peer.
            client.attach(streams.client)
            #expect(await eventually { client.probe.openings == round })
            // In the first round, however busy the machine is, lines of the senders arrive.
            if round == 1 { #expect(await eventually { server.probe.byteCount > 20_000 }) }
            try await Task.sleep(for: .microseconds(Int.random(in: 0...6000, using: &random)))
            switch Int.random(in: 0..<3, using: &random) {
            case 0: client.dropConnection()
            case 1: server.dropConnection()
            default: break
            }
        }
        isOver.add(1)
        client.dropConnection()
        await sending.value
        #expect(await eventually { client.probe.ends.count == rounds })
        #expect(await eventually { servers.allSatisfy { $0.probe.ends.count == 1 } })

        var seen = [Int](repeating: -1, count: senders)
        for server in servers {
            let bytes = server.probe.bytes
            guard !bytes.isEmpty else { continue }
            #expect(bytes.starts(with: Array("100 0\n".utf8)), "a connection begins with its greeting")
            let numbers = Lines.parse(bytes)
            #expect(numbers[100] == [0])
            for sender in 0..<senders {
                guard let own = numbers[sender], let first = own.first else { continue }
                #expect(first > seen[sender], "nothing is sent twice")
                #expect(own == Array(first..<(first + own.count)), "nothing is lost or reordered within a connection")
                seen[sender] = own.last ?? first
            }
        }
        #expect(seen.contains { $0 > 0 })
    }

    @Test(arguments: SelectorKind.allCases, [IOResult.wouldBlock, .failed(32), .bytes(1)])
    func `what a caller was still writing when its connection was replaced goes nowhere`(
        selector: SelectorKind, result: IOResult
    ) async throws {
        let setting = try Setting(selector, .memory)
        let inside = Tally()
        let released = DispatchSemaphore(value: 0)
        let old = FaultyStream(MemoryPair.make().client) {
            inside.add(1)
            if inside.value == 1 { released.wait() }
            return result
        }
        let client = setting.link(Probe())
        client.attach(old)
        #expect(await eventually { client.probe.openings == 1 })
        // A thread of its own, since it is held up.
        Thread.detachNewThread { client.append(Array("of the old connection\n".utf8), urgent: true) }
        #expect(await eventually { inside.value == 1 })

        let pair = MemoryPair.make()
        let server = setting.link(Probe())
        server.attach(pair.server)
        client.attach(pair.client)
        #expect(await eventually { client.probe.openings == 2 })
        client.append(Array("of the new\n".utf8))
        released.signal()
        #expect(await eventually { server.probe.byteCount > 0 })
        client.append(Array("end\n".utf8))
        #expect(await eventually { server.probe.bytes.suffix(4).elementsEqual("end\n".utf8) })
        #expect(server.probe.bytes == Array("of the new\nend\n".utf8))
        client.dropConnection()
    }

    @Test(arguments: SelectorKind.allCases)
    func `attaching and dropping happen in the order of the calls`(selector: SelectorKind) async throws {
        let setting = try Setting(selector, .memory)
        let client = setting.link(Probe())
        for round in 1...50 {
            client.attach(MemoryPair.make().client)
            client.dropConnection()
            #expect(await eventually { client.probe.ends.count == round })
        }
        #expect(client.probe.openings == 50)
        #expect(!client.perform { $0.isOpen })
    }

    @Test(arguments: SelectorKind.allCases)
    func `what is written without a connection is for none`(selector: SelectorKind) async throws {
        let setting = try Setting(selector, .memory)
        let client = setting.link(Probe()) { $0.greeting = Array("hello\n".utf8) }
        client.append(Array("too early\n".utf8))
        let pair = MemoryPair.make()
        let server = setting.link(Probe())
        server.attach(pair.server)
        client.attach(pair.client)
        #expect(await eventually { server.probe.byteCount > 0 })
        client.append(Array("end\n".utf8))
        #expect(await eventually { server.probe.bytes == Array("hello\nend\n".utf8) })
        client.dropConnection()
    }

    @Test(arguments: SelectorKind.allCases, StreamKind.allCases)
    func `a connection that is dropped lets its stream go`(selector: SelectorKind, kind: StreamKind) async throws {
        let setting = try Setting(selector, kind)
        let client = setting.link(Probe())
        weak var stream: (any ByteStream)?
        do {
            let streams = try await setting.streams()
            stream = streams.client
            client.attach(streams.client)
            #expect(await eventually { client.probe.openings == 1 })
            client.append(Array("one\n".utf8))
            #expect(await eventually { client.traffic.bytesSent == 4 })
            client.dropConnection()
        }
        #expect(await eventually { stream == nil })
    }
}
