public import MQTTCore
import MessagingWire
import STOMPCore
import Synchronization
import Transport

/// What a test does to single clients.
///
/// A client of MQTT has its client identifier as its name; a client of STOMP the `client-id` of CONNECT, or without one the
/// `session` that CONNECTED names. All connections with that name are meant.
extension LoopbackBroker {
    /// The names of the clients that are connected, in the order in which they connected.
    public var clients: [String] {
        hub.state.withLock { state in state.names.sorted { $0.key < $1.key }.map(\.value) }
    }

    /// Cuts a client's connection without any packet or frame, as a failing network would; its will is published.
    ///
    /// Returns when the connection is cut: nothing that arrives later is processed. The client notices when it next reads
    /// or writes; with a `ManualClock` it has noticed by then.
    /// - Returns: whether the client was connected.
    @discardableResult
    public func dropConnection(of client: String) async -> Bool {
        await hub.act(orIfStopped: false) { [hub] in
            let connections = hub.connections(of: client)
            for (_, connection) in connections { connection.drop() }
            hub.judges?.mayBeAnother(client)
            return !connections.isEmpty
        }
    }

    /// Ends a client's connection with a reason: DISCONNECT for MQTT 5.0, ERROR for STOMP. Before 5.0 a server has no
    /// DISCONNECT, and the connection just ends. Returns when nothing more is read from the client and the reason is
    /// written, as far as the connection takes it: a client that does not read gets it later.
    ///
    /// - Parameters:
    ///   - client: its name, as in ``clients``.
    ///   - reason: the reason code of DISCONNECT; one that servers must not send is left out, together with the packet.
    ///     Default: server shutting down.
    ///   - message: the reason string of DISCONNECT, or the `message` header of ERROR. Default: nil, none for MQTT and
    ///     the reason for STOMP.
    ///   - serverReference: the server to use instead [MQTT 5.0 4.13.2]. Default: nil, none.
    /// - Returns: whether the client was connected.
    @discardableResult
    public func disconnect(
        _ client: String, reason: MQTTReasonCode = .serverShuttingDown, message: String? = nil,
        serverReference: String? = nil
    ) async -> Bool {
        var properties = MQTTProperties()
        properties.reasonString = message
        properties.serverReference = serverReference
        let farewell = Farewell(reason: reason, properties: properties)
        return await hub.act(orIfStopped: false) { [hub] in
            let now = hub.loop.now
            let connections = hub.connections(of: client)
            for (id, connection) in connections {
                switch connection {
                case .opening: break
                case .mqtt(let link, _):
                    let handler = MQTTClientHandler(hub: hub, id: id, link: link, now: now)
                    handler.ended(sendsWill: true, telling: farewell)
                    link.closeNow()
                case .stomp(let link, _):
                    link.perform { try? $0.engine.sendError(message: message ?? "\(reason)", at: now) }
                    hub.route(at: now) { router, effects in router.closeSTOMP(id, at: now, into: &effects) }
                    link.closeNow()
                }
            }
            return !connections.isEmpty
        }
    }

    /// Ends a client's MQTT session, as a server does that lost its memory, and its durable subscriptions of STOMP. The
    /// connection of a client that is connected is cut.
    ///
    /// - Returns: whether there was anything to forget.
    @discardableResult
    public func forgetSession(of client: String) async -> Bool {
        await hub.act(orIfStopped: false) { [hub] in
            let now = hub.loop.now
            let connections = hub.connections(of: client)
            for (id, connection) in connections {
                if case .mqtt(let link, _) = connection {
                    MQTTClientHandler(hub: hub, id: id, link: link, now: now).ended(sendsWill: true, expiry: 0)
                }
                connection.drop()
            }
            return hub.route(at: now) { router, effects in
                let hadSession = router.forgetSession(of: client, at: now, into: &effects)
                return router.forgetDurableSubscriptions(of: client) || hadSession || !connections.isEmpty
            }
        }
    }

    /// Delays what the broker sends to a client from now on, also when it connects again. Bytes that were delayed before
    /// arrive when they were due.
    ///
    /// - Parameters:
    ///   - latency: how much later everything arrives.
    ///   - client: its name, as in ``clients``. Default: nil, all clients that have no latency of their own.
    public func setLatency(_ latency: Duration, of client: String? = nil) async {
        await hub.onLoop(orIfStopped: ()) { [hub] in
            let connections = hub.state.withLock { state -> [(stream: ServedStream, latency: Int64)] in
                if let client {
                    state.latencies[ByteKey(client)] = latency.inNanoseconds
                } else {
                    state.latency = latency.inNanoseconds
                }
                return state.connections.map { id, connection in (connection.stream, state.latency(of: id)) }
            }
            for (stream, latency) in connections { stream.setLatency(latency) }
        }
    }
}

// MARK: Packets

