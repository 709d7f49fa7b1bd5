/// How urgent something is: the traffic of a connection, or the thread that serves it.
public struct ServiceClass: Sendable, Hashable {
    enum Kind { case background, standard, responsive }
    let kind: Kind

    /// May wait for everything else, such as the upload of a log.
    public static let background = ServiceClass(kind: .background)
    /// The system's default.
    public static let standard = ServiceClass(kind: .standard)
    /// A person waits for the answer.
    public static let responsive = ServiceClass(kind: .responsive)
}

extension System {
    /// Marks the packets of a socket that is not connected yet.
    ///
    /// Darwin has one option for it. Linux has the priority in this machine's queues and the field in the packets (RFC
    /// 4594: class selector 1 for low priority, AF21 for low latency); IPv6's field has another name, and a socket of
    /// the other family refuses it.
    static func setServiceClass(_ descriptor: Int32, _ serviceClass: ServiceClass) {
        #if canImport(Darwin)
            switch serviceClass.kind {
            case .standard: break
            case .background:
                setOption(descriptor, level: SOL_SOCKET, name: SO_NET_SERVICE_TYPE, to: NET_SERVICE_TYPE_BK)
            case .responsive:
                setOption(descriptor, level: SOL_SOCKET, name: SO_NET_SERVICE_TYPE, to: NET_SERVICE_TYPE_RD)
            }
        #else
            func mark(field: Int32, priority: Int32) {
                setOption(descriptor, level: Int32(IPPROTO_IP), name: IP_TOS, to: field)
                setOption(descriptor, level: Int32(IPPROTO_IPV6), name: IPV6_TCLASS, to: field)
                // After the field, which sets a priority as well.
                setOption(descriptor, level: SOL_SOCKET, name: SO_PRIORITY, to: priority)
            }
            // TC_PRIO_BULK and TC_PRIO_INTERACTIVE of linux/pkt_sched.h.
            switch serviceClass.kind {
            case .standard: break
            case .background: mark(field: 0x20, priority: 2)
            case .responsive: mark(field: 0x48, priority: 6)
            }
        #endif
    }

    /// Tells the system how urgent the calling thread is.
    ///
    /// Linux lets a thread lower its own priority (nice 10), but not raise it.
    static func setThreadQuality(_ quality: ServiceClass) {
        #if canImport(Darwin)
            // QOS_CLASS_BACKGROUND and QOS_CLASS_USER_INITIATED, whose type depends on how their header is read.
            switch quality.kind {
            case .standard: break
            case .background: _ = pthread_set_qos_class_self_np(.init(0x09), 0)
            case .responsive: _ = pthread_set_qos_class_self_np(.init(0x19), 0)
            }
        #else
            if quality == .background { _ = setpriority(LibC.priorityOfThread, 0, 10) }
        #endif
    }
}
