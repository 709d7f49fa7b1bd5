extension MQTTEngineConfiguration {
    /// Throws if ``connectProperties`` holds a property that a field of this configuration sets. Checked before each
    /// CONNECT is written, and by clients before they open a connection.
    ///
    /// - Throws: ``MQTTUsageError/Code/propertyNotAllowed``.
    public func checkConnectProperties() throws(MQTTUsageError) {
        for property in connectProperties.list {
            let option: String? =
                switch property.identifier {
                case .sessionExpiryInterval: "sessionExpiry"
                case .receiveMaximum: "receiveMaximum"
                case .maximumPacketSize: "maximumPacketSize"
                case .topicAliasMaximum: "topicAliasMaximum"
                case .authenticationMethod, .authenticationData: "authentication"
                default: nil
                }
            guard let option else { continue }
            throw MQTTUsageError(
                .propertyNotAllowed,
                "\(property.identifier) is among the connect properties, but has an option of its own: use the option "
                    + "for it (\(option)) and leave the property out")
        }
    }
}
