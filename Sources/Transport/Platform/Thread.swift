#if canImport(Glibc)
    import CPosix
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Tells threads apart; never 0.
var currentThreadNumber: UInt {
    #if canImport(Glibc)
        UInt(pthread_self())
    #else
        UInt(bitPattern: pthread_self())
    #endif
}

/// Starts a detached thread that runs `body` and ends with it.
package func startThread(named name: StaticString, _ body: @escaping @Sendable () -> Void) {
    final class Box {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }
    let argument = Unmanaged.passRetained(Box(body)).toOpaque()
    var attributes = pthread_attr_t()
    pthread_attr_init(&attributes)
    pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
    pthread_attr_setstacksize(&attributes, 512 * 1024)
    #if canImport(Darwin)
        var thread: pthread_t?
        let code = pthread_create(
            &thread, &attributes,
            { raw in
                Unmanaged<Box>.fromOpaque(raw).takeRetainedValue().body()
                return nil
            }, argument)
    #else
        var thread = pthread_t()
        let code = pthread_create(
            &thread, &attributes,
            { raw in
                Unmanaged<Box>.fromOpaque(raw!).takeRetainedValue().body()
                return nil
            }, argument)
        #if canImport(Glibc)
            if code == 0 { pthread_setname_np(thread, name.description) }
        #endif
    #endif
    pthread_attr_destroy(&attributes)
    // Without a thread there is no loop, and no way to tell anybody who waits for one.
    precondition(code == 0, "swift-messaging: cannot start a thread: \(System.describe(code))")
}
