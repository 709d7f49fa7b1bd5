import Foundation
import TestSupport
import Testing

/// Connections that do nothing cost nothing but their keep alive. Counts, and so the same on a machine that is busy.
@Suite(.turns)
struct IdleTests {
    #if os(Linux)
        /// How many descriptors this process may have at most, once it raises its limit.
        private static let descriptors: Int = {
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            return Int(clamping: limit.rlim_max)
        }()

        @Test(.enabled(if: descriptors >= 5_200, "this system allows a process \(descriptors) descriptors"))
        func idleConnectionsWakeTheirOneThreadForTheirKeepAliveAlone() async throws {
            let table = try await BenchmarkTable.run(["idle"], scale: 1)
            #expect(try table.figure("5000 idle connections, threads that serve them") == 1)
            // None of them has to ping within ten minutes.
            #expect(try table.figure("5000 idle connections, wake-ups of their thread in a second") == 0)
            // Some 2,510. Dispatch keeps 64 KiB and more for each of its threads, thirteen bytes for each of so many
            // connections, and a busy machine has several threads more than an idle one.
            let size = try table.figure("5000 idle connections, bytes allocated for each")
            #expect(size <= 2_560 && size > 500)
            // Some 5,700; Dispatch's part shows here as well.
            let used = "2000 idle clients with their own configuration, a subscription and a publish"
            let usedSize = try table.figure("\(used), bytes allocated for each")
            #expect(usedSize <= 6_500 && usedSize > 1_000)
            let pings = try table.figure("20 connections with a keep alive of 1 s, wake-ups for each in a second")
            // The deadline and the answer; several connections may share a wake-up, and three seconds may have a fourth ping.
            #expect(pings < 2.9 && pings > 0)
        }
    #endif
}
