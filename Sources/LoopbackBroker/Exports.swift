@_exported public import MessagingSimulation

// The types of other modules that programs name when they start a broker, or when they play it; of the simulation all.
@_exported public import enum MQTTCore.MQTTPacketType
@_exported public import struct MQTTCore.MQTTProperties
@_exported public import struct MQTTCore.MQTTReasonCode
@_exported public import enum MQTTCore.QoS
@_exported public import enum STOMPCore.STOMPCommand
@_exported public import class Transport.ManualClock
@_exported public import struct Transport.TLSIdentity
@_exported public import struct Transport.TLSServerOptions
@_exported public import struct Transport.TransportError
