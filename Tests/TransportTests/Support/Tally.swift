import Synchronization

/// A number that many tasks change.
final class Tally: Sendable {
    private let number = Atomic(0)

    var value: Int { number.load(ordering: .sequentiallyConsistent) }

    @discardableResult
    func add(_ difference: Int) -> Int {
        number.add(difference, ordering: .sequentiallyConsistent).newValue
    }
}

/// What was collected from many threads, in the order of arrival.
final class Collected<Element: Sendable>: Sendable {
    private let list = Mutex<[Element]>([])

    var all: [Element] { list.withLock { $0 } }

    func append(_ element: Element) {
        list.withLock { $0.append(element) }
    }
}
