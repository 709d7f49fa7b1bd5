import MessagingDeviceSupport
import STOMP

// The device side of the Locations app: sends where it is to a STOMP broker, and shows the texts that headquarters sends.
// All that it does with the library is in this file, in the order in which it happens. `MessagingDeviceSupport` has what has nothing
// to do with a protocol: options, recordings, the terminal, the headquarters page.

await Program.run(.locations, LocationsOptions.parse) { options, program in
    let track = try ReplaySource.track(options, program)
    try await Fleet.run(
        program, options.common, unit: "fixes", isConfirmed: true, place: track.place, readsKeys: !track.isLive
    ) { post in
        try await LocationsDevice(post, options, track.track(for: post)).run()
    }
}

struct LocationsDevice: Sendable {
    private let id: String
    private let options: LocationsOptions
    private let client: STOMPClient
    /// Connects and reconnects the client, prints how that goes, and plays the track while there is a connection.
    private let link: DeviceLink<STOMPClient, Fix>
    private let sender: FixSender
    private let texts: TextList
    private var post: Fleet.Post { link.post }

    init(_ post: Fleet.Post, _ options: LocationsOptions, _ track: ReplaySource<Fix>) {
        id = post.id
        self.options = options
        client = STOMPClient(post.fleet.urls, configuration: STOMPConfiguration(options, deviceID: post.id))
        link = DeviceLink(client, track, post)
        sender = FixSender(link, topic: "/topic/device.\(id).location", options: STOMPSendOptions(options))
        texts = TextList(post, isAnswered: options.acknowledgement == .clientIndividual)
    }

    func run() async throws {
        // Hundreds of receipts are awaited, and little is done with each.
        let receipts = Task { await client.withExecutor { await sender.takeReceipts() } }
        defer { receipts.cancel() }
        try await link.run(publish: publishForVisitor, reconnected: sender.sendAgain) {
            let messages = try await subscribe()
            // Made before the first fix goes out: what follows it, a key perhaps, is not missed.
            let (keys, events) = (post.keys, client.events)
            do {
                try await link.running(
                    beside: [{ await show(messages) }, { try await watch(events) }, { try await act(on: keys) }], replay
                )
            } catch {
                await leave(messages)
                throw error
            }
            await leave(messages)
        }
    }

    /// What a visitor of the inspector page types.
    private func publishForVisitor(_ destination: String, _ body: [UInt8]) async throws {
        try await client.sendAndConfirm(body, to: destination)
    }

    // MARK: Subscribe

    private func subscribe() async throws -> STOMPSubscription {
        let queue = "/queue/device.\(id).text"
        let mode: STOMPAckMode = options.acknowledgement == .auto ? .auto : .clientIndividual
        var headers: STOMPHeaders = ["receipt": "\(id)-\(queue)"]
        if mode != .auto { headers.fields += TextList.prefetch.fields }
        do throws(STOMPError) {
            let texts = try await client.subscribe(
                to: queue, acknowledgement: mode, options: STOMPSubscribeOptions(headers: headers))
            await link.untilConnected()
            post.report("subscribed to \(queue)", .faint)
            return texts
        } catch {
            throw DeviceFailure(subscribing: error)
        }
    }

    /// The client subscribes again by itself after each reconnect.
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

    // MARK: Replay

    private func replay() async throws {
        try await link.play(
            interval: options.interval, isWanted: isFresh, untilConfirmed: sender.untilConfirmed
        ) { fix in
            // A live fix may have grown old while it waited for its interval or for a connection.
            try await sender.send { !link.isLive || isFresh(fix) ? payload(fix) : nil }
        }
    }

    private func isFresh(_ fix: Fix) -> Bool {
        let now = Timestamp.now()
        guard let time = fix.time, fix.isStale(at: now) else { return true }
        post.fleet.meter.count { $0.skipped += 1 }
        post.say("skipped \(fix): it is \(time.age(at: now) / 1_000_000_000) s old")
        return false
    }

    private func payload(_ fix: Fix) -> String {
        let now = Timestamp.now().wholeSeconds
        let time = options.usesRecordedTime ? fix.time ?? now : now
        return LocationPayload.json(deviceID: id, fix: fix, at: time)
    }

    // MARK: Show

