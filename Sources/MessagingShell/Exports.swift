// Endpoints, transport errors and frame logs are part of what both clients speak.
@_exported public import MessagingFrames
@_exported public import Transport
