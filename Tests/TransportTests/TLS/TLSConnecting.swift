import Foundation
import TestSupport
import Testing
import Transport

extension TLSOptions {
    /// Trusts the tests' authority and nobody else.
    static func trusting(_ certificates: Certificates) -> TLSOptions {
        var options = TLSOptions()
        options.trust = .authorities([.file(certificates.authority.certificate)])
        return options
    }
}

/// Connects to a loopback port and does the TLS handshake.
func connectTLS(
    port: UInt16, host: String = "localhost", contexts: TLSContexts, timeout: Int64 = 60_000_000_000
) async throws(TransportError) -> (stream: SocketStream, layers: LayerStack, layer: TLSLayer) {
    let layer = try TLSLayer(client: contexts, host: host, port: port)
    let layers = LayerStack(
        [layer], deadline: MonotonicClock.now + timeout, timeout: TransportError(.timedOut, "too slow"))
    let stream = try await Connector.connect(
        to: .host("127.0.0.1", port: port), timeout: timeout, loop: EventLoop.shared)
    try await LayerHandshake.run(layers, over: stream, loop: EventLoop.shared)
    return (stream, layers, layer)
}

extension Certificates {
    /// The authority in each form that the options take.
    func authoritySources() throws -> [PEMSource] {
        let der = Array(try Data(contentsOf: URL(fileURLWithPath: authorityDER)))
        let pem = Array(try Data(contentsOf: URL(fileURLWithPath: authority.certificate)))
        return [
            .file(authority.certificate), .file(authorityDER), .bytes(der), .bytes(pem),
            .text(String(decoding: pem, as: UTF8.self)),
        ]
    }
}

extension TLSLayer {
    /// OpenSSL's connection, which only tests of what a peer may do have a reason to reach.
    var connection: OpaquePointer? { ofSession("connection") as? OpaquePointer }

    /// What was made of the options.
    var contextID: ObjectIdentifier? { ofSession("context").map { ObjectIdentifier($0 as AnyObject) } }

    private func ofSession(_ name: String) -> Any? {
        let session = Mirror(reflecting: self).children.first { $0.label == "session" }?.value
        return session.flatMap { Mirror(reflecting: $0).children.first { $0.label == name }?.value }
    }
}