    private func show(_ messages: STOMPSubscription) async {
        do {
            for try await message in messages { texts.received(message) }
        } catch {
            // An event reports a subscription that the client has lost, and the link one that has stopped connecting.
        }
    }

    private func act(on keys: Updates<Key>) async throws {
        for await key in keys {
            switch key {
            case .shake: try await link.shake { fix in try await sender.send { payload(fix) } }
            case .accept: texts.answerOldest(accepting: true)
            case .reject: texts.answerOldest(accepting: false)
            }
        }
    }

    // MARK: Stop

    /// The link disconnects afterwards.
    private func leave(_ messages: STOMPSubscription) async {
        await link.leave {
            try? await messages.unsubscribe()
            // Receipts come in the order of their frames, as a rule: those of the fixes are here by now.
            await sender.caughtUp()
        }
    }
}

// MARK: - Configuration

extension STOMPClient: DeviceClient {}
extension STOMPFrameRecord: DeviceFrame {}

extension STOMPConfiguration {
    init(_ options: LocationsOptions, deviceID: String) {
        self.init()
        clientID = deviceID
        host = options.virtualHost
        outgoingHeartBeat = .milliseconds(options.heartBeatOut)
        incomingHeartBeat = .milliseconds(options.heartBeatIn)
        // A connection that is dead is noticed by its heart-beats, and then its receipts fail: their own time-out must
        // not come first, or fixes that only wait for the network would be sent twice.
        requestTimeout = .milliseconds(max(30_000, 3 * options.heartBeatIn))
        credentials = options.common.credentials
        reconnect = options.common.reconnectPolicy
        tls = options.common.tls
    }
}

extension STOMPSendOptions {
    /// What goes out with each fix.
    init(_ options: LocationsOptions) {
        self.init(
            contentType: LocationPayload.contentType, priority: options.priority, expiresAfter: options.expires)
        if let country = options.country { headers.add("country", country) }
    }
}

// MARK: - Fixes and their receipts

/// Sends the fixes of one device and keeps each until the broker has confirmed it: fixes that a lost connection left
/// unconfirmed are sent again over the next one.
private struct FixSender: Sendable {
    private final class SentFix: Sendable {
        let body: String

        init(body: String) {
            self.body = body
        }
    }

    private enum Step: Sendable {
        case receipt(STOMPReceipt, SentFix, isRepeated: Bool)
        /// Everything before it has been dealt with.
        case caughtUp(AsyncStream<Void>.Continuation)
    }

    /// Receipts under way at once: RabbitMQ's STOMP over WebSocket fails at some 700.
    private static let maximumUnconfirmed = 256

    private let link: DeviceLink<STOMPClient, Fix>
    private let topic: String
    private let options: STOMPSendOptions
    /// In the order of sending.
    private let unconfirmed = Watched<[SentFix]>([])
    private let steps: AsyncStream<Step>
    private let continuation: AsyncStream<Step>.Continuation

    init(_ link: DeviceLink<STOMPClient, Fix>, topic: String, options: STOMPSendOptions) {
        self.link = link
        self.topic = topic
        self.options = options
        (steps, continuation) = AsyncStream.makeStream()
    }

    /// Returns when the fix is on its way; waits while there is no connection, or too much is unconfirmed.
    ///
    /// - Parameter makeBody: Called when there is a connection; nil skips the fix.
    /// - Returns: Whether the fix was sent.
    func send(_ makeBody: () -> String?) async throws -> Bool {
        await unconfirmed.wait { $0.count < Self.maximumUnconfirmed }
        return try await link.send { () throws(STOMPError) in
            guard let body = makeBody() else { return false }
            let fix = SentFix(body: body)
            unconfirmed.change { $0.append(fix) }
            do throws(STOMPError) {
                try await write(fix)
            } catch {
                _ = settled(fix)
                throw error
            }
            return true
        }
    }

    private func write(_ fix: SentFix, isRepeated: Bool = false) async throws(STOMPError) {
        let message = STOMPOutgoingMessage(fix.body, to: topic, options: options)
        continuation.yield(.receipt(try await link.client.sendForReceipt(message), fix, isRepeated: isRepeated))
    }

