/// Who may sign certificates.
public struct TLSTrust: Sendable, Hashable {
    let usesSystem: Bool
    let authorities: [PEMSource]

    /// The authorities that the system trusts.
    public static let system = TLSTrust(usesSystem: true, authorities: [])

    /// These authorities and no others.
    public static func authorities(_ authorities: [PEMSource]) -> TLSTrust {
        TLSTrust(usesSystem: false, authorities: authorities)
    }

    /// The authorities that the system trusts, and these.
    public static func systemAnd(_ authorities: [PEMSource]) -> TLSTrust {
        TLSTrust(usesSystem: true, authorities: authorities)
    }
}
