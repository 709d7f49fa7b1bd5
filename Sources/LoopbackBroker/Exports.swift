// The types of other modules that programs name when they start a broker.
@_exported public import struct Transport.TLSIdentity
@_exported public import struct Transport.TLSServerOptions
@_exported public import struct Transport.TransportError
