// swift-format-ignore-file: AlwaysUseLowerCamelCase, TypeNamesShouldBeCapitalized
// The used part of Apple's Network framework. https://developer.apple.com/documentation/network
//
// `.ci/check-apple` type-checks against it. With MESSAGING_FAKE_APPLE=1 it is built on Linux, over POSIX sockets and OpenSSL
// (the files that begin with Fake). On Apple's systems it does not exist.

@_exported public import Dispatch
public import FoundationEssentials
@_exported public import Security

#if os(Linux)
    /// /foundation/posixerrorcode, which comes with Darwin.
    public struct POSIXErrorCode: RawRepresentable, Hashable, Sendable {
        public let rawValue: Int32
        public init?(rawValue: Int32) { self.rawValue = rawValue }
    }
#else
    @_exported public import Darwin
#endif

// /network/nwerror
public enum NWError: Error, Equatable, Sendable, CustomDebugStringConvertible {
    case posix(POSIXErrorCode)
    case dns(Int32)
    case tls(OSStatus)
    // /network/nwerror/wifiaware(_:), of the 26 systems: more cases may come.
    case wifiAware(Int32)

    public var debugDescription: String {
        switch self {
        case .posix(let code): "POSIX \(code.rawValue)"
        case .dns(let code): "DNS \(code)"
        case .tls(let status): "TLS \(status)"
        case .wifiAware(let code): "Wi-Fi Aware \(code)"
        }
    }
}

// /network/nwinterface
public struct NWInterface: Hashable, Sendable {
    public enum InterfaceType: Sendable { case other, wifi, cellular, wiredEthernet, loopback }
    // /network/nwinterface/name
    public let name: String
}

// /network/ipv4address, /network/ipv6address
public struct IPv4Address: Hashable, Sendable {}
public struct IPv6Address: Hashable, Sendable {
    // /network/ipv6address/init(_:)-4vlmv: with an interface behind a percent sign
    public init?(_ string: String) {
        let parts = string.split(separator: "%", maxSplits: 1)
        guard parts.count == 2 else { return nil }
        guard FakeNetwork.interfaces.contains(String(parts[1])) else { return nil }
        interface = NWInterface(name: String(parts[1]))
    }
    // /network/ipv6address/interface
    public let interface: NWInterface?
}

// /network/nwendpoint
public enum NWEndpoint: Hashable, Sendable {
    // /network/nwendpoint/port
    public struct Port: Hashable, Sendable, RawRepresentable {
        public let rawValue: UInt16
        public init?(rawValue: UInt16) { self.rawValue = rawValue }
        // /network/nwendpoint/port/any
        public static let any = Port(rawValue: 0)!
    }

    // /network/nwendpoint/host
    public enum Host: Hashable, Sendable {
        case name(String, NWInterface?)
        case ipv4(IPv4Address)
        case ipv6(IPv6Address)

        // /network/nwendpoint/host/init(_:): an address if it is one.
        public init(_ string: String) { self = .name(string, nil) }
    }

    case hostPort(host: Host, port: Port)
    case service(name: String, type: String, domain: String, interface: NWInterface?)
    case unix(path: String)
}

// /network/nwprotocoloptions, /nwprotocolmetadata, /nwprotocoldefinition
public class NWProtocolOptions: @unchecked Sendable {
    // Sendable because it is set up before a connection uses it.
}
public class NWProtocolMetadata: @unchecked Sendable {}
public class NWProtocolDefinition: @unchecked Sendable {}

// /network/nwprotocoltcp
public class NWProtocolTCP {
    // /network/nwprotocoltcp/options
    public class Options: NWProtocolOptions, @unchecked Sendable {
        public override init() {}
        public var noDelay = false
        public var enableKeepalive = false
        public var keepaliveIdle = 0
        public var keepaliveInterval = 0
        public var keepaliveCount = 0
        public var connectionTimeout = 0
    }
}

// /network/nwprotocoltls
public class NWProtocolTLS {
    // /network/nwprotocoltls/definition
    public static let definition = NWProtocolDefinition()

    // /network/nwprotocoltls/options, /securityprotocoloptions
    public class Options: NWProtocolOptions, @unchecked Sendable {
        public override init() {}
        public let securityProtocolOptions: sec_protocol_options_t = FakeProtocolOptions()
    }

    // /network/nwprotocoltls/metadata, /securityprotocolmetadata
    public class Metadata: NWProtocolMetadata, @unchecked Sendable {
        public let securityProtocolMetadata: sec_protocol_metadata_t = FakeMetadata()
    }
}

// /network/nwparameters
public class NWParameters: @unchecked Sendable {
    // /network/nwparameters/serviceclass-swift.enum
    public enum ServiceClass: Sendable {
        case bestEffort, background, interactiveVideo, interactiveVoice, responsiveData, signaling
    }

    // /network/nwparameters/privacycontext
    public class PrivacyContext: @unchecked Sendable {
        // /network/nwparameters/privacycontext/init(description:)
        public init(description: String) {}
        // /network/nwparameters/privacycontext/proxyconfigurations
        public var proxyConfigurations: [ProxyConfiguration] = []
    }

    package let tls: NWProtocolTLS.Options?
    package var privacyContext: PrivacyContext?

    // /network/nwparameters/init(tls:tcp:)
    public convenience init(tls: NWProtocolTLS.Options?, tcp: NWProtocolTCP.Options = NWProtocolTCP.Options()) {
        self.init(tls)
    }
    private init(_ tls: NWProtocolTLS.Options?) { self.tls = tls }

