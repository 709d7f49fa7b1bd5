import Transport

/// Pauses: suspended by the user, or because the device has no network.
extension Supervisor {
    // MARK: From any thread

    /// Ends the connection and opens none until `resume` or `start`; pending operations stay pending.
    package func suspend(goodbye: @escaping @Sendable () -> Void) async {
        let call = PendingCall<Void>()
        loop.execute {
            guard self.phase != .idle, self.phase != .suspended else {
                _ = call.end(())
                return
            }
            if self.phase != .stopping { self.suspends = true }
            self.stopNow(call, goodbye: goodbye)
        }
        await call.answer()
    }

    /// Connects again after `suspend`.
    package func resume() {
        loop.execute {
            self.suspends = false
            if self.phase == .suspended { self.open() }
        }
    }

    /// The network has improved: a client that waits connects now.
    package func networkChanged() {
        loop.execute { self.openNow() }
    }

    // MARK: On the loop's thread

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
        phase = .offline
        cancelAlarm()
        client?.stateChanged(to: .waitingForNetwork)
    }

    /// Ends a wait, because the network has improved.
    func openNow() {
        schedule.resetDelay()
        if phase == .waiting || phase == .offline { open() }
    }
}
