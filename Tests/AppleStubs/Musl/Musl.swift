// swift-format-ignore-file: AlwaysUseLowerCamelCase, TypeNamesShouldBeCapitalized
//
// What the overlay of the static Linux SDK adds to the C module Musl; only `.ci/check-apple` compiles it, against
// musl's own headers.
// https://github.com/swiftlang/swift/tree/main/stdlib/public/Platform: Platform.swift, Musl.swift.gyb

@_exported public import Musl

public var errno: Int32 {
    get { unsafe __errno_location().pointee }
    set { unsafe __errno_location().pointee = newValue }
}

// Calls with a variable number of arguments, which Swift does not import.
public func fcntl(_ fd: Int32, _ cmd: Int32) -> Int32 { 0 }
public func fcntl(_ fd: Int32, _ cmd: Int32, _ value: Int32) -> Int32 { 0 }
public func open(_ path: UnsafePointer<CChar>, _ oflag: Int32) -> Int32 { 0 }
public func open(_ path: UnsafePointer<CChar>, _ oflag: Int32, _ mode: mode_t) -> Int32 { 0 }
public func openat(_ fd: Int32, _ path: UnsafePointer<CChar>, _ oflag: Int32) -> Int32 { 0 }
public func openat(_ fd: Int32, _ path: UnsafePointer<CChar>, _ oflag: Int32, _ mode: mode_t) -> Int32 { 0 }
public func ioctl(_ fd: Int32, _ request: UInt, _ value: UnsafeMutableRawPointer) -> Int32 { 0 }

// Macros that Swift does not import.
public var S_IFMT: mode_t { 0o170000 }
public var S_IFREG: mode_t { 0o100000 }
public var S_IFDIR: mode_t { 0o040000 }
public var S_IFLNK: mode_t { 0o120000 }
public var S_IFSOCK: mode_t { 0o140000 }
