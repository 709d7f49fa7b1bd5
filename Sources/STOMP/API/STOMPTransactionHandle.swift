import STOMPCore

/// A transaction of a client: what is sent, acknowledged or rejected in it counts all together or not at all.
///
/// It ends with ``STOMPClient/commit(_:)``, ``STOMPClient/abort(_:)`` or its connection; from then on it is refused
/// with ``STOMPError/Code/stale``.
public struct STOMPTransactionHandle: Sendable, Hashable {
    let transaction: STOMPTransaction
}
