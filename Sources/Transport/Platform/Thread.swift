/// Tells threads apart; never 0.
var currentThreadNumber: UInt {
    #if canImport(Glibc)
        UInt(pthread_self())
    #else
        UInt(bitPattern: pthread_self())
    #endif
}

/// Starts a detached thread that runs `body` and ends with it; returns 0, or the system's reason why it cannot.
package func startThread(named name: StaticString, _ body: @escaping @Sendable () -> Void) -> Int32 {
    final class Box {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    let argument = Unmanaged.passRetained(Box(body)).toOpaque()
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    pthread_attr_setstacksize(&attributes, 512 * 1024)
    // A number in Glibc and Bionic, a pointer elsewhere.
    #if canImport(Darwin) || canImport(Musl)
        var thread: pthread_t?
    #else
        var thread = pthread_t()
    #endif
    let code = pthread_create(
        &thread, &attributes,
        { raw in
            // Only Darwin declares that it is never nil.
            let raw: UnsafeMutableRawPointer? = raw
            Unmanaged<Box>.fromOpaque(raw!).takeRetainedValue().body()
            return nil
        }, argument)
    #if os(Linux) || os(Android)
        if code == 0 { pthread_setname_np(thread, name.description) }
    #endif
    pthread_attr_destroy(&attributes)
    if code != 0 { Unmanaged<Box>.fromOpaque(argument).release() }
    return code
}

/// Lets the calling thread's short sleeps end on time, where the system rounds them up.
func sleepPrecisely() {
    #if os(Linux) || os(Android)
        sleep_precisely()
    #endif
}
