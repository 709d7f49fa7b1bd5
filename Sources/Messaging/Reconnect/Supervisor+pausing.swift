import Transport
import Wire

/// Pauses: suspended by the user, or because the device has no network.
extension Supervisor {
    // MARK: From any thread

    /// Ends the connection and opens none until `resume`, `connect` or `start`; pending operations stay pending.
    package func suspend() async {
        let call = PendingCall<Void>()
        loop.execute { self.stopNow(call, leadingTo: .suspended) { self.client?.sayGoodbye() } }
        await call.answer()
    }

    /// Connects again after `suspend`, or as soon as a `suspend` that is under way is done.
    package func resume() {
        loop.execute {
            if self.phase == .suspended { self.open() }
            if self.phase == .stopping, self.ending == .suspended { self.ending = .resumed }
        }
    }

    /// The network has improved: a client that waits connects now.
    package func networkChanged() {
        loop.execute { self.openNow() }
    }

    // MARK: On the loop's thread

    /// Stops connecting for a reason that is not a connection's. Has no effect on a connection, which has to be closed with
    /// that reason.
    package func stopTrying(_ failure: Client.Failure) {
        switch phase {
        case .opening, .waiting, .offline, .suspended: stop(because: failure)
        case .stopping where ending != .disconnected:
            ending = .disconnected
            abandonConnection()
            stop(because: failure)
        case .idle, .handshaking, .connected, .stopping: break
        }
    }

    /// Observes the network until the end of supervision.
    func followNetwork() {
        guard let network, observation == nil else { return }
        observation = network.observe { [weak self] in
            guard let self else { return }
            loop.execute { self.networkMoved() }
        }
    }

    private func networkMoved() {
        guard observation != nil, let network else { return }
        if network.isAvailable { openNow() } else { pauseWithoutNetwork() }
    }

    /// Waits for a network, and not for the next attempt, if the device has no network.
    func pauseWithoutNetwork() {
        guard phase == .waiting, let network, !network.isAvailable else { return }
        waitForNetwork()
    }

    /// Waits until the network improves, or for the longest delay of the policy: a monitor knows the default path alone,
    /// and may report no network where a server can be reached, over a Wi-Fi without a router for example.
    func waitForNetwork() {
        phase = .offline
        setAlarm(loop.now.advanced(byNanoseconds: schedule.longestDelay))
        client?.stateChanged(to: .waitingForNetwork)
    }

    /// Ends a wait, because the network has improved.
    func openNow() {
        schedule.resetDelay()
        triesWithoutNetwork = false
        if phase == .waiting || phase == .offline { open() }
    }
}