extension LoopbackBroker {
    /// Drops or duplicates one packet or frame, or cuts the connection in its place, once.
    ///
    /// The second PUBLISH of the client `meter` gets lost, and so does the next PUBACK to any client:
    ///
    ///     broker.inject(.drop, .received, .mqtt(.publish), number: 2, client: "meter")
    ///     broker.inject(.drop, .sent, .mqtt(.puback))
    ///
    /// - Parameters:
    ///   - fault: what happens to it.
    ///   - direction: `received` for what clients send, `sent` for what the broker sends.
    ///   - packet: its kind.
    ///   - number: counts matching packets from now on. Default: 1, the next one.
    ///   - client: the name of the only client to count packets of, as in ``clients``. Default: nil, all clients.
    public func inject(
        _ fault: LoopbackPacketFault, _ direction: LoopbackDirection, _ packet: LoopbackPacket, number: Int = 1,
        client: String? = nil
    ) {
        hub.packets.add(fault, direction, packet, number: number, client: client)
    }

    /// Drops or duplicates one packet or frame of a client, or cuts the connection in its place, as
    /// ``inject(_:_:_:number:client:)`` does; `number` and `client` may be in either order.
    public func inject(
        _ fault: LoopbackPacketFault, _ direction: LoopbackDirection, _ packet: LoopbackPacket, client: String,
        number: Int
    ) {
        inject(fault, direction, packet, number: number, client: client)
    }

    /// Forgets the faults that ``inject(_:_:_:number:client:)`` has added and that have not happened yet.
    public func removeInjectedFaults() {
        hub.packets.removeFaults()
    }

    /// A sequence of the packets and frames that clients send from now on, in the order of their arrival, each reported when
    /// the broker has processed it. It ends with the broker.
    ///
    ///     var arrivals = broker.arrivals().makeAsyncIterator()
    ///     let first = await arrivals.next()
    ///
    /// - Parameters:
    ///   - maximumCount: how many wait for a reader; beyond it the oldest is dropped. Default: 10,000.
    ///   - includesDropped: whether the sequence also contains the packets and frames that an injected fault keeps from
    ///     the broker, marked by ``LoopbackArrival/wasDropped``. Default: false.
    public func arrivals(
        maximumCount: Int = 10_000, includesDropped: Bool = false
    ) -> AsyncStream<LoopbackArrival> {
        hub.packets.arrivals(maximumCount: maximumCount, includesDropped: includesDropped)
    }
}

/// Why a server ends a connection.
struct Farewell {
    var reason: MQTTReasonCode
    var properties = MQTTProperties()
}

// MARK: - Messages from the broker

/// Messages that the broker publishes by itself, so that a test needs no second client.
extension LoopbackBroker {
    /// Publishes a message to a topic of MQTT; subscribers of both protocols receive it.
    ///
    /// - Parameters:
    ///   - payload: its bytes.
    ///   - topic: its topic. With wildcards or without any character, nothing is published.
    ///   - qos: the quality of service; each subscriber gets the lower one of this and its own. Default: at least once.
    ///   - retain: whether the topic keeps the message. Default: false.
    ///   - properties: for subscribers of 5.0, the message expiry included. Default: none.
    /// - Returns: whether any client has subscribed to it.
    @discardableResult
    public func publish(
        _ payload: some Sequence<UInt8>, to topic: String, qos: QoS = .atLeastOnce, retain: Bool = false,
        properties: MQTTProperties = []
    ) async -> Bool {
        guard MQTTTopicName.isValid(topic) else { return false }
        let payload = Array(payload)
        return await hub.onLoop(orIfStopped: false) { [hub] in
            let now = hub.loop.now
            let message = Message(
                topic: topic, payload: payload, qos: qos, isRetained: retain, expiring: properties, at: now)
            return hub.route(at: now) { router, effects in router.publish(message, at: now, into: &effects) }
        }
    }

    /// Publishes a text to a topic of MQTT, as ``publish(_:to:qos:retain:properties:)-(Sequence<UInt8>,_,_,_,_)`` does.
    @discardableResult
    public func publish(
        _ text: String, to topic: String, qos: QoS = .atLeastOnce, retain: Bool = false,
        properties: MQTTProperties = []
    ) async -> Bool {
        await publish(text.utf8, to: topic, qos: qos, retain: retain, properties: properties)
    }

    /// Sends a message to a destination of STOMP: a topic, whose subscribers of both protocols receive it, or a queue.
    ///
    /// - Parameters:
    ///   - body: its text.
    ///   - destination: such as `/topic/prices` or `/queue/orders`.
    ///   - headers: what else the frame carries. Default: none.
    /// - Returns: whether a message can be sent to this destination.
    @discardableResult
    public func send(
        _ body: String, to destination: String, headers: KeyValuePairs<String, String> = [:]
    ) async -> Bool {
        var fields = STOMPHeaders()
        for (name, value) in headers { fields.add(name, value) }
        fields["destination"] = destination
        let sent = fields
        return await hub.onLoop(orIfStopped: false) { [hub] in
            let now = hub.loop.now
            let message = Message(
                destination: destination, headers: sent, body: Array(body.utf8), at: now,
                timeOfDay: hub.loop.timeOfDay)
            return hub.route(at: now) { router, effects in
                do throws(STOMPRefusal) {
                    try router.send(-1, message, to: destination, transaction: nil, at: now, into: &effects)
                    return true
                } catch {
                    return false
                }
            }
        }
    }
}
