import DeviceSupport
import STOMP

/// The device side of the Locations app: sends where it is, and shows texts.
struct LocationsDevice: Sendable {
    private let id: String
    private let options: LocationsOptions
    private let sender: FixSender
    private let source: ReplaySource<Fix>
    private let link: DeviceLink<STOMPClient>
    private let last = Latest<Fix>()
    private let texts: TextList
    private var post: Fleet.Post { link.post }
    private var textQueue: String { "/queue/device.\(id).text" }

    init(_ post: Fleet.Post, _ options: LocationsOptions, _ source: ReplaySource<Fix>) {
        id = post.id
        self.options = options
        self.source = source
        let configuration = STOMPConfiguration(options, deviceID: post.id)
        link = DeviceLink(STOMPClient(post.fleet.urls, configuration: configuration), post)
        sender = FixSender(link, topic: "/topic/device.\(id).location", options: STOMPSendOptions(options))
        texts = TextList(post, isAnswered: options.acknowledgement == .clientIndividual)
    }

    func run() async throws -> DeviceSummary {
        // Hundreds of receipts are awaited, and little is done with each.
        let receipts = Task { await link.client.withExecutor { await sender.takeReceipts() } }
        defer { receipts.cancel() }
        try await link.run(reconnected: sender.reconnected) {
            let texts = try await subscribe()
            do {
                try await untilEnd(of: texts)
            } catch {
                await leave(texts)
                throw error
            }
            await leave(texts)
        }
        return link.tally.summary
    }

    private func subscribe() async throws -> STOMPSubscription {
        let mode: STOMPAckMode = options.acknowledgement == .auto ? .auto : .clientIndividual
        do throws(STOMPError) {
            var headers: STOMPHeaders = ["receipt": "\(id)-\(textQueue)"]
            if mode != .auto { headers.fields += TextList.prefetch.fields }
            let texts = try await link.client.subscribe(
                to: textQueue, acknowledgement: mode, options: STOMPSubscribeOptions(headers: headers))
            await link.untilConnected()
            post.report("subscribed to \(textQueue)", .faint)
            return texts
        } catch {
            throw DeviceFailure(subscribing: error)
        }
    }

    private func leave(_ texts: STOMPSubscription) async {
        await link.leave {
            try? await texts.unsubscribe()
            // Receipts come in the order of their frames, as a rule: those of the fixes are here by now.
            await sender.caughtUp()
        }
    }

    private func untilEnd(of messages: STOMPSubscription) async throws {
        // Made before the first value goes out: what follows it, a key perhaps, is not missed.
        let (keys, events) = (post.keys, link.client.events)
        try await withThrowingTaskGroup(of: Bool.self) { group in
            group.addTask {
                await show(messages)
                return false
            }
            group.addTask {
                try await watch(events)
                return false
            }
            group.addTask {
                try await act(on: keys)
                return false
            }
            group.addTask {
                try await replay()
                return true
            }
            defer { group.cancelAll() }
            while let isAtEnd = try await group.next(), !isAtEnd {}
        }
    }

    private func act(on keys: Updates<Key>) async throws {
        for await key in keys {
            switch key {
            case .shake: try await shake()
            case .accept: texts.answerOldest(accepting: true)
            case .reject: texts.answerOldest(accepting: false)
            }
        }
    }

    // MARK: Locations

    private func replay() async throws {
        let meter = post.fleet.meter
        meter.begin(device: post.index, duration: source.duration, loops: source.loops)
        var pass = 0
        let ending = try await link.replay.play(source, interval: options.interval, isWanted: isFresh) { fix, place in
            if let place, place.pass != pass {
                pass = place.pass
                post.announceRun(pass + 1)
            }
            last.value = fix
            // A live fix may have waited for its interval or for a connection since it was read.
            guard try await send(fix, due: place?.due, if: { !source.isLive || isFresh(fix) }) else { return }
            post.showSent("\(fix)")
        }
        await sender.untilConfirmed()
        if ending == .atEnd { meter.ended(device: post.index) }
    }

    private func isFresh(_ fix: Fix) -> Bool {
        let now = Timestamp.now()
        guard let time = fix.time, fix.isStale(at: now) else { return true }
        link.tally.add { $0.skipped += 1 }
        post.say("skipped \(fix): it is \(time.age(at: now) / 1_000_000_000) s old")
        return false
    }

    /// - Parameter isWanted: Called when there is a connection; false skips the fix.
    /// - Returns: Whether the fix was sent.
    @discardableResult
    private func send(_ fix: Fix, due: Int64?, if isWanted: () -> Bool = { true }) async throws -> Bool {
        let isSent = try await sender.send {
            guard isWanted() else { return nil }
            let now = Timestamp.now().wholeSeconds
            let time = options.usesRecordedTime ? fix.plausibleTime ?? now : now
            return LocationPayload.json(deviceID: id, fix: fix, at: time)
        }
        if isSent { post.fleet.meter.sent(device: post.index, due: due) }
        return isSent
    }

    private func shake() async throws {
        guard let last = last.value else { return post.say("shaken, but there is no fix yet to send again") }
        try await send(last, due: nil)
        post.report("shaken: \(last)")
    }

    // MARK: Texts

    private func show(_ messages: STOMPSubscription) async {
        do {
            for try await message in messages {
                link.tally.add { $0.received += 1 }
                texts.received(message)
            }
        } catch {
            // An event reports a subscription that the client has lost, and the link one that has stopped connecting.
        }
    }

    private func watch(_ events: Updates<STOMPEvent>) async throws {
        for await event in events {
            switch event {
            case .resubscribed(let destination): post.report("subscribed to \(destination) again", .faint)
            // The broker refuses it after a reconnect, or one of its messages ends each connection.
            case .subscriptionLost(_, let failure): throw DeviceFailure(subscribing: failure)
            default: break
            }
        }
    }
}
