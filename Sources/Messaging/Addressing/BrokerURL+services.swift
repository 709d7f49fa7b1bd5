public import Transport

extension BrokerURL {
    /// The servers that a domain names in DNS (SRV, RFC 2782), as URLs in the order in which to try them: by priority, and
    /// among equals at random in proportion to their weights.
    ///
    ///     let client = MQTTClient(try await BrokerURL.servers(of: "example.com"), clientID: "meter-%%%%")
    ///
    /// Who can change the answers of DNS chooses the servers: a certificate (`mqtts`) shows that a server has the name in the
    /// answer, and not that the domain has chosen it.
    /// - Parameters:
    ///   - domain: such as `example.com`.
    ///   - scheme: that of the URLs. Default: `mqtts`.
    ///   - service: the service in DNS. Default: `_mqtt._tcp`, `_secure-mqtt._tcp`, `_stomp._tcp` or `_stomps._tcp`, as the
    ///     scheme is.
    /// - Throws: `unknownHost` if DNS has no such record, or does not answer.
    public static func servers(
        of domain: String, scheme: Scheme = .mqtts, service: String? = nil
    ) async throws(TransportError) -> [String] {
        let service = service ?? (scheme == .mqtts ? "_secure-mqtt._tcp" : "_\(scheme.rawValue)._tcp")
        let records = try await ServiceRecord.lookUp("\(service).\(domain)")
        var random = SystemRandomNumberGenerator()
        return ServiceRecord.ordered(records, using: &random).map { "\(scheme.rawValue)://\($0.target):\($0.port)" }
    }
}
