#if canImport(Network)
    import Dispatch
    import Network

    /// One connection of Network.framework that is being opened: name, TCP, proxy and TLS, until one deadline.
    final class NetworkConnecting: LoopHandler, @unchecked Sendable {
        // Sendable because the constants never change, and the rest is touched on the loop's thread only.
        private let connection: NWConnection
        private let queue = DispatchQueue(label: "messaging-network", qos: .userInitiated)
        private let endpoint: Endpoint
        private let peerName: String
        private let failures: NetworkFailures
        /// Ended on the loop's thread only.
        private let call = PendingCall<Result<NetworkStream, TransportError>>()
        private let waitsForPath: Bool

        /// Whether waiting for a path is worthwhile. watchOS gives one to apps that play audio or make calls, which have it
        /// when they ask; all others wait for ever.
        /// https://developer.apple.com/documentation/technotes/tn3135-low-level-networking-on-watchos
        #if os(watchOS)
            static let aPathMayCome = false
        #else
            static let aPathMayCome = true
        #endif

        private init(
            _ connection: NWConnection, _ endpoint: Endpoint, peerName: String, failures: NetworkFailures,
            loop: EventLoop, waitsForPath: Bool
        ) {
            self.connection = connection
            self.endpoint = endpoint
            self.peerName = peerName
            self.failures = failures
            self.waitsForPath = waitsForPath
            super.init(loop: loop)
        }

        /// Opens a connection; its TLS, if any, is established when this returns.
        ///
        /// While no network path exists, it waits for one until the deadline, unless the system never grants one.
        static func open(
            to endpoint: Endpoint, parameters: NWParameters, peerName: String, failures: NetworkFailures,
            deadline: Int64, loop: EventLoop, waitsForPath: Bool = aPathMayCome
        ) async throws(TransportError) -> NetworkStream {
            guard let target = NWEndpoint(endpoint) else {
                throw TransportError(.badURL, "'\(endpoint)' has no port to connect to. Use a port from 1 to 65535.")
            }
            let connecting = NetworkConnecting(
                NWConnection(to: target, using: parameters), endpoint, peerName: peerName, failures: failures,
                loop: loop, waitsForPath: waitsForPath)
            let result = await connecting.call.answer {
                loop.execute { connecting.start(deadline) }
            } onCancel: {
                loop.execute { connecting.finish(.failure(connecting.cancelled)) }
            }
            return try result.get()
        }

        private func start(_ deadline: Int64) {
            guard !call.isOver else { return }
            loop.setDeadline(self, to: deadline)
            connection.stateUpdateHandler = { [weak self] state in
                guard let self else { return }
                loop.execute { self.moved(to: state) }
            }
            connection.start(queue: queue)
        }

        private func moved(to state: NWConnection.State) {
            guard !call.isOver else { return }
            switch state {
            case .ready:
                finish(
                    .success(
                        NetworkStream(connection, queue: queue, peerName: peerName) { [failures] in
                            failures.error($0, isOpen: true, hasDelivered: $1)
                        }))
            case .waiting(let error):
                // Only a path that may come back is worth the wait: every address has been tried already.
                guard connection.currentPath?.status == .unsatisfied else {
                    return finish(.failure(failures.error(error, isOpen: false)))
                }
                guard waitsForPath else { return finish(.failure(.withoutNetworkOnWatch(peerName))) }
            case .failed(let error):
                finish(.failure(failures.error(error, isOpen: false)))
            case .cancelled:
                finish(.failure(cancelled))
            default:
                break
            }
        }

        override func deadlineReached(at now: Int64) {
            finish(
                .failure(
                    failures.error(without: connection.currentPath)
                        ?? TransportError(
                            .timedOut,
                            "\(endpoint) did not answer in time. Check the address, or allow more time to connect.")))
        }

        private var cancelled: TransportError {
            TransportError(.cancelled, "Connecting to \(endpoint) was cancelled.")
        }

        private func finish(_ result: Result<NetworkStream, TransportError>) {
            guard call.end(result) else { return }
            loop.setDeadline(self, to: .max)
            if case .failure = result {
                connection.stateUpdateHandler = nil
                connection.cancel()
            }
        }
    }

    extension NWEndpoint {
        /// Nil for a port that is 0, or a path.
        init?(_ endpoint: Endpoint) {
            guard case .host(let host, let port) = endpoint, port > 0, let port = NWEndpoint.Port(rawValue: port) else {
                return nil
            }
            self = .hostPort(host: NWEndpoint.Host(host), port: port)
        }
    }

    extension ProxyServer {
        /// The proxy for a connection whose TLS Network.framework does: our own handshakes run above it and cannot.
        ///
        /// - Throws: `unsupported` for what `ProxyConfiguration` cannot express.
        func configuration() throws(TransportError) -> ProxyConfiguration {
            guard let endpoint = NWEndpoint(endpoint) else {
                throw TransportError(
                    .unsupported,
                    "Network.framework reaches no proxy at '\(self.endpoint)'. Give a host and a port, or on macOS "
                        + "choose the implementation .openSSL in the TLS options.")
            }
            var configuration =
                switch kind {
                case .http: ProxyConfiguration(httpCONNECTProxy: endpoint)
                case .socks5: ProxyConfiguration(socksv5Proxy: endpoint)
                }
            // A server that may be reached through the proxy only is never tried without it.
            configuration.allowFailover = false
            if let login { configuration.applyCredential(username: login.userName, password: login.password) }
            return configuration
        }
    }
#endif
