// A frame log is what an inspector page is started with.
@_exported public import Messaging
