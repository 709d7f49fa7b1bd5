// CONNECTED at a client (STOMP 1.2 "Protocol Negotiation", "Heart-beating").

extension STOMPEngine {
    mutating func handleConnected(
        _ bytes: RawSpan, _ base: Int, at now: Int64, into effects: inout STOMPEffects
    ) throws(STOMPProtocolError) {
        let frame = STOMPFrame(scanner, in: bytes, from: base, version: .v12)
        // A server of 1.0 says no version.
        let text = frame.headers["version"] ?? "1.0"
        guard let version = STOMPVersion(text.trimmingBlanks()), connectOptions.versions.contains(version) else {
            let offered = Set(connectOptions.versions).sorted().map(\.description).joined(separator: ", ")
            throw STOMPProtocolError(
                .versionMismatch,
                "The server chose STOMP \(text); offered were \(offered). Offer that version if it is wanted.")
        }
        var server = STOMPHeartBeat.none
        if let header = frame.headers["heart-beat"] {
            guard let beat = STOMPHeartBeat(header) else {
                throw STOMPProtocolError(
                    .invalidHeader, "CONNECTED says heart-beat:\(header), which is not two numbers.")
            }
            server = beat
        }
        self.version = version
        heartBeat = connectOptions.heartBeat.agreed(with: server)
        profile = configuration.profile ?? STOMPBrokerProfile(serverHeader: frame.headers["server"])
        phase = .connected
        phaseDeadline = .max
        timing = HeartBeatTiming(heartBeat, at: now)
        effects.add(
            .connected(
                STOMPConnected(
                    version: version, session: frame.headers["session"], server: frame.headers["server"],
                    heartBeat: heartBeat, profile: profile, headers: frame.headers)))
    }
}
