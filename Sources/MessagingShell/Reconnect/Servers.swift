import Transport

/// In which order the servers of a list are tried.
///
/// Each server is tried once, after ``ReconnectPolicy/failoverDelay``, before the client waits for longer; this is called a
/// round. After a connection just ended, its server comes first in the next round if the connection lasted for
/// ``ReconnectPolicy/stableAfter``. It comes last otherwise, and if it fell silent, broke the protocol or sent the client
/// away, so that such a server does not keep its clients from the others.
public struct ServerOrder: Sendable, Equatable {
    enum Kind: Sendable, Equatable {
        case listed, shuffled
        case seeded(UInt64)
    }
    let kind: Kind

    /// As they are listed: the first is the preferred one, the others are tried when it fails.
    public static let listed = ServerOrder(kind: .listed)
    /// At random, drawn anew for each round: many clients spread over all servers.
    public static let shuffled = ServerOrder(kind: .shuffled)
    /// At random, the same each time for a seed: for tests.
    public static func shuffled(seed: UInt64) -> ServerOrder { ServerOrder(kind: .seeded(seed)) }
}

/// The servers of a client. Most have one, which needs no memory of its own.
enum ServerList: Sendable {
    case one(BrokerURL)
    case several([BrokerURL])
    /// One of the URLs is invalid: thrown when a server is asked for.
    case invalid(TransportError)

    /// - Parameter schemes: those that the client's protocol supports.
    init(_ urls: [String], schemes: [BrokerURL.Scheme]) {
        do throws(TransportError) {
            var servers: [BrokerURL] = []
            for url in urls { servers.append(try BrokerURL(url, for: schemes)) }
            guard let first = servers.first else {
                throw TransportError(.badURL, "There is no server to connect to. Pass at least one URL.")
            }
            self = servers.count == 1 ? .one(first) : .several(servers)
        } catch {
            self = .invalid(error)
        }
    }

    /// Whether all of them are beyond this machine, so that none can be reached without a network.
    var needNetwork: Bool {
        switch self {
        case .one(let server): !server.endpoint.isOnThisMachine
        case .several(let servers): servers.allSatisfy { !$0.endpoint.isOnThisMachine }
        case .invalid: false
        }
    }

    var count: Int { if case .several(let servers) = self { servers.count } else { 1 } }

    func server(at index: Int) throws(TransportError) -> BrokerURL {
        switch self {
        case .one(let server): server
        case .several(let servers): servers[index]
        case .invalid(let error): throw error
        }
    }
}

/// Which of several servers is tried next, and why the others of its round failed; without a clock or a connection. On the
/// heap, since most clients have one server.
package final class ServerRounds<Failure> {
    private let count: Int
    private let order: ServerOrder
    private var seed: UInt64 = 0
    private var round: [Int] = []
    private var position = 0
    /// The server of the last connection that was lost after being stable: it comes first until another one works.
    private var proven: Int?
    private var failures: [(server: Int, failure: Failure)] = []

    /// - Parameter count: zero counts as one; opening the missing server reports the error.
    package init(count: Int, order: ServerOrder) {
        self.count = max(1, count)
        self.order = order
        begin()
    }

    /// The index in the list of the server to try.
    package var current: Int { round[position] }

    /// Begins anew, as a new client does.
    func begin() {
        seed = if case .seeded(let seed) = order.kind { seed } else { 0 }
        proven = nil
        makeRound(last: nil)
    }

    /// The attempt failed: another server of the round is current, or all have failed, for the reasons that this returns, and
    /// another round begins.
    package func failed(_ failure: Failure) -> [(server: Int, failure: Failure)]? {
        failures.append((current, failure))
        if position + 1 < round.count {
            position += 1
            return nil
        }
        let all = failures
        makeRound(last: nil)
        return all
    }

    /// Where the server of the connection before comes in a round.
    package enum Place {
        case first, last
        /// In its turn, like any other server.
        case any
    }

    /// The connection to the current server was lost, or the client leaves it: a round begins.
    package func beginRound(_ place: Place) {
        let server = current
        proven = place == .first ? server : nil
        makeRound(last: place == .last ? server : nil)
    }

    private func makeRound(last: Int?) {
        failures = []
        position = 0
        round = Array(0..<count)
        switch order.kind {
        case .listed: break
        case .shuffled: round.shuffle()
        case .seeded:
            var generator = SplitMix(state: seed)
            round.shuffle(using: &generator)
            seed = generator.state
        }
        if let proven {
            round.removeAll { $0 == proven }
            round.insert(proven, at: 0)
        } else if let last {
            round.removeAll { $0 == last }
            round.append(last)
        }
    }
}

extension ServerOrder {
    /// In a simulation the order follows from its seed.
    func decided(on loop: EventLoop) -> ServerOrder {
        guard loop.world != nil, case .shuffled = kind else { return self }
        var random = loop.random
        return .shuffled(seed: random.next())
    }
}
