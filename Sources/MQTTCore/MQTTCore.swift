// MQTTCore
