// Endpoints and transport errors are part of what both clients speak.
@_exported public import Transport
