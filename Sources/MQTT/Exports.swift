// The types of other modules that programs name when they use the client. What they only receive, or write with a
// leading dot (`overflow: .pauseReading`) needs no name here: members come along with the module. The three protocols
// are for functions that serve both clients. `.ci/exports` compares them with a list.
@_exported public import struct MQTTCore.MQTTOutgoingMessage
@_exported public import struct MQTTCore.MQTTProperties
@_exported public import struct MQTTCore.MQTTProperty
@_exported public import struct MQTTCore.MQTTReasonCode
@_exported public import enum MQTTCore.MQTTStoreRecord
@_exported public import struct MQTTCore.MQTTSubscriptionRequest
@_exported public import enum MQTTCore.MQTTTopicFilter
@_exported public import enum MQTTCore.MQTTVersion
@_exported public import struct MQTTCore.MQTTWill
@_exported public import enum MQTTCore.QoS
@_exported public import struct Messaging.BrokerURL
@_exported public import struct Messaging.BufferPolicy
@_exported public import struct Messaging.ClientCounters
@_exported public import enum Messaging.ConnectionState
@_exported public import struct Messaging.Credentials
@_exported public import struct Messaging.CredentialsRequest
@_exported public import struct Messaging.DecodeFailure
@_exported public import class Messaging.FrameLog
@_exported public import protocol Messaging.MessageSubscription
@_exported public import protocol Messaging.MessagingClient
@_exported public import protocol Messaging.PayloadCoding
@_exported public import struct Messaging.Proxy
@_exported public import protocol Messaging.ReceivedMessage
@_exported public import struct Messaging.ReconnectPolicy
@_exported public import struct Messaging.ServerOrder
@_exported public import struct Messaging.Updates
@_exported public import struct Transport.NetworkOptions
@_exported public import struct Transport.TLSIdentity
@_exported public import struct Transport.TLSOptions
@_exported public import struct Transport.TLSPreSharedKey
@_exported public import struct Transport.TransportError
@_exported public import struct Transport.WebSocketOptions
