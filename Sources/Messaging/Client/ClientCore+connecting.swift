package import Transport

/// How the attempts of all clients begin and what follows their failures: a server with credentials, a stream, a verdict.
///
/// All of it runs on the loop's thread, what is `async` in the task of an attempt; only what is static runs on any thread.
extension ClientCore {
    package static var stopped: Failure { .disconnectedByUser }
    package static func notStarted(_ error: TransportError) -> Failure { Failure(connecting: error) }

    package static func firstFailure(_ failure: Failure) -> Failure {
        guard failure.mayPass else { return failure }
        return failure.saying(
            failure.sentence + " To keep trying, call start() instead of connect(), or set "
                + "ReconnectPolicy.firstConnectAttempts.")
    }

    package func failure(ofAll failures: [(server: Int, failure: Failure)]) -> Failure {
        let list = failures.map { "\(opener.name(of: $0.server)): \($0.failure.sentence)" }
        return failures[failures.count - 1].failure.saying(
            "None of the \(failures.count) servers accepted the connection. " + list.joined(separator: " "))
    }

    /// Chooses the server of an attempt, and obtains credentials for it.
    ///
    /// - Parameter other: where a server has referred the client to.
    package func chooseServer(
        _ attempt: ConnectionAttempt, redirectedTo other: Endpoint? = nil
    ) async throws(Failure) -> (url: BrokerURL, credentials: Credentials?) {
        let server: BrokerURL
        do throws(TransportError) {
            server = try opener.choose(attempt.server, redirectedTo: other)
        } catch {
            throw Failure(connecting: error)
        }
        news.tell(.connecting(to: server))
        var credentials: Credentials?
        if credentialsSource.isFresh { news.tell(.credentialsRequested(for: server)) }
        do {
            credentials = try await credentialsSource.credentials(for: attempt, at: server, on: loop)
        } catch {
            throw Failure(credentials: error)
        }
        let url: BrokerURL
        do throws(TransportError) {
            url = try opener.url(of: server, for: credentials, redirectedTo: other)
        } catch {
            throw Failure(connecting: error)
        }
        if url != server { news.tell(.connecting(to: url)) }
        if credentials?.url != nil, credentials?.userName == nil, credentials?.password == nil {
            credentials?.userName = url.credentials?.userName
            credentials?.password = url.credentials?.password
        }
        return (url, credentials)
    }

    /// Opens a stream to the server that was chosen.
    package func open(
        _ url: BrokerURL, _ credentials: Credentials?, isRedirected: Bool = false, for attempt: ConnectionAttempt
    ) async throws(Failure) -> OpenedStream {
        do throws(TransportError) {
            return try await opener.open(
                url, headers: credentials?.webSocketHeaders ?? [:], isRedirected: isRedirected, for: attempt)
        } catch {
            throw Failure(connecting: error)
        }
    }

    package func willMove(after age: Int64) { reportMove(after: age) }

    package func reportMove(after age: Int64) {
        if let server = opener.server { news.tell(.moving(from: server, after: .nanoseconds(age))) }
    }

    package func verdict(on failure: Failure, wasConnected: Bool) -> ReconnectVerdict {
        if !wasConnected, let server = opener.server { news.tell(.attemptFailed(server, failure)) }
        return verdict(on: failure)
    }
}
