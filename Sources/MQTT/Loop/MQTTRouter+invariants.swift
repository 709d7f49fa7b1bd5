// What is always true of a router when a read begins, and no change of filters is under way; in debug builds only.

import MQTTCore
import MessagingWire

extension MQTTRouter {
    /// Stops the process where the router contradicts itself. True, so that it is what `assert` checks, and costs nothing in
    /// a release build.
    func checkInvariants() -> Bool {
        pace.count()
        if pace.isDue(for: entries.count + checkedRoutes) { checkEntries() }
        if pace.isDue(for: destinations.count + entries.count + checkedRoutes) { checkDestinations() }
        return true
    }

    private func checkEntries() {
        var prefixes = 0
        for (key, entry) in entries {
            assert(key == ByteKey(entry.request.filter), "An entry is found by another filter than its own.")
            assert(!entry.routes.isEmpty, "A filter has no subscription.")
            let first = tree.value(for: Self.inner(key.text))
            let isFound = first === entry || first?.others.contains { $0 === entry } == true
            assert(isFound, "Messages of a filter do not find it.")
            assert(first === entry || entry.others.isEmpty, "A filter leads to others, and nothing leads to it.")
            if Self.withoutPrefix(key.text) != nil { prefixes += 1 }
            if !entry.callers.isEmpty { checkCallers(of: entry) }
        }
        assert(prefixed.count == prefixes, "Another number of filters has a prefix than is looked for.")
    }

    private func checkCallers(of entry: MQTTFilterEntry) {
        let routes = Set(entry.routes.map { ObjectIdentifier($0) })
        for caller in entry.callers {
            let hasRoute = routes.contains(ObjectIdentifier(caller.route))
            assert(hasRoute, "A caller awaits an answer for a subscription that has ended.")
            assert(
                caller.route.requests[caller.index].filter.hasSameBytes(as: entry.request.filter),
                "A caller awaits the answer for another filter.")
        }
    }

    /// What is known about topics leads to subscriptions that there are.
    private func checkDestinations() {
        var routes = Set(unmatched.map { [ObjectIdentifier($0)] } ?? [])
        for entry in entries.values { for route in entry.routes { routes.insert(ObjectIdentifier(route)) } }
        for destination in destinations {
            for route in destination.routes {
                assert(routes.contains(ObjectIdentifier(route)), "A topic leads to a subscription that has ended.")
            }
        }
        for (key, number) in sharedDestinations {
            let own = destinations[Int(number)].routes.map { ObjectIdentifier($0) }
            assert(own == key, "Topics share a destination that is not theirs.")
        }
        checkedRoutes = routes.count
        assert(destinations[0].routes.isEmpty, "The destination that stands for none leads to a subscription.")
    }
}
