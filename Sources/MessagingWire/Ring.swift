/// A queue that takes its first element out without moving the others.
package struct Ring<Element> {
    /// A power of two in length, or empty.
    private var items: [Element?] = []
    private var head = 0
    package private(set) var count = 0

    package init() {}

    package var isEmpty: Bool { count == 0 }
    package var first: Element? { count == 0 ? nil : items[head] }

    /// The element at a distance from the first; traps outside.
    package subscript(position: Int) -> Element {
        get {
            precondition(position >= 0 && position < count, "A position beyond the end of the queue.")
            // Safe: a slot inside the queue holds an element.
            return unsafe items[(head + position) & (items.count - 1)].unsafelyUnwrapped
        }
        set {
            precondition(position >= 0 && position < count, "A position beyond the end of the queue.")
            items[(head + position) & (items.count - 1)] = newValue
        }
    }

    package mutating func append(_ element: Element) {
        if count == items.count { grow() }
        items[(head + count) & (items.count - 1)] = element
        count += 1
    }

    package mutating func prepend(_ element: Element) {
        if count == items.count { grow() }
        head = (head + items.count - 1) & (items.count - 1)
        items[head] = element
        count += 1
    }

    package mutating func popFirst() -> Element? {
        guard count > 0 else { return nil }
        let element = items[head]
        items[head] = nil
        head = (head + 1) & (items.count - 1)
        count -= 1
        if count == 0 && items.count > 64 {
            items = []
            head = 0
        }
        return element
    }

    package mutating func removeAll() {
        self = Ring()
    }

    /// Removes the elements that meet the condition, in time in proportion to all.
    package mutating func removeAll(where isMeant: (Element) -> Bool) {
        var left = Ring()
        while let element = popFirst() { if !isMeant(element) { left.append(element) } }
        self = left
    }

    private mutating func grow() {
        var larger: [Element?] = []
        let capacity = Swift.max(8, items.count * 2)
        larger.reserveCapacity(capacity)
        for offset in 0..<count { larger.append(items[(head + offset) & (items.count - 1)]) }
        while larger.count < capacity { larger.append(nil) }
        items = larger
        head = 0
    }
}

extension Ring: Sendable where Element: Sendable {}
