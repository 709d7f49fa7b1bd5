import Foundation
import TestSupport
import Testing

@testable import Transport

@Suite(.turns) struct ConnectorTests {
    /// Whether this machine has ::1, asked without the code under test.
    private static let hasIPv6: Bool = {
        #if canImport(Darwin)
            let type = SOCK_STREAM
        #else
            let type = Int32(SOCK_STREAM.rawValue)
        #endif
        let descriptor = socket(AF_INET6, type, 0)
        defer { close(descriptor) }
        var address = sockaddr_in6()
        address.sin6_family = sa_family_t(AF_INET6)
        address.sin6_addr = in6addr_loopback
        let size = socklen_t(MemoryLayout<sockaddr_in6>.size)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, size) }
        }
        return result == 0
    }()

    private func failure(
        of endpoint: Endpoint, _ loop: EventLoop, timeout: Int64 = 60_000_000_000, resolver: Resolver = .shared
    ) async -> TransportError? {
        do throws(TransportError) {
            _ = try await Connector.connect(to: endpoint, timeout: timeout, resolver: resolver, loop: loop)
            return nil
        } catch {
            return error
        }
    }

    @Test(arguments: SelectorKind.allCases)
    func `says that nobody listens`(selector: SelectorKind) async throws {
        let setting = try Setting(selector, .unix)
        let port = UInt16(FreePort.next())
        #expect(await failure(of: .host("127.0.0.1", port: port), setting.loop)?.code == .connectionRefused)
        let error = await failure(of: .host("localhost", port: port), setting.loop)
        #expect(error?.message.contains("localhost:\(port)") == true)
        #expect(await failure(of: setting.endpoint(), setting.loop) != nil)
    }

    // Other systems have no second address on this machine without being told to.
    #if !canImport(Darwin)
        @Test(arguments: SelectorKind.allCases)
        func `addresses that failed before are tried last, and again if the others fail`(
            selector: SelectorKind
        ) async throws {
            let setting = try Setting(selector)
            let loop = setting.loop
            let port = UInt16(FreePort.next())
            let names = ScriptedNames([NameQuery("two", .ipv4): "127.0.0.1", NameQuery("two", .ipv6): "127.0.0.2"])
            let resolver = names.resolver()
            let kept = Collected<any ByteStream>()
            func connect(avoiding avoided: [SocketAddress]) async throws -> AddressChoice? {
                let choice = Collected<AddressChoice?>()
                let stream = try await Connector.connect(
                    to: .host("two", port: port), timeout: 60_000_000_000, avoiding: avoided,
                    chosen: { choice.append($0) },
                    resolver: resolver, loop: loop)
                kept.append(stream)
                return choice.all.last ?? nil
            }
            let one = try await Listener.listen(on: .host("127.0.0.1", port: port), loop: loop) { kept.append($0) }
            let two = try await Listener.listen(on: .host("127.0.0.2", port: port), loop: loop) { kept.append($0) }
            let addresses = try await (
                Resolver.shared.resolve(.host("127.0.0.1", port: port)),
                Resolver.shared.resolve(.host("127.0.0.2", port: port))
            )
            let (first, second) = (addresses.0[0], addresses.1[0])
            #expect(first != second && first == addresses.0[0])
            for _ in 0..<3 {
                let avoidsFirst = try #require(try await connect(avoiding: [first]))
                #expect(avoidsFirst.address == second)
                #expect(avoidsFirst.others == [first] || avoidsFirst.mayHaveMore)
                let avoidsSecond = try #require(try await connect(avoiding: [second]))
                #expect(avoidsSecond.address == first)
                #expect(avoidsSecond.others == [second] || avoidsSecond.mayHaveMore)
                // The one that failed longest ago comes first.
                let avoidsBoth = try #require(try await connect(avoiding: [second, first]))
                #expect(avoidsBoth.address == second)
            }
            await two.close()
            // The other one refuses: it is no alternative.
            #expect(try await connect(avoiding: [first])?.others.isEmpty ?? true)
            await one.close()
            for stream in kept.all { stream.close() }
        }
    #endif

    @Test(arguments: SelectorKind.allCases)
    func `says that a host is unknown`(selector: SelectorKind) async throws {
        let setting = try Setting(selector)
        let error = await failure(of: .host("no-such-host.invalid", port: 1), setting.loop)
        #expect(error?.code == .unknownHost)
        #expect(error?.message.contains("no-such-host.invalid") == true)
        #expect(await failure(of: .host("127.0.0.1\0.example", port: 1), setting.loop)?.code == .unknownHost)
        #expect(await failure(of: .unix(path: ""), setting.loop)?.code == .badURL)
        let long = String(repeating: "p", count: 200)
        #expect(await failure(of: .unix(path: long), setting.loop)?.code == .badURL)
    }

    @Test(arguments: SelectorKind.allCases)
    func `gives up in time when a server does not answer`(selector: SelectorKind) async throws {
        let setting = try Setting(selector)
        let silent = try SilentServer()
        let start = ContinuousClock.now
        let error = await failure(of: .host("127.0.0.1", port: silent.port), setting.loop, timeout: 100_000_000)
        #expect(error?.code == .timedOut)
        #expect(ContinuousClock.now - start >= .milliseconds(100))
    }

    @Test(arguments: SelectorKind.allCases)
    func `can be cancelled before and while it connects`(selector: SelectorKind) async throws {
        let setting = try Setting(selector)
        let silent = try SilentServer()
        for delay in [0, 30] {
            let task = Task {
                await self.failure(of: .host("127.0.0.1", port: silent.port), setting.loop, timeout: 60_000_000_000)
            }
            try await Task.sleep(for: .milliseconds(delay))
            task.cancel()
            #expect(await task.value?.code == .cancelled)
        }
    }

    @Test(
        .enabled(if: Self.hasIPv6, "there is no ::1"),
        arguments: SelectorKind.allCases, [NameQuery.Family.ipv4, .ipv6])
    func `an answer for one family is enough while the other is never answered`(
        selector: SelectorKind, family: NameQuery.Family
    ) async throws {
        let setting = try Setting(selector)
        let text = family == .ipv4 ? "127.0.0.1" : "::1"
        let listener = try await Listener.listen(on: .host(text, port: 0), loop: setting.loop) { _ in }
        let names = ScriptedNames([NameQuery("broker", family): text])
        let endpoint = Endpoint.host("broker", port: listener.port)
        #expect(await failure(of: endpoint, setting.loop, resolver: names.resolver()) == nil)
        names.release()
        await listener.close()
    }

    @Test(arguments: SelectorKind.allCases)
    func `the address of one family is tried when that of the other refuses`(selector: SelectorKind) async throws {
        let setting = try Setting(selector)
        let listener = try await Listener.listen(on: .host("127.0.0.1", port: 0), loop: setting.loop) { _ in }
        let names = ScriptedNames([NameQuery("broker", .ipv4): "127.0.0.1", NameQuery("broker", .ipv6): "::1"])
        let endpoint = Endpoint.host("broker", port: listener.port)
        #expect(await failure(of: endpoint, setting.loop, resolver: names.resolver()) == nil)
        await listener.close()
    }

    // To a group no connection can lead, which the system knows by itself, as it does of IPv6 on a machine without.
    @Test(arguments: SelectorKind.allCases, ["127.0.0.1 224.0.0.1", "224.0.0.1 127.0.0.1"])
    func `the answer of a server explains more than an address that cannot be reached from here`(
        selector: SelectorKind, addresses: String
    ) async throws {
        let setting = try Setting(selector)
        let names = ScriptedNames([NameQuery("broker", .ipv4): addresses])
        let endpoint = Endpoint.host("broker", port: UInt16(FreePort.next()))
        let failing = Task { await failure(of: endpoint, setting.loop, resolver: names.resolver()) }
        #expect(await eventually { names.questions.count == 2 })
        names.release()
        let error = await failing.value
        #expect(error?.code == .connectionRefused, "\(error?.message ?? "")")
    }

    @Test func `an address that cannot be reached from here is the reason if there is no other`() async throws {
        let setting = try Setting(.automatic)
        #expect(await failure(of: .host("224.0.0.1", port: 1), setting.loop)?.code == .unreachable)
    }

    // Other systems have no second address on this machine without being told to.
    #if !canImport(Darwin)
        @Test(arguments: SelectorKind.allCases)
        func `the other family is asked for when all addresses have refused, although other names hang`(
            selector: SelectorKind
        ) async throws {
            let setting = try Setting(selector)
            let listener = try await Listener.listen(on: .host("127.0.0.1", port: 0), loop: setting.loop) { _ in }
            let names = ScriptedNames([
                NameQuery("broker", .ipv4): "127.0.0.2", NameQuery("broker", .ipv6): "127.0.0.1",
            ])
            let resolver = names.resolver(maximumThreads: 4)
            resolver.start(NameQuery("silent", .ipv4)) { _ in }
            #expect(await eventually { names.questions.count == 1 })
            let error = await failure(
                of: .host("broker", port: listener.port), setting.loop, timeout: 20_000_000_000, resolver: resolver)
            #expect(error == nil)
            names.release()
            await listener.close()
        }

        @Test(arguments: SelectorKind.allCases)
        func `the other family is asked for when the last address stays silent, although other names hang`(
            selector: SelectorKind
        ) async throws {
            let setting = try Setting(selector)
            let silent = try SilentServer()
            let listener = try await Listener.listen(on: .host("127.0.0.2", port: silent.port), loop: setting.loop) {
                _ in
            }
            let names = ScriptedNames([
                NameQuery("broker", .ipv4): "127.0.0.1", NameQuery("broker", .ipv6): "127.0.0.2",
            ])
            let resolver = names.resolver(maximumThreads: 4)
            resolver.start(NameQuery("silent", .ipv4)) { _ in }
            #expect(await eventually { names.questions.count == 1 })
            let error = await failure(
                of: .host("broker", port: silent.port), setting.loop, timeout: 20_000_000_000, resolver: resolver)
            #expect(error == nil)
            names.release()
            await listener.close()
        }

        @Test(arguments: SelectorKind.allCases)
        func `the other family is asked for before an address that failed earlier, although other names hang`(
            selector: SelectorKind
        ) async throws {
            let setting = try Setting(selector)
            let port = UInt16(FreePort.next())
            let kept = Collected<any ByteStream>()
            let one = try await Listener.listen(on: .host("127.0.0.1", port: port), loop: setting.loop) {
                kept.append($0)
            }
            let two = try await Listener.listen(on: .host("127.0.0.2", port: port), loop: setting.loop) {
                kept.append($0)
            }
            let names = ScriptedNames([
                NameQuery("broker", .ipv4): "127.0.0.1", NameQuery("broker", .ipv6): "127.0.0.2",
            ])
            let resolver = names.resolver(maximumThreads: 4)
            resolver.start(NameQuery("silent", .ipv4)) { _ in }
            #expect(await eventually { names.questions.count == 1 })
            let choice = Collected<AddressChoice?>()
            let first = try await Resolver.shared.resolve(.host("127.0.0.1", port: port))
            kept.append(
                try await Connector.connect(
                    to: .host("broker", port: port), timeout: 20_000_000_000, avoiding: first,
                    chosen: { choice.append($0) }, resolver: resolver, loop: setting.loop))
            #expect(choice.all.map { $0?.others } == [first])
            names.release()
            await one.close()
            await two.close()
            for stream in kept.all { stream.close() }
        }
    #endif

    @Test func `a connection leaves from the address and the interface that the options name`() async throws {
        let setting = try Setting(.automatic)
        let listener = try await Listener.listen(on: .host("127.0.0.1", port: 0), loop: setting.loop) { _ in }
        for (address, interface) in [(nil, nil), ("127.0.0.7", nil), (nil, "lo"), ("127.0.0.8", "lo")]
            as [(String?, String?)]
        {
            var network = NetworkOptions()
            network.localAddress = address
            network.interface = interface
            let stream = try await Connector.connect(
                to: .host("127.0.0.1", port: listener.port), network: network, timeout: 60_000_000_000,
                loop: setting.loop)
            let ends = ServiceMarks.localEnds(ofConnectionsTo: Int(listener.port))
            #expect(ends == ["\(address ?? "127.0.0.1")%\(interface ?? "")"])
            await setting.loop.result(of: { stream.close() })
        }
        await listener.close()
    }

    @Test func `an address of another family than the one to leave from is passed over`() async throws {
        let setting = try Setting(.automatic)
        let listener = try await Listener.listen(on: .host("127.0.0.1", port: 0), loop: setting.loop) { _ in }
        var network = NetworkOptions()
        network.localAddress = "127.0.0.1"
        let names = ScriptedNames([NameQuery("broker", .ipv4): "127.0.0.1", NameQuery("broker", .ipv6): "::1"])
        let stream = try await Connector.connect(
            to: .host("broker", port: listener.port), network: network, timeout: 60_000_000_000,
            resolver: names.resolver(), loop: setting.loop)
        await setting.loop.result(of: { stream.close() })
        network.localAddress = "::1"
        let error = await #expect(throws: TransportError.self) {
            _ = try await Connector.connect(
                to: .host("127.0.0.1", port: listener.port), network: network, timeout: 60_000_000_000,
                loop: setting.loop)
        }
        #expect(error?.code == .unreachable)
        #expect(error?.message.contains("family") == true)
        await listener.close()
    }

    @Test func `a path that is too long for a Unix-domain socket is refused with the system's limit`() async throws {
        let setting = try Setting(.automatic)
        let limit = MemoryLayout.size(ofValue: sockaddr_un().sun_path) - 1
        func message(_ count: Int) async -> String {
            await failure(of: .unix(path: "/" + String(repeating: "x", count: count - 1)), setting.loop)?.message ?? ""
        }
        // Nothing listens there.
        #expect(await message(limit).contains("it must be") == false)
        #expect(await message(limit + 1).contains("1 to \(limit) bytes"))
    }

    @Test(arguments: SelectorKind.allCases)
    func `clients that wait for silent names do not keep another from connecting`(selector: SelectorKind) async throws {
        let setting = try Setting(selector)
        let listener = try await Listener.listen(on: .host("127.0.0.1", port: 0), loop: setting.loop) { _ in }
        let names = ScriptedNames([NameQuery("known", .ipv4): "127.0.0.1"])
        let resolver = names.resolver()
        let stuck = (0..<12).map { number in
            Task { await failure(of: .host("silent\(number)", port: 1), setting.loop, resolver: resolver) }
        }
        #expect(await eventually { Set(names.questions.map(\.name)).count == 12 })
        #expect(await failure(of: .host("known", port: listener.port), setting.loop, resolver: resolver) == nil)
        for task in stuck { task.cancel() }
        for task in stuck { #expect(await task.value?.code == .cancelled) }
        #expect(resolver.queuedCount == 0)
        names.release()
        await listener.close()
    }

    @Test(arguments: SelectorKind.allCases)
    func `DNS that does not answer in time is named, not the host`(selector: SelectorKind) async throws {
        let setting = try Setting(selector)
        let names = ScriptedNames()
        let error = await failure(
            of: .host("broker", port: 1), setting.loop, timeout: 50_000_000, resolver: names.resolver())
        #expect(error?.code == .unknownHost)
        #expect(error?.message.hasPrefix("DNS did not answer in time for the host 'broker'") == true)
        names.release()
    }

    @Test(arguments: SelectorKind.allCases)
    func `waits while the queue of a Unix socket is full`(selector: SelectorKind) async throws {
        let setting = try Setting(selector, .unix)
        let path = setting.endpoint()
        guard case .unix(let name) = path else { return }
        let silent = try SilentServer(unixPath: name)
        let error = await failure(of: path, setting.loop, timeout: 100_000_000)
        #expect(error?.code == .timedOut)
        // Room in the queue: the one that waits gets through.
        let waiting = Task { await failure(of: path, setting.loop) }
        try await Task.sleep(for: .milliseconds(50))
        silent.acceptAll()
        #expect(await waiting.value == nil)
    }

    /// Binds a socket and connects it to its own address, as the system does where it chooses the server's port for a client.
    @Test func `a connection to itself is told from one to a server`() async throws {
        let setting = try Setting(.automatic)
        for host in Self.hasIPv6 ? ["127.0.0.1", "::1"] : ["127.0.0.1"] {
            let anyPort = try await Resolver.shared.resolve(.host(host, port: 0))[0]
            let descriptor = System.makeStreamSocket(family: anyPort.family)
            #expect(anyPort.withPointer { bind(descriptor, $0, $1) } == 0)
            let own = try #require(SocketAddress.local(of: descriptor))
            #expect(!System.isConnectedToItself(descriptor, own))
            _ = own.withPointer { connect(descriptor, $0, $1) }
            #expect(await eventually { System.isConnected(descriptor) })
            #expect(System.isConnectedToItself(descriptor, own))
            // The port is free at once.
            System.reset(descriptor)
            _ = closeDescriptor(descriptor)
            let listener = try await Listener.listen(on: .host(host, port: own.port), loop: setting.loop) { _ in }
            let client = System.makeStreamSocket(family: own.family)
            _ = own.withPointer { connect(client, $0, $1) }
            #expect(await eventually { System.isConnected(client) })
            #expect(!System.isConnectedToItself(client, own))
            _ = closeDescriptor(client)
            await listener.close()
        }
    }

    @Test(.enabled(if: Self.hasIPv6, "there is no ::1"), arguments: SelectorKind.allCases)
    func `an IPv6 address is connected to as well`(selector: SelectorKind) async throws {
        let setting = try Setting(selector)
        let listener = try await Listener.listen(on: .host("::1", port: 0), loop: setting.loop) { _ in }
        #expect(await failure(of: .host("::1", port: listener.port), setting.loop) == nil)
        await listener.close()
    }
}
