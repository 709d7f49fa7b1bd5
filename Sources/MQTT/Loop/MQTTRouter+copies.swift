import MQTTCore
import MessagingWire

/// Which routes get a message, where several filters match it; on the loop's thread.
extension MQTTRouter {
    /// A filter that matches a topic.
    struct Match {
        let entry: MQTTFilterEntry
        var held = MQTTEngine.HeldIdentifier.maybeNone
    }

    /// The routes that get a message which these filters match. The only function that decides it.
    ///
    /// The message is for the filters whose Subscription Identifiers it has, and for those that the server may have without
    /// one. Without identifiers, or with one that is not known, such as one of an earlier process, it is for all. Of the copies
    /// for several filters of a route the one for a certain filter is delivered (``MQTTCopies``).
    ///
    /// - Parameter unwanted: which of the identifiers are of filters that nobody wants any more.
    static func routes(
        _ matches: [Match], _ identifiers: [UInt32], unwanted: [UInt32] = [], isRetained: Bool
    ) -> [MQTTRoute] {
        let isKnown = identifiers.allSatisfy { known in
            unwanted.contains(known) || matches.contains { $0.entry.sentIdentifier == known }
        }
        if !isKnown { return Self.routes(matches, [], isRetained: isRetained) }
        let meant =
            identifiers.isEmpty
            ? matches : matches.filter { $0.held == .maybeNone || identifiers.contains($0.entry.sentIdentifier) }
        var routes: [MQTTRoute] = []
        for match in meant {
            let entry = match.entry
            let hasCopies = !identifiers.isEmpty && MQTTTopicFilter.shared(entry.request.filter) == nil
            for route in entry.routes {
                // A subscription of several filters gets a message once, however many of them match.
                if route.requests.count > 1 {
                    if routes.contains(where: { $0 === route }) { continue }
                    if hasCopies, MQTTCopies(of: route, matches)?.isSurplus(identifiers) ?? false { continue }
                }
                routes.append(route)
            }
        }
        // RETAIN may also show how a message was published.
        guard isRetained, !meant.contains(where: { $0.entry.request.retainAsPublished }) else { return routes }
        routes.removeAll { route in
            let own = meant.compactMap { route.request(of: $0.entry) }
            return !own.isEmpty && own.allSatisfy { $0.retainHandling == .doNotSend }
        }
        return routes
    }

    /// Whether messages of a topic may go to some of the matching routes only.
    static func selects(_ matches: [Match]) -> Bool {
        if matches.contains(where: { $0.entry.sentIdentifier != 0 }) { return true }
        return routes(matches, [], isRetained: true).count != routes(matches, [], isRetained: false).count
    }

    /// Gives filters that overlap identifiers, so that a server tells for which of them a message is. Returns those of them
    /// that were there before.
    func identify(_ added: [MQTTFilterEntry]) -> [MQTTFilterEntry] {
        var earlier: [MQTTFilterEntry] = []
        let new = Set(added.map { ObjectIdentifier($0) })
        for entry in added {
            let others = overlapping(entry.request.filter)
            if others.isEmpty { continue }
            selects = true
            let group = (others + [entry]).sorted { $0.number < $1.number }
            var taken = Set(group.map(\.sentIdentifier))
            for entry in group where entry.sentIdentifier == 0 {
                entry.identifier = makeIdentifier(for: entry.request.filter, apartFrom: taken)
                taken.insert(entry.identifier)
                if !new.contains(ObjectIdentifier(entry)) { earlier.append(entry) }
            }
        }
        return earlier
    }
}

/// The copies of a message that a server may send to one subscription, which has several filters that match the topic.
///
/// A copy has the Subscription Identifier of the filter that it was sent for; one copy for several filters has theirs
/// [MQTT-3.3.4-3, MQTT-3.3.4-4].
struct MQTTCopies {
    /// The identifier of the filter whose copy is delivered: the first of those with the highest QoS.
    private let wanted: UInt32
    /// The identifiers of the other filters.
    private let others: [UInt32]

    /// Nil if there is one copy only, or if the server may treat the filters differently, so that the copy of one does not
    /// prove that there are others.
    init?(of route: MQTTRoute, _ matches: [MQTTRouter.Match]) {
        guard route.requests.count > 1 else { return nil }
        let own = matches.filter { $0.held == .own }.map(\.entry).filter { entry in
            entry.sentIdentifier != 0 && MQTTTopicFilter.shared(entry.request.filter) == nil
                && entry.routes.contains { $0 === route }
        }
        let ordered = own.sorted { ($1.request.qos, $0.number) < ($0.request.qos, $1.number) }
        guard own.count > 1, let first = ordered.first, let request = route.request(of: first),
            Set(own.map(\.sentIdentifier)).count == own.count,
            // Otherwise the server may send the copy of one filter only, and it would be the wrong one.
            request.retainHandling != .sendIfNew,
            own.allSatisfy({ $0.request.noLocal == first.request.noLocal }),
            own.allSatisfy({ route.request(of: $0)?.retainHandling == request.retainHandling })
        else { return nil }
        wanted = first.sentIdentifier
        others = ordered.dropFirst().map(\.sentIdentifier)
    }

    /// Whether a message with these identifiers is dropped, because the copy for another filter is delivered.
    func isSurplus(_ identifiers: [UInt32]) -> Bool {
        !identifiers.contains(wanted) && identifiers.contains { others.contains($0) }
    }
}
