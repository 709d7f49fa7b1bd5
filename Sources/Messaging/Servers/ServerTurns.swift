/// The turns of the servers of one client; on the loop's thread. A single server always has its turn.
package struct ServerTurns {
    /// Several servers take turns.
    private final class Several {
        let start: ServerRotation
        var now: ServerRotation

        init(_ start: ServerRotation) {
            self.start = start
            now = start
        }
    }

    private let several: Several?

    package init(count: Int, order: ServerOrder) {
        several = count > 1 ? Several(ServerRotation(count: count, order: order)) : nil
    }

    /// The place in the list of the server whose turn it is.
    var current: Int { several?.now.current ?? 0 }

    /// As in the beginning.
    func beginAnew() {
        if let several { several.now = several.start }
    }

    /// It failed: the next one has its turn. Returns false when that was the last of the round.
    func failed() -> Bool { several?.now.failed() ?? false }

    /// Its connection was lost; `held` says whether it had been of use.
    func lost(held: Bool) { several?.now.lost(held: held) }
}
