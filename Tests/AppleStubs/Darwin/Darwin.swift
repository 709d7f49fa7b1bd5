// swift-format-ignore-file: AlwaysUseLowerCamelCase, TypeNamesShouldBeCapitalized
//
// What Apple's overlay adds to the C module Darwin; only `.ci/check-apple` compiles it, against Darwin's own headers.
// https://github.com/swiftlang/swift/tree/main/stdlib/public/Platform: Platform.swift, Misc.swift

@_exported public import Darwin
// Some of the headers are read as a part of the standard library's own shims first.
@_exported public import SwiftOverlayShims

public var errno: Int32 {
    get { unsafe __error().pointee }
    set { unsafe __error().pointee = newValue }
}

// Calls with a variable number of arguments, which Swift does not import.
public func fcntl(_ fd: Int32, _ cmd: Int32) -> Int32 { 0 }
public func fcntl(_ fd: Int32, _ cmd: Int32, _ value: Int32) -> Int32 { 0 }
public func fcntl(_ fd: Int32, _ cmd: Int32, _ ptr: UnsafeMutableRawPointer) -> Int32 { 0 }
public func open(_ path: UnsafePointer<CChar>, _ oflag: Int32) -> Int32 { 0 }
public func open(_ path: UnsafePointer<CChar>, _ oflag: Int32, _ mode: mode_t) -> Int32 { 0 }
public func openat(_ fd: Int32, _ path: UnsafePointer<CChar>, _ oflag: Int32) -> Int32 { 0 }
public func openat(_ fd: Int32, _ path: UnsafePointer<CChar>, _ oflag: Int32, _ mode: mode_t) -> Int32 { 0 }
public func ioctl(_ fd: Int32, _ request: UInt, _ value: UnsafeMutableRawPointer) -> Int32 { 0 }

// Macros that Swift does not import.
public var CLOCK_MONOTONIC: clockid_t { _CLOCK_MONOTONIC }
public var CLOCK_MONOTONIC_RAW: clockid_t { _CLOCK_MONOTONIC_RAW }
public var CLOCK_UPTIME_RAW: clockid_t { _CLOCK_UPTIME_RAW }
public var CLOCK_REALTIME: clockid_t { _CLOCK_REALTIME }
public var CLOCK_THREAD_CPUTIME_ID: clockid_t { _CLOCK_THREAD_CPUTIME_ID }
public var CLOCK_PROCESS_CPUTIME_ID: clockid_t { _CLOCK_PROCESS_CPUTIME_ID }
public var SIG_IGN: (@convention(c) (Int32) -> Void)! { nil }
public var SIG_DFL: (@convention(c) (Int32) -> Void)? { nil }
public var TIOCGWINSZ: UInt { 0x4008_7468 }
public var TIOCSWINSZ: UInt { 0x8008_7467 }
public var stdout: UnsafeMutablePointer<FILE>! { nil }
public var S_IFMT: mode_t { 0o170000 }
public var S_IFREG: mode_t { 0o100000 }
public var S_IFDIR: mode_t { 0o040000 }
public var S_IFLNK: mode_t { 0o120000 }
public var S_IFSOCK: mode_t { 0o140000 }

/// https://developer.apple.com/documentation/foundation/posixerrorcode: the used part.
public struct POSIXErrorCode: RawRepresentable, Hashable, Sendable {
    public let rawValue: Int32
    public init?(rawValue: Int32) { self.rawValue = rawValue }
    public static var EIO: POSIXErrorCode { POSIXErrorCode(rawValue: 5)! }
}
