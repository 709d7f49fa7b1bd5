import TestSupport
import Testing

// Counts, not times: the same on every machine, and so worth failing for. What the optimiser leaves out is what counts,
// so that these tests exist in release builds only.
#if !DEBUG
    @Suite(.turns(minutes: 10))
    struct GuardTests {
        @Test func codecsAndEnginesAllocateNothing() async throws {
            let table = try await BenchmarkTable.run(["codec"], scale: 0.01)
            for version in ["3.1.1", "5.0"] {
                #expect(try table.allocations("MQTT \(version) encode PUBLISH") < 0.01)
                // The topic.
                #expect(try table.allocations("MQTT \(version) decode PUBLISH in place") < 1.01)
                #expect(try table.allocations("MQTT \(version) decode, packets of their own") < 2.01)
            }
            #expect(try table.allocations("MQTT engine receives PUBLISH") < 0.01)
            #expect(try table.allocations("STOMP engine sends SEND, 263 bytes") < 0.01)
            #expect(try table.allocations("STOMP engine receives MESSAGE") < 0.01)
            #expect(try table.allocations("STOMP engine sends SEND to 1,000 destinations") < 0.01)
            // The destination and the content type, which do not fit into small strings.
            #expect(
                try table.allocations("STOMP engine receives MESSAGE to 50 destinations, three headers read") < 2.01)
            #expect(try table.allocations("Frame log keeps PUBLISH, reads of 1,000") < 0.01)
        }

        @Test func aWatchedClientAllocatesNoMoreThanOthers() async throws {
            let table = try await BenchmarkTable.run(["traffic-watched", "stomp-watched"], scale: 0.1)
            for name in [
                "MQTT publish arrays, ten topics, watched ÷ not", "MQTT receive, ten topics, watched ÷ not",
                "STOMP receive, watched ÷ not",
            ] {
                #expect(try table.allocations(name) < 0.05, "\(name)")
            }
        }

        @Test func sendingAllocatesNothingAndSharesWrites() async throws {
            let table = try await BenchmarkTable.run(
                ["mqtt-publish", "mqtt-window-array", "stomp-send", "stomp-destinations"], scale: 0.1)
            for (name, calls, allocations) in [
                ("MQTT QoS 0 publish, one call each", 0.2, 0.02), ("MQTT QoS 0 publish, arrays of 100", 0.05, 0.02),
                ("MQTT QoS 1 publish, window 100, array", 0.2, 0.01), ("STOMP send, one call each", 0.3, 0.02),
                ("STOMP send, 1,000 destinations ÷ one", 0.3, 0.02),
            ] {
                #expect(try table.allocations(name) < allocations, "\(name)")
                #expect(try table.calls(name) < calls, "\(name)")
            }
        }

        @Test func receivingAllocatesOncePerMessageAtMost() async throws {
            let table = try await BenchmarkTable.run(["mqtt-receive", "stomp-receive", "stomp-headers"], scale: 0.05)
            #expect(try table.allocations("MQTT QoS 0 receive, slices") < 0.05)
            #expect(try table.allocations("MQTT QoS 0 receive, owned") < 1.05)
            #expect(try table.allocations("MQTT QoS 0 receive, batches") < 0.05)
            #expect(try table.allocations("STOMP receive") < 0.05)
            // The destination and the content type, which do not fit into small strings.
            #expect(try table.allocations("STOMP receive, destination and two headers read") < 2.05)
            for name in ["MQTT QoS 0 receive, slices", "STOMP receive"] {
                #expect(try table.calls(name) < 0.05, "\(name)")
            }
        }

        @Test func receivingManyTopicsAndPropertiesAllocatesNoMoreThanWhatIsRead() async throws {
            let table = try await BenchmarkTable.run(
                ["traffic-receive", "traffic-properties", "traffic-filters"], scale: 0.02)
            for topics in ["10", "1,000"] {
                #expect(try table.allocations("MQTT receive, \(topics) topics, slices") < 0.05, "\(topics)")
            }
            // At this scale every tenth message is the first of its topic, which is looked up among the filters then.
            #expect(try table.allocations("MQTT receive, 10,000 topics, slices") < 0.25)
            // The payload and the topic.
            #expect(try table.allocations("MQTT receive, 1,000 topics, owned") < 2.05)
            #expect(try table.allocations("MQTT receive, QoS 1, one topic, window 1,000") < 0.1)
            #expect(try table.calls("MQTT receive, QoS 1, one topic, window 1,000") < 0.05)
            for name in ["publish singly", "publish arrays", "receive"] {
                let row = "MQTT 5.0 \(name), two user properties ÷ a payload 36 bytes longer"
                #expect(try table.allocations(row) < 0.05, "\(name)")
            }
        }

        /// Each awaited answer is one write, one wait and one read, and what is under way at the same time shares them. On the
        /// client's executor the numbers are the same on each machine; on the pool a busy one adds wake-ups of the loop.
        @Test func eachOperationTakesFewSystemCalls() async throws {
            let names = [
                "mqtt-publish-single", "mqtt-receive-slices", "mqtt-roundtrip-idle", "connections", "stomp-connections",
                "stomp-send", "stomp-receive",
            ]
            let table = try await BenchmarkTable.run(names, scale: 0.1)
            for (name, limit) in [
                ("MQTT QoS 0 publish, one call each", 0.1), ("MQTT QoS 0 receive, slices", 0.02),
                // The write, the wait and the read; on the pool the loop is woken for the deadline too: 3.7 to 4.6.
                ("MQTT QoS 1 round trip, idle cores, median", 7),
                ("MQTT QoS 1 round trip, idle cores, median, on the client's executor", 3.2),
                ("MQTT connect and disconnect", 24), ("MQTT connect and disconnect, on the client's executor", 13.5),
                ("STOMP connect and disconnect", 26), ("STOMP send, one call each", 0.2), ("STOMP receive", 0.02),
            ] {
                #expect(try table.systemCalls(name) < limit, "\(name)")
            }
            // Where nothing is counted everything would pass.
            #expect(try table.systemCalls("MQTT connect and disconnect") > 7)
        }

        @Test func connectingAllocatesLittleAndSwitchesThreadsSeldom() async throws {
            let table = try await BenchmarkTable.run(["connections"], scale: 0.1)
            #expect(try table.allocations("MQTT connect and disconnect") < 72)
            // The caller's thread and the loop's, each for the two calls, and the broker's answer.
            #expect(try table.figure("MQTT connect and disconnect, times that a thread waits") < 8)
        }

        @Test func tasksThatAwaitOnThePoolShareReadsAndWrites() async throws {
            let table = try await BenchmarkTable.run(["mqtt-window-tasks", "stomp-receipts"], scale: 0.1)
            for (name, calls) in [
                ("MQTT QoS 1 publish, 100 tasks awaiting", 0.2),
                ("STOMP send with receipt, 1,024 tasks awaiting", 0.12),
            ] {
                // One is Dispatch's for each task that it is given from another thread.
                #expect(try table.allocations(name) < 1.4, "\(name)")
                #expect(try table.calls(name) < calls, "\(name)")
            }
        }

        @Test(
            .requires(program: "valgrind"),
            arguments: [
                // Two versions of the protocol in the first three.
                ("codec-mqtt-encode", 1_050.0), ("codec-mqtt-decode", 2_600), ("codec-mqtt-packets", 5_500),
                ("codec-mqtt-engine", 250), ("codec-mqtt-qos1", 185), ("codec-mqtt-qos2", 2_500),
                ("codec-mqtt-mixed", 2_500), ("codec-mqtt-topics", 250),
                ("codec-mqtt-properties", 1_200),
                ("codec-stomp-send", 1_700), ("codec-stomp-receive", 2_500), ("codec-stomp-destinations", 1_800),
                ("codec-stomp-headers", 5_000), ("codec-log", 350),
            ])
        func instructionsStayFew(_ row: String, limit: Double) async throws {
            let valgrind = try #require(Command.path(of: "valgrind"))
            guard let instructions = try await BenchmarkTable.instructions(row, valgrind: valgrind) else { return }
            #expect(instructions < limit)
            // A row that does nothing would pass too.
            #expect(instructions > limit / 10)
        }
    }
#endif
