import TestSupport
import Testing
import Transport
import Wire

@Suite(.turns) struct ResolverTests {
    @Test func `finds names and literal addresses`() async throws {
        #expect(try await !Resolver.resolve(.host("localhost", port: 1)).isEmpty)
        #expect(try await Resolver.resolve(.host("127.0.0.1", port: 1)).map(\.isIPv6) == [false])
        #expect(try await Resolver.resolve(.host("::1", port: 1)).map(\.isIPv6) == [true])
    }

    @Test func `many look-ups at once all come back`() async throws {
        try await withThrowingTaskGroup { group in
            for _ in 0..<50 {
                group.addTask { try await Resolver.resolve(.host("localhost", port: 1)).count }
            }
            for try await count in group { #expect(count > 0) }
        }
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
