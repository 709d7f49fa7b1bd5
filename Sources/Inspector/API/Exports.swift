// An inspector page is started with a frame log.
@_exported public import class MessagingShell.FrameLog
