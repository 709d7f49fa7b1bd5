public import Transport

extension BrokerURL {
    /// The servers that a domain names in DNS (SRV, RFC 2782), as URLs in the order in which to try them: by priority, and
    /// among equals at random in proportion to their weights.
    ///
    ///     let client = MQTTClient(try await BrokerURL.servers(of: "example.com"), clientID: "meter-%%%%")
    ///
    /// An attacker who can change the answers of DNS chooses the servers: a certificate (`mqtts`) shows that a server
    /// has the name in the answer, and not that the domain has chosen it.
    ///
    /// A name server that is silent costs as long as the system's resolver waits, with one of them usually 10 seconds.
    /// Names under `local` are not found: multicast DNS has records of single servers only.
    /// - Parameters:
    ///   - domain: such as `example.com`.
    ///   - scheme: that of the URLs. Default: `mqtts`.
    ///   - service: the service in DNS. Default: `_mqtt._tcp`, `_secure-mqtt._tcp`, `_stomp._tcp` or `_stomps._tcp`, as the
    ///     scheme is.
    /// - Throws: `unknownHost` if DNS has no such record, cannot answer, or does not answer; `cancelled` if the task was
    ///   cancelled.
    public static func servers(
        of domain: String, scheme: Scheme = .mqtts, service: String? = nil
    ) async throws(TransportError) -> [String] {
        try await servers(of: domain, scheme: scheme, service: service, ask: { ServiceRecord.ask($0) })
    }

    /// The servers of a domain, by another way to ask the name servers.
    package static func servers(
        of domain: String, scheme: Scheme = .mqtts, service: String? = nil,
        ask: @escaping @Sendable (String) -> [UInt8]?
    ) async throws(TransportError) -> [String] {
        let service = service ?? (scheme == .mqtts ? "_secure-mqtt._tcp" : "_\(scheme.rawValue)._tcp")
        let records = try await ServiceRecord.lookUp("\(service).\(domain)", ask: ask)
        var random = SystemRandomNumberGenerator()
        return ServiceRecord.ordered(records, using: &random).map { "\(scheme.rawValue)://\($0.target):\($0.port)" }
    }
}