    // /network/nwparameters/serviceclass-swift.property
    public var serviceClass = ServiceClass.bestEffort
    // /network/nwparameters/prohibitexpensivepaths, /prohibitconstrainedpaths, /prefernoproxies
    public var prohibitExpensivePaths = false
    public var prohibitConstrainedPaths = false
    public var preferNoProxies = false
    // /network/nwparameters/requiredinterface, /requiredinterfacetype, /requiredlocalendpoint
    public var requiredInterface: NWInterface?
    public var requiredInterfaceType = NWInterface.InterfaceType.other
    public var requiredLocalEndpoint: NWEndpoint?
    // /network/nwparameters/setprivacycontext(_:)
    public func setPrivacyContext(_ privacyContext: PrivacyContext) { self.privacyContext = privacyContext }
}

// /network/proxyconfiguration
public struct ProxyConfiguration {
    package enum Kind { case http, socks5 }
    package let kind: Kind
    package let endpoint: NWEndpoint
    package var credential: (username: String, password: String)?

    // /network/proxyconfiguration/init(httpconnectproxy:tlsoptions:)
    public init(httpCONNECTProxy proxyEndpoint: NWEndpoint, tlsOptions: NWProtocolTLS.Options? = nil) {
        kind = .http
        endpoint = proxyEndpoint
    }
    // /network/proxyconfiguration/init(socksv5proxy:)
    public init(socksv5Proxy proxyEndpoint: NWEndpoint) {
        kind = .socks5
        endpoint = proxyEndpoint
    }
    // /network/proxyconfiguration/allowfailover
    public var allowFailover = false
    // /network/proxyconfiguration/applycredential(username:password:)
    public mutating func applyCredential(username: String, password: String) { credential = (username, password) }
}

// /network/nwpath
public struct NWPath: Equatable, Sendable {
    // /network/nwpath/status-swift.enum
    public enum Status: Sendable { case satisfied, unsatisfied, requiresConnection }
    // /network/nwpath/status-swift.property
    public let status: Status
    // /network/nwpath/unsatisfiedreason-swift.enum
    public enum UnsatisfiedReason: Sendable {
        case notAvailable, cellularDenied, wifiDenied, localNetworkDenied, vpnInactive
    }
    // /network/nwpath/unsatisfiedreason-swift.property
    public let unsatisfiedReason: UnsatisfiedReason
    // /network/nwpath/availableinterfaces
    public let availableInterfaces: [NWInterface]
}

// /network/nwpathmonitor
public final class NWPathMonitor: @unchecked Sendable {
    // Sendable because the fake's watchers are locked, and the handler is set before the start.
    // /network/nwpathmonitor/init()
    public init() {}
    // /network/nwpathmonitor/pathupdatehandler
    @preconcurrency public var pathUpdateHandler: (@Sendable (NWPath) -> Void)?
    // /network/nwpathmonitor/start(queue:)
    public func start(queue: DispatchQueue) {
        FakeNetwork.watch(self, queue) { [weak self] in self?.pathUpdateHandler?($0) }
    }
    // /network/nwpathmonitor/cancel()
    public func cancel() { FakeNetwork.unwatch(self) }
}

// /network/nwconnection
public final class NWConnection: Sendable {
    // /network/nwconnection/state-swift.enum
    public enum State: Equatable, Sendable {
        case setup
        case waiting(NWError)
        case preparing
        case ready
        case failed(NWError)
        case cancelled
    }

    // /network/nwconnection/contentcontext, /defaultmessage, /finalmessage
    public final class ContentContext: Sendable {
        public static let defaultMessage = ContentContext()
        public static let finalMessage = ContentContext()
    }

    // /network/nwconnection/sendcompletion
    public enum SendCompletion: Sendable {
        @preconcurrency case contentProcessed(@Sendable (NWError?) -> Void)
        case idempotent
    }

    package let fake: FakeConnection

    // /network/nwconnection/init(to:using:)
    public init(to: NWEndpoint, using: NWParameters) { fake = FakeConnection(to, using) }

    // /network/nwconnection/stateupdatehandler, /viabilityupdatehandler
    @preconcurrency public var stateUpdateHandler: (@Sendable (State) -> Void)? {
        get { fake.stateHandler }
        set { fake.stateHandler = newValue }
    }
    @preconcurrency public var viabilityUpdateHandler: (@Sendable (Bool) -> Void)? {
        get { fake.viabilityHandler }
        set { fake.viabilityHandler = newValue }
    }

    // /network/nwconnection/currentpath
    public var currentPath: NWPath? { FakeNetwork.path }
    // /network/nwconnection/metadata(definition:)
    public func metadata(definition: NWProtocolDefinition) -> NWProtocolMetadata? { fake.metadata }
    // /network/nwconnection/start(queue:), /cancel(), /forcecancel()
    public func start(queue: DispatchQueue) { fake.start(queue) }
    public func cancel() { fake.cancel() }
    public func forceCancel() { fake.cancel() }

    // /network/nwconnection/receive(minimumincompletelength:maximumlength:completion:)
    @preconcurrency public func receive(
        minimumIncompleteLength: Int, maximumLength: Int,
        completion:
            @escaping @Sendable (
                _ content: Data?, _ contentContext: NWConnection.ContentContext?, _ isComplete: Bool, _ error: NWError?
            ) -> Void
    ) {
        fake.receive(minimumIncompleteLength, maximumLength) { data, isComplete, error in
            completion(data, isComplete ? .finalMessage : .defaultMessage, isComplete, error)
        }
    }

    // /network/nwconnection/send(content:contentcontext:iscomplete:completion:)-5ecuz
    @preconcurrency public func send(
        content: Data?, contentContext: NWConnection.ContentContext = .defaultMessage, isComplete: Bool = true,
        completion: NWConnection.SendCompletion
    ) {
        let isFinal = contentContext === ContentContext.finalMessage && isComplete
        fake.send(content, isFinal: isFinal) { if case .contentProcessed(let body) = completion { body($0) } }
    }
}
