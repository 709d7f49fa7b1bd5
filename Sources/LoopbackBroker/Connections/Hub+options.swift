import Synchronization
import Wire

extension Hub {
    var currentFaults: LoopbackFaults { faults.withLock { $0 } }
    var withholdsAcknowledgements: Bool { faults.withLock { $0.withholdsAcknowledgements } }

    /// Whether somebody may connect. Names and passwords are compared as bytes.
    func admits(user: String?, password: [UInt8]?) -> Bool {
        guard let users = options.users else { return true }
        guard let user, let password else { return false }
        return users.contains { $0.name.hasSameBytes(as: user) && $0.password.utf8.elementsEqual(password) }
    }
}
