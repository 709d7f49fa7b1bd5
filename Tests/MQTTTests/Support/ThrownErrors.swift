import MQTT

/// What a call throws.
func error(_ body: () async throws(MQTTError) -> Void) async -> MQTTError? {
    do throws(MQTTError) {
        try await body()
        return nil
    } catch {
        return error
    }
}
