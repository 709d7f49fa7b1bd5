import MQTTCore
import MessagingWire

/// Choosing one of several copies of a message; on the loop's thread.
extension MQTTRouter {
    /// Gives the overlapping filters of a subscription identifiers, unless another subscription has one of them already:
    /// the server would have to be asked again, and would repeat its retained messages.
    func identify(_ route: MQTTRoute) {
        let entries = route.overlapping.compactMap { self.entries[ByteKey(route.requests[$0].filter)] }
        guard !entries.isEmpty, entries.allSatisfy({ $0.routes.allSatisfy { $0 === route } }) else { return }
        for entry in entries where entry.identifier == 0 { entry.identifier = makeIdentifier() }
        selectsCopies = true
    }

    /// For the routes of a topic, which copies of its messages they may get.
    func copies(for routes: [MQTTRoute], of topic: String) -> [MQTTCopies] {
        routes.compactMap { route in
            let matching = route.overlapping.lazy.map { route.requests[$0] }
                .filter { MQTTTopicFilter.matches($0.filter, topic: topic) }
                .compactMap { request -> (qos: QoS, identifier: UInt32)? in
                    guard let entry = self.entries[ByteKey(request.filter)], entry.identifier != 0 else { return nil }
                    return (request.qos, entry.identifier)
                }
            var found: [(qos: QoS, identifier: UInt32)] = []
            for filter in matching where !found.contains(where: { $0.identifier == filter.identifier }) {
                found.append(filter)
            }
            guard found.count > 1, let highest = found.map(\.qos).max(),
                let wanted = found.first(where: { $0.qos == highest })
            else { return nil }
            let others = found.map(\.identifier).filter { $0 != wanted.identifier }
            return MQTTCopies(route: route, wanted: wanted.identifier, others: others)
        }
    }

    /// The routes of a topic that asked for no retained messages, and must not get retained messages that other routes
    /// asked for. None if RETAIN may also show how a message was published.
    func refusing(_ routes: [MQTTRoute], of topic: String) -> [MQTTRoute] {
        var refusing: [MQTTRoute] = []
        for route in routes {
            let matching = route.requests.filter { MQTTTopicFilter.matches(Self.inner($0.filter), topic: topic) }
            if matching.contains(where: { entries[ByteKey($0.filter)]?.request.retainAsPublished ?? false }) {
                return []
            }
            if !matching.isEmpty, matching.allSatisfy({ $0.retainHandling == .doNotSend }) { refusing.append(route) }
        }
        return refusing
    }
}

/// The copies of a message that a server may send to one subscription, which has several filters that match the topic.
///
/// A copy has the Subscription Identifier of the filter that it was sent for; one copy for several filters has theirs
/// [MQTT-3.3.4-3, MQTT-3.3.4-4].
struct MQTTCopies {
    let route: MQTTRoute
    /// The identifier of the filter whose copy is delivered: the first of those with the highest QoS.
    let wanted: UInt32
    /// The identifiers of the other filters.
    let others: [UInt32]

    /// Whether a message with these identifiers is dropped, because the copy for another filter is delivered.
    func isSurplus(_ identifiers: [UInt32]) -> Bool {
        !identifiers.contains(wanted) && identifiers.contains { others.contains($0) }
    }
}
