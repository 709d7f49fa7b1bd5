import TestSupport
import Testing

// Counts, not times: the same on every machine, and so worth failing for. What the optimiser leaves out is what counts,
// so that these tests exist in release builds only.
#if !DEBUG
    @Suite(.turns)
    struct GuardTests {
        /// Fails with the figure, which `#expect` leaves out of an expression with `try`.
        private func expect(
            _ column: (String) throws -> Double, of row: String, below limit: Double,
            at location: SourceLocation = #_sourceLocation
        ) throws {
            let figure = try column(row)
            #expect(figure < limit, "\(row)", sourceLocation: location)
        }

        @Test func codecsAndEnginesAllocateNothing() async throws {
            let table = try await BenchmarkTable.run(["codec"], scale: 0.01)
            for version in ["3.1.1", "5.0"] {
                try expect(table.allocations, of: "MQTT \(version) encode PUBLISH", below: 0.01)
                // The topic.
                try expect(table.allocations, of: "MQTT \(version) decode PUBLISH in place", below: 1.01)
                try expect(table.allocations, of: "MQTT \(version) decode, packets of their own", below: 2.01)
            }
            try expect(table.allocations, of: "MQTT engine receives PUBLISH", below: 0.01)
            try expect(table.allocations, of: "STOMP engine sends SEND, 263 bytes", below: 0.01)
            try expect(table.allocations, of: "STOMP engine receives MESSAGE", below: 0.01)
            try expect(table.allocations, of: "STOMP engine sends SEND to 1,000 destinations", below: 0.01)
            // The destination and the content type, which do not fit into small strings.
            try expect(
                table.allocations, of: "STOMP engine receives MESSAGE to 50 destinations, three headers read",
                below: 2.01)
            try expect(table.allocations, of: "Frame log keeps PUBLISH, reads of 1,000", below: 0.01)
        }

        @Test func aWatchedClientAllocatesNoMoreThanOthers() async throws {
            let table = try await BenchmarkTable.run(["traffic-watched", "stomp-watched"], scale: 0.1)
            for name in [
                "MQTT publish arrays, ten topics, watched ÷ not", "MQTT receive, ten topics, watched ÷ not",
                "STOMP receive, watched ÷ not",
            ] {
                try expect(table.allocations, of: name, below: 0.05)
            }
        }

        @Test func sendingAllocatesNothingAndSharesWrites() async throws {
            let table = try await BenchmarkTable.run(
                ["mqtt-publish", "mqtt-window-array", "stomp-send", "stomp-destinations"], scale: 0.1)
            for (name, calls, allocations) in [
                // How many calls share a write depends on how fast the loop's thread wakes; each alone would be one.
                ("MQTT QoS 0 publish, one call each", 0.5, 0.02), ("MQTT QoS 0 publish, arrays of 100", 0.05, 0.02),
                ("MQTT QoS 1 publish, window 100, array", 0.2, 0.01), ("STOMP send, one call each", 0.5, 0.02),
                ("STOMP send, 1,000 destinations ÷ one", 0.5, 0.02),
            ] {
                try expect(table.allocations, of: name, below: allocations)
                try expect(table.calls, of: name, below: calls)
            }
        }

        @Test func receivingAllocatesOncePerMessageAtMost() async throws {
            let table = try await BenchmarkTable.run(["mqtt-receive", "stomp-receive", "stomp-headers"], scale: 0.05)
            try expect(table.allocations, of: "MQTT QoS 0 receive, slices", below: 0.05)
            try expect(table.allocations, of: "MQTT QoS 0 receive, owned", below: 1.05)
            try expect(table.allocations, of: "MQTT QoS 0 receive, batches", below: 0.05)
            try expect(table.allocations, of: "STOMP receive", below: 0.05)
            // The destination and the content type, which do not fit into small strings.
            try expect(table.allocations, of: "STOMP receive, destination and two headers read", below: 2.05)
            for name in ["MQTT QoS 0 receive, slices", "STOMP receive"] {
                try expect(table.calls, of: name, below: 0.05)
            }
        }

        @Test func receivingManyTopicsAndPropertiesAllocatesNoMoreThanWhatIsRead() async throws {
            let table = try await BenchmarkTable.run(
                ["traffic-receive", "traffic-properties", "traffic-filters"], scale: 0.02)
            for topics in ["10", "1,000"] {
                try expect(table.allocations, of: "MQTT receive, \(topics) topics, slices", below: 0.05)
            }
            // At this scale every tenth message is the first of its topic, which is looked up among the filters then.
            try expect(table.allocations, of: "MQTT receive, 10,000 topics, slices", below: 0.25)
            // The payload and the topic.
            try expect(table.allocations, of: "MQTT receive, 1,000 topics, owned", below: 2.05)
            try expect(table.allocations, of: "MQTT receive, QoS 1, one topic, window 1,000", below: 0.1)
            try expect(table.calls, of: "MQTT receive, QoS 1, one topic, window 1,000", below: 0.05)
            for name in ["publish singly", "publish arrays", "receive"] {
                let row = "MQTT 5.0 \(name), two user properties ÷ a payload 36 bytes longer"
                try expect(table.allocations, of: row, below: 0.05)
            }
        }

        /// Each awaited answer is one write, one wait and one read, and what is under way at the same time shares them. The
        /// limits hold where nothing is shared, as on a slow machine; on the pool a busy one adds wake-ups of the loop.
        @Test func eachOperationTakesFewSystemCalls() async throws {
            let names = [
                "mqtt-publish-single", "mqtt-receive-slices", "mqtt-roundtrip-idle", "connections", "stomp-connections",
                "stomp-send", "stomp-receive",
            ]
            let table = try await BenchmarkTable.run(names, scale: 0.1)
            for (name, limit) in [
                // Each alone would be a write and the loop's wake-up.
                ("MQTT QoS 0 publish, one call each", 0.5), ("MQTT QoS 0 receive, slices", 0.02),
                // The write, the wait and the read; on the pool the loop is woken for the deadline too: 3.7 to 4.6.
                ("MQTT QoS 1 round trip, idle cores, median", 7),
                ("MQTT QoS 1 round trip, idle cores, median, on the client's executor", 3.2),
                ("MQTT connect and disconnect", 24),
                // Fifteen: seven open a socket, see that it is not connected to itself, watch it and write CONNECT; a wait and
                // a read for CONNACK; the write of DISCONNECT, how far it has come, the end of our direction; a wait, a read
                // and the close.
                ("MQTT connect and disconnect, on the client's executor", 15.2),
                ("STOMP connect and disconnect", 30), ("STOMP send, one call each", 0.5), ("STOMP receive", 0.02),
            ] {
                try expect(table.systemCalls, of: name, below: limit)
            }
            // Where nothing is counted everything would pass.
            #expect(try table.systemCalls("MQTT connect and disconnect") > 7)
        }

        @Test func connectingAllocatesLittleAndSwitchesThreadsSeldom() async throws {
            let table = try await BenchmarkTable.run(["connections"], scale: 0.1)
            try expect(table.allocations, of: "MQTT connect and disconnect", below: 73)
            // The caller's thread and the loop's, each for the two calls, and the broker's answer.
            try expect(table.figure, of: "MQTT connect and disconnect, times that a thread waits", below: 8)
        }

        /// A task that awaits alone takes a write and a read. How many share them depends on when the pool's threads get
        /// a core: from 30 to fewer than 5 on one machine.
        @Test func tasksThatAwaitOnThePoolShareReadsAndWrites() async throws {
            let table = try await BenchmarkTable.run(["mqtt-window-tasks", "stomp-receipts"], scale: 0.1)
            for name in [
                "MQTT QoS 1 publish, 100 tasks awaiting", "STOMP send with receipt, 1,024 tasks awaiting",
            ] {
                // One is Dispatch's for each task that it is given from another thread.
                try expect(table.allocations, of: name, below: 1.4)
                try expect(table.calls, of: name, below: 0.5)
            }
        }

        @Test(
            .requires(program: "valgrind"),
            arguments: [
                // Two versions of the protocol in the first three.
                ("codec-mqtt-encode", 1_050.0), ("codec-mqtt-decode", 2_600), ("codec-mqtt-packets", 5_500),
                ("codec-mqtt-engine", 250), ("codec-mqtt-qos1", 185), ("codec-mqtt-qos2", 2_560),
                ("codec-mqtt-mixed", 2_500), ("codec-mqtt-topics", 250),
                ("codec-mqtt-properties", 1_200),
                ("codec-stomp-send", 1_700), ("codec-stomp-receive", 2_500), ("codec-stomp-destinations", 1_800),
                ("codec-stomp-headers", 5_000), ("codec-log", 350),
            ])
        func instructionsStayFew(_ row: String, limit: Double) async throws {
            let valgrind = try #require(Command.path(of: "valgrind"))
            guard let instructions = try await BenchmarkTable.instructions(row, valgrind: valgrind) else { return }
            #if arch(x86_64)
                #expect(instructions < limit)
            #else
                // Counted for x86-64; others need up to half as many again.
                #expect(instructions < limit * 1.5)
            #endif
            // A row that does nothing would pass too.
            #expect(instructions > limit / 10)
        }
    }
#endif
