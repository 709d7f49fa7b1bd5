import MQTT
import MQTTCore
import TestSupport
import Testing

/// A client gets only its share of the messages of a shared filter. Without identifiers they cannot be told from those of
/// another filter.
@Suite("Client: shared filters beside others", .turns)
struct SharedFilterTests {
    /// What a client may not have at once, the later filter last.
    private static let conflicts = [
        ["jobs/#", "$share/g/jobs/+"], ["$share/g/jobs/+", "jobs/#"], ["$share/g/jobs", "$share/h/jobs"],
        ["$share/g/jobs", "jobs"], ["$share/g/#", "$share/g/jobs"],
    ]

    /// What it may have.
    private static let allowed = [
        ["$share/g/jobs", "$share/g/jobs"], ["$share/g/jobs", "other"], ["$share/g/jobs/+", "jobs"],
        ["jobs/#", "jobs/+"], ["$share/g/#", "$SYS/#"],
    ]

    enum Servers: CaseIterable {
        case before5, without, with

        var version: MQTTVersion { self == .before5 ? .v3_1_1 : .v5_0 }
        var server: SubscribingServer {
            SubscribingServer { if self == .without { $0.subscriptionIdentifierAvailable = false } }
        }
    }

    private func expectError(_ error: any Error, _ filters: [String]) throws {
        let error = try #require(error as? MQTTError)
        #expect(error.code == .invalidRequest)
        for filter in filters { #expect(error.description.contains("'\(filter)'")) }
        #expect(error.description.contains("another client"))
    }

    private func end(of messages: MQTTSubscription) async throws -> any Error {
        try await withTimeout(.patience, "the end") {
            do {
                for try await _ in messages {}
                return CancellationError()
            } catch {
                return error
            }
        }
    }

    @Test(arguments: Servers.allCases, conflicts)
    func `the later of two filters is refused where messages cannot be told apart`(
        servers: Servers, filters: [String]
    ) async throws {
        let server = servers.server
        let client = server.scriptedServer.client { $0.version = servers.version }
        try await client.connect()
        let first = try await client.subscribe(to: filters[0])
        do {
            let second = try await client.subscribe(to: filters[1])
            #expect(servers == .with)
            withExtendedLifetime(second) {}
        } catch {
            #expect(servers != .with)
            try expectError(error, filters)
            // It was not asked for, and the first one continues.
            #expect(server.subscribed.map(\.filter) == [filters[0]])
            try expectError(try await end(of: client.subscription(to: filters[1])), filters)
            server.send("x", to: "jobs/1")
            server.send("x", to: "jobs")
            #expect(try await first.first(1).map(\.text) == ["x"])
            // Once it has ended, the other filter may be used.
            try await first.unsubscribe()
            _ = try await client.subscribe(to: filters[1])
        }
        await client.disconnect()
        withExtendedLifetime(server) {}
    }

    @Test(arguments: Servers.allCases, allowed)
    func `filters that do not match the same topics, or are not shared, are allowed`(
        servers: Servers, filters: [String]
    ) async throws {
        let server = servers.server
        let client = server.scriptedServer.client { $0.version = servers.version }
        try await client.connect()
        var messages: [MQTTSubscription] = []
        for filter in filters { messages.append(try await client.subscribe(to: filter)) }
        #expect(messages.count == 2)
        await client.disconnect()
        withExtendedLifetime(server) {}
    }

    @Test(arguments: Servers.allCases, conflicts)
    func `filters of one call are compared as well`(servers: Servers, filters: [String]) async throws {
        let server = servers.server
        let client = server.scriptedServer.client { $0.version = servers.version }
        try await client.connect()
        do {
            let messages = try await client.subscribe(to: filters.map { MQTTSubscriptionRequest(filter: $0) })
            #expect(servers == .with)
            withExtendedLifetime(messages) {}
        } catch {
            try expectError(error, filters)
            #expect(servers != .with && server.subscribed.isEmpty)
        }
        await client.disconnect()
        withExtendedLifetime(server) {}
    }

    /// The version is known before; whether a server of 5.0 supports identifiers is not.
    @Test(arguments: Servers.allCases)
    func `before the first connection the version decides, and then CONNACK`(servers: Servers) async throws {
        let server = servers.server
        let client = server.scriptedServer.client { $0.version = servers.version }
        let filters = ["jobs/#", "$share/g/jobs/+"]
        let first = client.subscription(to: filters[0])
        let second = client.subscription(to: filters[1])
        let third = client.subscription(to: "$share/h/other")
        if servers == .before5 { try expectError(try await end(of: second), filters) }
        try await client.connect()
        switch servers {
        case .before5, .without:
            if servers == .without { try expectError(try await end(of: second), filters) }
            #expect(await eventually { Set(server.subscribed.map(\.filter)) == ["jobs/#", "$share/h/other"] })
            server.send("x", to: "jobs/1")
            #expect(try await first.first(1).map(\.text) == ["x"])
        case .with:
            #expect(await eventually { Set(server.subscribed.map(\.filter)) == Set(filters + ["$share/h/other"]) })
        }
        withExtendedLifetime(third) {}
        await client.disconnect()
        withExtendedLifetime(server) {}
    }
}
