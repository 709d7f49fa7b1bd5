extension MQTTMessageRecord {
    /// The properties of the message, decoded from bytes that hold it at the record's offsets.
    ///
    /// The engine has checked them before it made the record; other bytes yield no properties.
    public func decodeProperties(in bytes: RawSpan) -> MQTTProperties {
        guard !properties.isEmpty, properties.upperBound <= bytes.byteCount else { return [] }
        return (try? MQTTProperties(decoding: bytes, properties, carrier: .publish)) ?? []
    }
}
