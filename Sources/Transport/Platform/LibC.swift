// The C library of the system, chosen here for every file of the module.

#if canImport(Glibc)
    @_exported import CMessagingPosix
    @_exported import Glibc
#elseif canImport(Musl)
    @_exported import CMessagingPosix
    @_exported import Musl
#elseif canImport(Android)
    @_exported import Android
    @_exported import CMessagingPosix
#elseif canImport(Darwin)
    @_exported import Darwin
#else
    #error("swift-messaging needs a POSIX system: add its C library here.")
#endif

/// What the C libraries declare in different ways.
enum LibC {
    #if canImport(Glibc)
        static let streamSocketType = Int32(SOCK_STREAM.rawValue)
        static let priorityOfThread = Int32(PRIO_PROCESS.rawValue)
    #else
        static let streamSocketType = SOCK_STREAM
        static let priorityOfThread = PRIO_PROCESS
    #endif
}
