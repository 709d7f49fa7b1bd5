import MessagingWire
import Transport

/// Two layers that talk to each other in memory, in pieces of a given size.
final class LayerPair {
    let client: any ByteLayer
    let server: any ByteLayer
    let pieceSize: Int
    private var toServer: [UInt8] = []
    private var toClient: [UInt8] = []
    /// Plaintext that arrived.
    var atServer: [UInt8] = []
    var atClient: [UInt8] = []
    /// All that the client has put on the wire.
    private(set) var sentByClient = 0

    init(client: any ByteLayer, server: any ByteLayer, pieceSize: Int = .max) throws {
        self.client = client
        self.server = server
        self.pieceSize = pieceSize
        try client.opened(at: 0, wire: &toServer)
        try server.opened(at: 0, wire: &toClient)
    }

    /// Moves bytes until nobody has any left; what a failing layer wrote is still delivered by the next call.
    func exchange() throws {
        while !toServer.isEmpty || !toClient.isEmpty {
            let up = toServer
            toServer = []
            sentByClient += up.count
            for piece in pieces(up) { try server.receive(piece.span.bytes, at: 0, plain: &atServer, wire: &toClient) }
            let down = toClient
            toClient = []
            for piece in pieces(down) { try client.receive(piece.span.bytes, at: 0, plain: &atClient, wire: &toServer) }
        }
    }

    func send(fromClient bytes: [UInt8]) throws { try client.send(bytes.span.bytes, wire: &toServer) }
    func send(fromServer bytes: [UInt8]) throws { try server.send(bytes.span.bytes, wire: &toClient) }
    func closeClient() { client.close(wire: &toServer) }

    private func pieces(_ bytes: [UInt8]) -> [[UInt8]] {
        stride(from: 0, to: bytes.count, by: min(pieceSize, max(1, bytes.count))).map {
            Array(bytes[$0..<min($0 + min(pieceSize, bytes.count), bytes.count)])
        }
    }
}
