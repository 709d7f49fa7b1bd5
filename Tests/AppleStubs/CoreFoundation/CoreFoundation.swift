// swift-format-ignore-file: AlwaysUseLowerCamelCase, TypeNamesShouldBeCapitalized
// The used part of Apple's CoreFoundation, as Swift sees it. https://developer.apple.com/documentation/corefoundation
//
// `.ci/check-apple` type-checks against it. With MESSAGING_FAKE_APPLE=1 it is built on Linux, with the little behaviour below.
// On Apple's systems it does not exist. The name of the page of each declaration stands beside it.

// /corefoundation/cftyperef, /cfindex, /cfoptionflags, /cfallocator, /kcfallocatordefault
public typealias CFTypeRef = AnyObject
public typealias CFIndex = Int
public typealias CFOptionFlags = UInt
public final class CFAllocator {}
public var kCFAllocatorDefault: CFAllocator! { nil }

// MARK: Data: /cfdata, /cfdatacreate(_:_:_:), /cfdatagetlength(_:), /cfdatagetbyteptr(_:)

public final class CFData {
    fileprivate let bytes: UnsafeMutableBufferPointer<UInt8>

    fileprivate init(_ bytes: UnsafeBufferPointer<UInt8>) {
        self.bytes = .allocate(capacity: max(1, bytes.count))
        count = bytes.count
        _ = self.bytes.initialize(fromContentsOf: bytes)
    }

    fileprivate let count: Int

    deinit { bytes.deallocate() }
}

public func CFDataCreate(_ allocator: CFAllocator!, _ bytes: UnsafePointer<UInt8>!, _ length: CFIndex) -> CFData! {
    CFData(UnsafeBufferPointer(start: bytes, count: length))
}

public func CFDataGetLength(_ theData: CFData!) -> CFIndex { theData.count }
public func CFDataGetBytePtr(_ theData: CFData!) -> UnsafePointer<UInt8>! { UnsafePointer(theData.bytes.baseAddress) }

// MARK: Strings: /cfstring, /cfstringcreatewithbytes(_:_:_:_:_:), /cfstringgetcstring(_:_:_:_:)

public typealias CFStringEncoding = UInt32
// /cfstringbuiltinencodings
public enum CFStringBuiltInEncodings: CFStringEncoding {
    case UTF8 = 0x0800_0100
}

public final class CFString: Sendable {
    package let text: String
    package init(_ text: String) { self.text = text }
}

#if !os(Linux)
    extension CFString: Hashable {
        public static func == (one: CFString, other: CFString) -> Bool { one.text == other.text }
        public func hash(into hasher: inout Hasher) { hasher.combine(text) }
    }
#endif

public func CFStringCreateWithBytes(
    _ alloc: CFAllocator!, _ bytes: UnsafePointer<UInt8>!, _ numBytes: CFIndex, _ encoding: CFStringEncoding,
    _ isExternalRepresentation: Bool
) -> CFString! {
    String(validating: UnsafeBufferPointer(start: bytes, count: numBytes), as: UTF8.self).map { CFString($0) }
}

public func CFStringGetCString(
    _ theString: CFString!, _ buffer: UnsafeMutablePointer<CChar>!, _ bufferSize: CFIndex, _ encoding: CFStringEncoding
) -> Bool {
    let bytes = Array(theString.text.utf8CString)
    guard bytes.count <= bufferSize else { return false }
    buffer.update(from: bytes, count: bytes.count)
    return true
}

// MARK: Collections: /cfarray, /cfmutablearray, /cfarraycallbacks, /kcftypearraycallbacks, /cfarraycreatemutable(_:_:_:),
// /cfarrayappendvalue(_:_:), /cfarraygetcount(_:), /cfarraygetvalueatindex(_:_:)

public struct CFArrayCallBacks: Sendable {}
public let kCFTypeArrayCallBacks = CFArrayCallBacks()

public class CFArray {
    fileprivate var values: [AnyObject] = []
}
public final class CFMutableArray: CFArray {}

public func CFArrayCreateMutable(
    _ allocator: CFAllocator!, _ capacity: CFIndex, _ callBacks: UnsafePointer<CFArrayCallBacks>!
) -> CFMutableArray! { CFMutableArray() }

public func CFArrayAppendValue(_ theArray: CFMutableArray!, _ value: UnsafeRawPointer!) {
    theArray.values.append(Unmanaged<AnyObject>.fromOpaque(value).takeUnretainedValue())
}

public func CFArrayGetCount(_ theArray: CFArray!) -> CFIndex { theArray.values.count }

public func CFArrayGetValueAtIndex(_ theArray: CFArray!, _ idx: CFIndex) -> UnsafeRawPointer! {
    UnsafeRawPointer(Unmanaged.passUnretained(theArray.values[idx]).toOpaque())
}

// MARK: Booleans: /cfboolean, /kcfbooleantrue

public final class CFBoolean: Sendable {
    fileprivate init() {}
}
private let yes = CFBoolean()
public var kCFBooleanTrue: CFBoolean! { yes }

// /cfdictionary, /cfmutabledictionary, /cfdictionarykeycallbacks, /cfdictionaryvaluecallbacks,
// /cfdictionarycreatemutable(_:_:_:_:), /cfdictionarysetvalue(_:_:_:), /cfdictionarygetvalue(_:_:)

public struct CFDictionaryKeyCallBacks: Sendable {}
public struct CFDictionaryValueCallBacks: Sendable {}
public let kCFTypeDictionaryKeyCallBacks = CFDictionaryKeyCallBacks()
public let kCFTypeDictionaryValueCallBacks = CFDictionaryValueCallBacks()

public class CFDictionary {
    fileprivate var values: [String: AnyObject] = [:]
}
#if !os(Linux)
    extension Dictionary {
        /// What `.ci/check-apple` writes for `as CFDictionary`, which Linux' compiler does not know.
        public var bridged: CFDictionary { CFDictionary() }
    }
#endif
public final class CFMutableDictionary: CFDictionary {}

public func CFDictionaryCreateMutable(
    _ allocator: CFAllocator!, _ capacity: CFIndex, _ keyCallBacks: UnsafePointer<CFDictionaryKeyCallBacks>!,
    _ valueCallBacks: UnsafePointer<CFDictionaryValueCallBacks>!
) -> CFMutableDictionary! { CFMutableDictionary() }

/// The fake's keys are strings.
private func text(_ key: UnsafeRawPointer) -> String { Unmanaged<CFString>.fromOpaque(key).takeUnretainedValue().text }

public func CFDictionarySetValue(
    _ theDict: CFMutableDictionary!, _ key: UnsafeRawPointer!, _ value: UnsafeRawPointer!
) {
    theDict.values[text(key)] = Unmanaged<AnyObject>.fromOpaque(value).takeUnretainedValue()
}

public func CFDictionaryGetValue(_ theDict: CFDictionary!, _ key: UnsafeRawPointer!) -> UnsafeRawPointer! {
    theDict.values[text(key)].map { UnsafeRawPointer(Unmanaged.passUnretained($0).toOpaque()) }
}

// MARK: Errors: /cferror, /cferrorgetcode(_:)

public final class CFError: Error, Sendable {
    fileprivate let code: CFIndex
    package init(code: CFIndex) { self.code = code }
}

public func CFErrorGetCode(_ err: CFError!) -> CFIndex { err.code }
