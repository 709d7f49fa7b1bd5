import Synchronization

/// One reading of the files that TLS options name. Clients with equal options that want it at the same time share it.
struct TLSReading: Hashable, Sendable {
    typealias Outcome = Result<Made, TransportError>

    /// What is made of the options and their files.
    enum Made {
        case openSSL(TLSContext)
        #if canImport(Network)
            case system(NetworkTLS)
        #endif
    }

    private let kind: TLSContext.Kind
    /// Whether it is for the system's Network.framework.
    private let isForSystem: Bool
    /// What was made of the same files, and may be outdated all the same.
    private let outdated: TLSContext?

    init(_ kind: TLSContext.Kind, isForSystem: Bool = false, outdated: TLSContext? = nil) {
        (self.kind, self.isForSystem, self.outdated) = (kind, isForSystem, outdated)
    }

    static func == (one: TLSReading, other: TLSReading) -> Bool {
        one.outdated === other.outdated && one.isForSystem == other.isForSystem && one.kind == other.kind
    }

    func hash(into hasher: inout Hasher) { hasher.combine(kind) }

    /// Reads, which blocks.
    var outcome: Outcome {
        do throws(TransportError) { return .success(try make()) } catch { return .failure(error) }
    }

    private func make() throws(TransportError) -> Made {
        #if canImport(Network)
            if isForSystem { return .system(try networkTLS()) }
        #endif
        return .openSSL(try context())
    }

    /// What another client has made of the options, if they name no file that has to be read; nil if nothing is known.
    var known: Made? {
        guard case .client(let options) = kind, !kind.namesFiles, let fingerprint = kind.fingerprint else { return nil }
        #if canImport(Network)
            if isForSystem { return SharedMade.system.find(options, fingerprint, otherThan: nil).map { .system($0) } }
        #endif
        return SharedMade.openSSL.find(options, fingerprint, otherThan: outdated).map { .openSSL($0) }
    }

    /// - Throws: `tlsUnavailable`, `tlsConfiguration`, `systemLimit`.
    func context() throws(TransportError) -> TLSContext {
        guard case .client(let options) = kind else { return try TLSContext(kind) }
        return try SharedMade.openSSL.value(for: options, kind.fingerprint, otherThan: outdated) {
            () throws(TransportError) in try TLSContext(kind)
        }
    }

    #if canImport(Network)
        /// - Throws: `tlsConfiguration`, `systemLimit`, `unsupported`.
        func networkTLS() throws(TransportError) -> NetworkTLS {
            guard case .client(let options) = kind else {
                throw TransportError(.unsupported, "Network.framework serves clients only here.")
            }
            return try SharedMade.system.value(for: options, kind.fingerprint, otherThan: nil) {
                () throws(TransportError) in try NetworkTLS(options)
            }
        }
    #endif
}

/// The contexts that were made for this process's clients. Clients with equal options and files share one, because it
/// holds the authorities: those of a system take a megabyte, and fifty milliseconds of processor time.
final class SharedMade<Made: AnyObject & Sendable>: Sendable {
    private struct Entry {
        weak var made: Made?
        /// Stands for what the files held when it was made.
        let fingerprint: Int
    }

    private let entries = Lock<[TLSOptions: Entry]>([:])

    /// The object for these options and the contents of their files; made if there is none.
    ///
    /// - Parameters:
    ///   - fingerprint: of the files, from before they are read; nil if they cannot be read, which `make` reports.
    ///   - outdated: is not returned.
    func value(
        for options: TLSOptions, _ fingerprint: Int?, otherThan outdated: Made?,
        _ make: () throws(TransportError) -> Made
    ) throws(TransportError) -> Made {
        if let fingerprint, let known = find(options, fingerprint, otherThan: outdated) { return known }
        // Outside the lock: this reads files.
        let made = try make()
        guard let fingerprint else { return made }
        // Another client may have made one in the meantime.
        if let known = find(options, fingerprint, otherThan: outdated) { return known }
        entries.withLock { $0[options] = Entry(made: made, fingerprint: fingerprint) }
        return made
    }

    /// The found object leaves the lock with a reference: the last reference must not end under the lock, since
    /// `forget` takes the lock.
    func find(_ options: TLSOptions, _ fingerprint: Int, otherThan outdated: Made?) -> Made? {
        let (made, found) = entries.withLock { entries in
            let entry = entries[options]
            return (entry?.made, entry?.fingerprint)
        }
        return found == fingerprint && made !== outdated ? made : nil
    }

    /// Something that was made of these options was released, and the options with what they hold are not kept for it.
    func forget(_ options: TLSOptions) {
        let other = entries.withLock { entries -> Made? in
            let made = entries[options]?.made
            if made == nil { entries[options] = nil }
            return made
        }
        withExtendedLifetime(other) {}
    }
}

extension SharedMade where Made == TLSContext {
    static var openSSL: SharedMade { madeByOpenSSL }
}

private let madeByOpenSSL = SharedMade<TLSContext>()

#if canImport(Network)
    extension SharedMade where Made == NetworkTLS {
        static var system: SharedMade { madeBySystem }
    }

    private let madeBySystem = SharedMade<NetworkTLS>()
#endif

extension TLSContext.Kind {
    private var sources: [PEMSource] {
        switch self {
        case .client(let options): options.trust.authorities + (options.identity?.sources ?? [])
        case .server(let options): (options.clientAuthorities ?? []) + options.identity.sources
        }
    }

    var namesFiles: Bool { sources.contains(where: \.isFile) }

    /// Stands for what the files hold at present; nil if one cannot be read. Different contents have the same
    /// fingerprint once in 2⁶⁴ cases.
    fileprivate var fingerprint: Int? {
        var hasher = Hasher()
        for source in sources where source.isFile {
            guard let bytes = try? source.read("file") else { return nil }
            hasher.combine(bytes.count)
            // Safe: the buffer is read during the call only.
            unsafe bytes.withUnsafeBytes { unsafe hasher.combine(bytes: $0) }
        }
        return hasher.finalize()
    }

    /// Whether something that is in none of the files may have changed: the system's authorities, or a key in a token.
    func mayBeOutdated(after error: TransportError) -> Bool {
        guard case .client(let options) = self else { return false }
        return options.trust.usesSystem && error.code.isOfAuthorities || options.identity?.isStored == true
    }
}
