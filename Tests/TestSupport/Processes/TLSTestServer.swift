/// An `openssl s_server` that sends each line back reversed.
public struct TLSTestServer: Sendable {
    public let port: UInt16
    public let process: ChildProcess

    public static func start(_ pair: Certificates.Pair, _ arguments: [String] = []) async throws -> TLSTestServer {
        let port = FreePort.next()
        let process = try await ChildProcess.start(
            Command(
                "openssl",
                ["s_server", "-accept", "127.0.0.1:\(port)", "-cert", pair.certificate, "-key", pair.key, "-rev"]
                    + arguments))
        try await process.waitForLine(containing: "ACCEPT")
        return TLSTestServer(port: UInt16(port), process: process)
    }
}
