@_exported public import class MessagingFrames.FrameLog
@_exported public import struct MessagingFrames.MessageEvent
// The types of other modules that programs name when they use the client, or keep what they received in properties of their
// own. A value that they write with a leading dot (`overflow: .pauseReading`) needs no name here: members come along
// with the module. The three protocols are for functions that serve both clients. `.ci/exports` compares them with a
// list.
@_exported public import struct MessagingShell.BrokerURL
@_exported public import struct MessagingShell.BufferPolicy
@_exported public import struct MessagingShell.ClientBacklog
@_exported public import struct MessagingShell.ClientCounters
@_exported public import enum MessagingShell.ConnectionState
@_exported public import struct MessagingShell.Credentials
@_exported public import struct MessagingShell.CredentialsRequest
@_exported public import struct MessagingShell.DecodeFailure
@_exported public import protocol MessagingShell.MessageSubscription
@_exported public import protocol MessagingShell.MessagingClient
@_exported public import protocol MessagingShell.PayloadCoding
@_exported public import struct MessagingShell.Proxy
@_exported public import protocol MessagingShell.ReceivedMessage
@_exported public import struct MessagingShell.ReconnectPolicy
@_exported public import struct MessagingShell.ServerOrder
@_exported public import struct MessagingShell.TimedEvent
@_exported public import struct MessagingShell.Updates
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
