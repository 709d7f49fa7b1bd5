// The types of other modules that programs name when they use the client, or keep what they received in properties of their
// own. A value that they write with a leading dot (`overflow: .pauseReading`) needs no name here: members come along
// with the module. The three protocols are for functions that serve both clients. `.ci/exports` compares them with a
// list.
@_exported public import struct Messaging.BrokerURL
@_exported public import struct Messaging.BufferPolicy
@_exported public import struct Messaging.ClientBacklog
@_exported public import struct Messaging.ClientCounters
@_exported public import enum Messaging.ConnectionState
@_exported public import struct Messaging.Credentials
@_exported public import struct Messaging.CredentialsRequest
@_exported public import struct Messaging.DecodeFailure
@_exported public import protocol Messaging.MessageSubscription
@_exported public import protocol Messaging.MessagingClient
@_exported public import protocol Messaging.PayloadCoding
@_exported public import struct Messaging.Proxy
@_exported public import protocol Messaging.ReceivedMessage
@_exported public import struct Messaging.ReconnectPolicy
@_exported public import struct Messaging.ServerOrder
@_exported public import struct Messaging.TimedEvent
@_exported public import struct Messaging.Updates
@_exported public import class MessagingFrames.FrameLog
@_exported public import struct MessagingFrames.MessageEvent
@_exported public import enum STOMPCore.STOMPAckMode
@_exported public import struct STOMPCore.STOMPBrokerProfile
@_exported public import struct STOMPCore.STOMPConnected
@_exported public import struct STOMPCore.STOMPContentType
@_exported public import struct STOMPCore.STOMPHeaders
@_exported public import struct STOMPCore.STOMPLimits
@_exported public import struct STOMPCore.STOMPServerError
@_exported public import enum STOMPCore.STOMPVersion
@_exported public import struct STOMPRecords.STOMPFrameRecord
@_exported public import struct Transport.NetworkOptions
@_exported public import struct Transport.PEMSource
@_exported public import struct Transport.ServiceClass
@_exported public import struct Transport.TLSIdentity
@_exported public import struct Transport.TLSOptions
@_exported public import struct Transport.TLSPreSharedKey
@_exported public import struct Transport.TLSTrust
@_exported public import struct Transport.TransportError
@_exported public import struct Transport.WebSocketOptions
