import Transport

/// The servers of a client, which is mostly one: it lies here itself then.
enum ServerList: Sendable {
    case one(BrokerURL)
    case several([BrokerURL])
    /// Reported by whoever wants a server.
    case mistaken(TransportError)

    /// - Parameter schemes: what the client's protocol may be reached by.
    init(_ urls: [String], schemes: [BrokerURL.Scheme]) {
        do throws(TransportError) {
            var servers: [BrokerURL] = []
            for url in urls { servers.append(try BrokerURL(url).limited(to: schemes)) }
            guard let first = servers.first else {
                throw TransportError(.badURL, "there is no server to connect to: name one")
            }
            self = servers.count == 1 ? .one(first) : .several(servers)
        } catch {
            self = .mistaken(error)
        }
    }

    var count: Int { if case .several(let servers) = self { servers.count } else { 1 } }

    func server(at index: Int) throws(TransportError) -> BrokerURL {
        switch self {
        case .one(let server): server
        case .several(let servers): servers[index]
        case .mistaken(let error): throw error
        }
    }
}
