import MessagingWire

/// Who receives the messages of a topic of STOMP: a topic without wildcards is looked up, only patterns are compared.
struct TopicIndex<Receiver: Hashable & Comparable & Sendable>: Sendable {
    private var exact: [ByteKey: Set<Receiver>] = [:]
    private var patterns: [Receiver: Destination] = [:]

    mutating func insert(_ receiver: Receiver, _ destination: Destination) {
        if destination.hasWildcards {
            patterns[receiver] = destination
        } else {
            exact[ByteKey(destination.name), default: []].insert(receiver)
        }
    }

    mutating func remove(_ receiver: Receiver, _ destination: Destination) {
        if destination.hasWildcards {
            patterns[receiver] = nil
        } else {
            let name = ByteKey(destination.name)
            exact[name]?.remove(receiver)
            if exact[name]?.isEmpty == true { exact[name] = nil }
        }
    }

    /// The receivers of a topic, in their order.
    ///
    /// - Parameter name: as STOMP names it, without `/topic/`.
    func receivers(of name: String) -> [Receiver] {
        let parts = Destination.parts(of: name)
        let matching = patterns.lazy.filter { $0.value.matches(parts) }.map(\.key)
        return (Array(exact[ByteKey(name)] ?? []) + matching).sorted()
    }
}
