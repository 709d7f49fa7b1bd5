import MQTTCore

/// Which filters of a subscription need identifiers; on the caller's task, before the subscription is used.
extension MQTTRoute {
    /// The most filters of one subscription that are compared with each other.
    static let maximumComparedFilters = 1000

    static func overlapping(_ requests: [MQTTSubscriptionRequest], _ properties: MQTTProperties) -> [Int] {
        guard let first = requests.first, (2...maximumComparedFilters).contains(requests.count),
            properties.subscriptionIdentifiers.isEmpty,
            // Otherwise the server may send the copy of one filter only, and it would be the wrong one.
            first.retainHandling != .sendIfNew,
            requests.allSatisfy({ $0.noLocal == first.noLocal && $0.retainHandling == first.retainHandling })
        else { return [] }
        var found: Set<Int> = []
        for (index, request) in requests.enumerated() where MQTTTopicFilter.shared(request.filter) == nil {
            for other in 0..<index where MQTTTopicFilter.shared(requests[other].filter) == nil {
                if found.contains(index), found.contains(other) { continue }
                guard MQTTTopicFilter.overlap(request.filter, requests[other].filter) else { continue }
                found.insert(index)
                found.insert(other)
            }
        }
        return found.sorted()
    }
}
