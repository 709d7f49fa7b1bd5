import Foundation

/// Other clients on the same machine, in the same minute, against the same brokers: `--peers`.
///
/// Needs `libmosquitto-dev` and `libpaho-mqtt-dev` of Debian, and stomp.py for the Python that `PYTHON` names; a peer that
/// is missing is left out with a word on standard error. Clients of other languages are programs that take the same
/// arguments as `peer_mosquitto`: `--peer NAME=PROGRAM`.
struct PeerRows {
    struct Peer {
        let name: String
        let program: String
    }

    let rounds: Int
    let scale: Double
    let peers: [Peer]

    /// The peers in C that can be compiled here, and those that are named.
    static func find(_ named: [Peer]) -> [Peer] {
        let libraries = [
            ("libmosquitto", "peer_mosquitto", "-lmosquitto", "libmosquitto-dev"),
            ("Paho C", "peer_paho", "-lpaho-mqtt3a", "libpaho-mqtt-dev"),
        ]
        return libraries.compactMap { name, program, library, package in
            let path = try? Shell.compile(program, options: [library, "-lpthread"])
            if path == nil { complain("\(name) is left out: it cannot be compiled. Install \(package).") }
            return path.map { Peer(name: name, program: $0) }
        } + named
    }

    func mqtt(_ mqtt: MQTTRows) throws -> [Row] {
        var rows: [Row] = []
        for peer in peers {
            for (mode, what, count) in [
                ("publish", "QoS 0 publish", 300_000), ("window", "QoS 1 publish, window 100", 200_000),
                ("receive", "QoS 0 receive", 1_000_000),
            ] {
                let count = max(1000, Int(Double(count) * scale))
                let row = Row("\(peer.name): MQTT \(what)", unit: "msg/s", goal: "a peer")
                rows += measured(row) {
                    let limit = Double(count) / (try seconds(mqtt.limit, [mqtt.port, mode, "\(count)"]))
                    return (Double(count) / (try seconds(peer.program, [mqtt.port, mode, "\(count)"])), limit)
                }
            }
            let count = max(1000, Int(10_000 * scale))
            let row = Row("\(peer.name): MQTT QoS 1 round trip, median", unit: "ns", isRate: false, goal: "a peer")
            rows += measured(row) {
                let limit = try seconds(mqtt.limit, [mqtt.port, "roundtrip", "\(count)"])
                return (try seconds(peer.program, [mqtt.port, "roundtrip", "\(count)"]), limit)
            }
        }
        return rows
    }

    /// Through a real broker, beside the same in C.
    func latency(_ name: String, port: String, qos: Int, count: Int) -> [Row] {
        peers.flatMap { peer -> [Row] in
            guard let limit = try? Shell.compile("latency_limit") else { return [] }
            let row = Row(
                "\(peer.name): \(name), publish to receive, median", unit: "ns", isRate: false, goal: "a peer")
            return measured(row) {
                let inC = try seconds(limit, [port, "mqtt\(qos)", "\(count)"])
                return (try seconds(peer.program, [port, "latency\(qos)", "\(count)"]), inC)
            }
        }
    }

    /// Connections one after the other, and programs that publish one message.
    func connections(_ mqtt: MQTTRows, _ connecting: String) -> [Row] {
        peers.flatMap { peer -> [Row] in
            let count = max(100, Int(2_000 * scale))
            // Paho takes 150 ms for each.
            let peerCount = 50
            let row = Row("\(peer.name): MQTT connect and disconnect", unit: "/s", goal: "a peer")
            let start = Row("\(peer.name): process start to first message", unit: "µs", isRate: false, goal: "a peer")
            return measured(row) {
                let limit = Double(count) / (try seconds(connecting, [mqtt.port, "4", "connect", "\(count)"]))
                let time = try seconds(peer.program, [mqtt.port, "connect", "\(peerCount)"])
                return (Double(peerCount) / time, limit)
            }
                + measured(start) {
                    (
                        try StartRows.time(peer.program, [mqtt.port, "window", "1"], times: 20),
                        try StartRows.time(mqtt.limit, [mqtt.port, "window", "1"], times: 20)
                    )
                }
        }
    }

    func stomp(_ stomp: STOMPRows) throws -> [Row] {
        let python = ProcessInfo.processInfo.environment["PYTHON"] ?? "/usr/bin/python3"
        let script = Shell.sources.appendingPathComponent("peer_stomp.py").path
        guard
            (try? Shell.run(python, ["-c", "import importlib.util; exit(not importlib.util.find_spec('stomp'))"]))
                != nil
        else {
            Self.complain("stomp.py does not run with \(python): name a Python that has it with PYTHON")
            return []
        }
        return [("send", "send"), ("receive", "receive")].flatMap { mode, what in
            let count = max(1000, Int(50_000 * scale))
            return measured(Row("stomp.py: STOMP \(what)", unit: "frames/s", goal: "a peer")) {
                let limit = Double(count) / (try seconds(stomp.limit, [stomp.port, mode, "\(count)"]))
                return (Double(count) / (try seconds(python, [script, stomp.port, mode, "\(count)"])), limit)
            }
        }
    }

    /// The row with its rounds; none, with a word on why, where the peer cannot do it.
    private func measured(_ row: Row, _ round: () throws -> (ours: Double, limit: Double)) -> [Row] {
        var row = row
        do {
            for _ in 0..<rounds {
                let (ours, limit) = try round()
                row.add(ours: ours, limit: limit)
            }
            return [row]
        } catch {
            Self.complain("\(row.name) is left out: \(error)")
            return []
        }
    }

    /// The first number that a program prints.
    private func seconds(_ program: String, _ arguments: [String]) throws -> Double {
        let words = try Shell.run(program, arguments).split(whereSeparator: \.isWhitespace)
        return words.first.flatMap { Double($0) } ?? .nan
    }

    private static func complain(_ text: String) {
        FileHandle.standardError.write(Data((text + "\n").utf8))
    }
}
