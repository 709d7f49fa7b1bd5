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

/// What the C libraries declare in different ways, or under names that our own types hide.
enum LibC {
    #if canImport(Glibc)
        static let streamSocketType = Int32(SOCK_STREAM.rawValue)
        static let priorityOfThread = Int32(PRIO_PROCESS.rawValue)
    #else
        static let streamSocketType = SOCK_STREAM
        static let priorityOfThread = PRIO_PROCESS
    #endif

    /// Replaces the file at `new`, if there is one, by the file at `old` in one step.
    static func rename(_ old: String, _ new: String) -> Int32 {
        #if canImport(Glibc)
            unsafe Glibc.rename(old, new)
        #elseif canImport(Musl)
            unsafe Musl.rename(old, new)
        #elseif canImport(Android)
            unsafe Android.rename(old, new)
        #else
            unsafe Darwin.rename(old, new)
        #endif
    }
}
