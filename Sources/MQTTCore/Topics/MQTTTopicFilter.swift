/// Topic filters: what is subscribed to. Everything is compared as UTF-8 bytes.
public enum MQTTTopicFilter {
    public static func validate(_ bytes: RawSpan) throws(MQTTViolation) {}
    public static func isValid(_ filter: String) -> Bool { true }
    /// The share name and the inner filter of `$share/name/filter`, or nil for any other filter.
    public static func shared(_ filter: String) -> (name: String, filter: String)? { nil }
    /// Whether a topic name matches a filter; a shared filter matches as its inner filter does.
    public static func matches(_ filter: String, topic: String) -> Bool { false }
    /// What `+` and `#` stood for, in order, or nil if the topic does not match.
    public static func captures(of filter: String, in topic: String) -> [String]? { nil }
}