    /// Sends again what the last connection left unconfirmed; call it before anything else goes over the new one.
    func sendAgain() async {
        // What was confirmed before the loss is not sent twice.
        await caughtUp()
        let again = unconfirmed.value
        guard !again.isEmpty else { return }
        link.post.report("sending \(again.count) unconfirmed \(again.count == 1 ? "fix" : "fixes") again")
        for fix in again {
            // A connection that is lost again leaves the rest to the next one.
            guard (try? await write(fix)) != nil else { return }
        }
    }

    /// Takes the receipts in until cancelled.
    func takeReceipts() async {
        for await step in steps {
            switch step {
            case .caughtUp(let isDone): isDone.finish()
            case .receipt(let receipt, let fix, let isRepeated): await take(receipt, of: fix, isRepeated)
            }
        }
    }

    private func take(_ receipt: STOMPReceipt, of fix: SentFix, _ isRepeated: Bool) async {
        do throws(STOMPError) {
            try await receipt.confirmed()
            answered(fix)
        } catch {
            switch error.code {
            case .refused:
                link.post.say("the broker refused a fix: \(error.message)")
                answered(fix)
            case .timedOut where isRepeated:
                _ = settled(fix)
            case .timedOut:
                try? await write(fix, isRepeated: true)
            default:
                // The connection was lost: `sendAgain` sends it over the next one.
                break
            }
        }
    }

    /// The broker has confirmed or refused a fix.
    private func answered(_ fix: SentFix) {
        if settled(fix) { link.post.fleet.meter.answered() }
    }

    /// Forgets a fix; false if that has happened before.
    private func settled(_ fix: SentFix) -> Bool {
        unconfirmed.change { fixes in
            guard let index = fixes.firstIndex(where: { $0 === fix }) else { return false }
            fixes.remove(at: index)
            return true
        }
    }

    /// Waits until every fix is confirmed, or the task is cancelled.
    func untilConfirmed() async {
        await unconfirmed.wait(\.isEmpty)
    }

    /// Waits until the receipts that have arrived are counted.
    func caughtUp() async {
        let (done, isDone) = AsyncStream.makeStream(of: Void.self)
        continuation.yield(.caughtUp(isDone))
        for await _ in done {}
    }
}

// MARK: - Texts and their answers

/// The texts that a device was sent: shown as they come, and kept while they wait for an answer.
private struct TextList: Sendable {
    private let post: Fleet.Post
    private let isAnswered: Bool
    private let waiting = Watched<[STOMPMessage]>([])

    /// How a subscription whose texts are answered says that a hundred at most may wait for that. Each broker takes its own
    /// header and ignores the others. The option of the client would fail with a broker that is none of these.
    static var prefetch: STOMPHeaders {
        let profiles: [STOMPBrokerProfile] = [.rabbitMQ, .activeMQ, .artemis]
        return STOMPHeaders(profiles.flatMap { $0.prefetchHeaders(messages: 100)?.fields ?? [] })
    }

    /// - Parameter isAnswered: Whether each text is accepted or rejected at the keyboard.
    init(_ post: Fleet.Post, isAnswered: Bool) {
        self.post = post
        self.isAnswered = isAnswered
    }

    func received(_ message: STOMPMessage) {
        post.fleet.meter.count { $0.received += 1 }
        // It waits before it is shown, because an answer may follow at once. The broker's prefetch bounds how many wait.
        let count = waiting.change { waiting in
            if isAnswered { waiting.append(message) }
            return waiting.count
        }
        post.showText(Self.words(of: message))
        if count == 1 { post.say("press a to accept it, r to reject it") }
    }

    func answerOldest(accepting: Bool) {
        guard isAnswered else { return }
        while let oldest = waiting.change({ $0.isEmpty ? nil : $0.removeFirst() }) {
            let words = Self.words(of: oldest)
            do throws(STOMPError) {
                // A rejected text is not to be delivered again, which RabbitMQ would do by default.
                if accepting { try oldest.acknowledge() } else { try oldest.reject(requeue: false) }
                return post.say("\(accepting ? "accepted" : "rejected"): \(words)")
            } catch {
                // From before a reconnect: the broker has handed it out again, and it waits further back.
                if error.code == .stale { continue }
                return post.say("not \(accepting ? "accepted" : "rejected"): \(words): \(error.message)")
            }
        }
        post.say("there is no text to \(accepting ? "accept" : "reject")")
    }

    private static func words(of message: STOMPMessage) -> String {
        message.text ?? "\(message.body.count) bytes that are no text"
    }
}
