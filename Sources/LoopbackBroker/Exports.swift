// Transport errors and the server's TLS options are part of what the broker speaks.
@_exported public import Transport
