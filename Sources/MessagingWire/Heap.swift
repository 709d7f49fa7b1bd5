/// Elements of which the least comes out first, however many there are.
package struct Heap<Element: Comparable> {
    package private(set) var items: [Element] = []

    package init() {}

    package init(_ elements: some Sequence<Element>) {
        for element in elements { insert(element) }
    }

    package var first: Element? { items.first }
    package var count: Int { items.count }

    package mutating func insert(_ element: Element) {
        items.append(element)
        var place = items.count - 1
        while place > 0, items[place] < items[(place - 1) / 2] {
            items.swapAt(place, (place - 1) / 2)
            place = (place - 1) / 2
        }
    }

    package mutating func popFirst() -> Element? {
        guard let last = items.popLast() else { return nil }
        guard let least = items.first else { return last }
        items[0] = last
        var place = 0
        while true {
            let (left, right) = (2 * place + 1, 2 * place + 2)
            var next = place
            if left < items.count, items[left] < items[next] { next = left }
            if right < items.count, items[right] < items[next] { next = right }
            guard next != place else { return least }
            items.swapAt(place, next)
            place = next
        }
    }
}

extension Heap: Sendable where Element: Sendable {}
