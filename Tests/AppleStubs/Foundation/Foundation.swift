// swift-format-ignore-file: AlwaysUseLowerCamelCase, TypeNamesShouldBeCapitalized
// The used part of Foundation as Apple's systems have it, for `.ci/check-apple` alone: that of Linux' toolchain exists for
// its own target only. Nothing here is ever run. https://developer.apple.com/documentation/foundation

@_exported public import CoreFoundation
@_exported public import Darwin
@_exported public import Dispatch

// MARK: Bytes: /contiguousbytes, /dataprotocol, /data

public protocol ContiguousBytes {}
public protocol DataProtocol: RandomAccessCollection where Element == UInt8 {}
extension DataProtocol {
    @discardableResult public func copyBytes<R: RangeExpression>(
        to buffer: UnsafeMutableRawBufferPointer, from range: R
    ) -> Int where R.Bound == Index { 0 }
}
public struct Data: DataProtocol, Hashable, Sendable, MutableCollection, RangeReplaceableCollection, Codable {
    public struct Base64EncodingOptions: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
    }
    public struct Base64DecodingOptions: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
    }
    public struct WritingOptions: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static let atomic = WritingOptions(rawValue: 1)
    }
    private var bytes: [UInt8] = []
    public init() {}
    public init<S: Sequence>(_ elements: S) where S.Element == UInt8 { bytes = Array(elements) }
    public init(bytes: UnsafeRawPointer, count: Int) {}
    public init(contentsOf url: URL) throws {}
    public init?(base64Encoded base64String: String, options: Base64DecodingOptions = []) {}
    public func base64EncodedString(options: Base64EncodingOptions = []) -> String { "" }
    public func write(to url: URL, options: WritingOptions = []) throws {}
    public func range(of data: Data, in range: Range<Int>? = nil) -> Range<Int>? { nil }
    public typealias Index = Int
    public typealias SubSequence = Data
    public var startIndex: Int { 0 }
    public var endIndex: Int { bytes.count }
    public subscript(position: Int) -> UInt8 {
        get { bytes[position] }
        set { bytes[position] = newValue }
    }
    public subscript(bounds: Range<Int>) -> Data {
        get { Data(bytes[bounds]) }
        set {}
    }
    public mutating func replaceSubrange<C: Collection>(_ subrange: Range<Int>, with newElements: C)
    where C.Element == UInt8 {}
}
public class InputStream {
    public init?(fileAtPath path: String) {}
    public init(data: Data) {}
}

// MARK: Errors: /localizederror, /nserror, /cocoaerror, /posixerror

public protocol LocalizedError: Error {
    var errorDescription: String? { get }
    var failureReason: String? { get }
    var recoverySuggestion: String? { get }
    var helpAnchor: String? { get }
}
extension LocalizedError {
    public var errorDescription: String? { nil }
    public var failureReason: String? { nil }
    public var recoverySuggestion: String? { nil }
    public var helpAnchor: String? { nil }
}
extension Error {
    public var localizedDescription: String { "" }
}
public struct CocoaError: Error {
    public struct Code: RawRepresentable, Hashable, Sendable {
        public var rawValue: Int
        public init(rawValue: Int) { self.rawValue = rawValue }
        public static let fileReadUnknown = Code(rawValue: 256)
    }
    public init(_ code: Code) {}
}
public struct POSIXError: Error {
    public init(_ code: POSIXErrorCode) {}
}
open class NSObject {
    public init() {}
}
public class NSError: NSObject, @unchecked Sendable {
    public var code: Int { 0 }
}
extension Error {
    /// What `.ci/check-apple` writes for `as NSError`, which needs Objective-C.
    public var bridgedError: NSError { NSError() }
}

// MARK: Dates: /date, /timezone, /iso8601dateformatter, /dateformatter, /uuid

public typealias TimeInterval = Double
public struct Date: Hashable, Comparable, Sendable, Codable {
    public init() {}
    public init(timeIntervalSince1970: TimeInterval) {}
    public init(timeIntervalSinceNow: TimeInterval) {}
    public var timeIntervalSince1970: TimeInterval { 0 }
    public var timeIntervalSinceNow: TimeInterval { 0 }
    public func timeIntervalSince(_ date: Date) -> TimeInterval { 0 }
    public func addingTimeInterval(_ interval: TimeInterval) -> Date { self }
    public struct ISO8601FormatStyle: Sendable {
        public init() {}
        public func format(_ date: Date) -> String { "" }
        public func parse(_ text: String) throws -> Date { Date() }
    }
    public static func < (lhs: Date, rhs: Date) -> Bool { false }
}
public struct TimeZone: Hashable, Sendable {
    public init?(identifier: String) {}
    public static var current: TimeZone { TimeZone(identifier: "")! }
    public func secondsFromGMT(for date: Date = Date()) -> Int { 0 }
}
open class Formatter: NSObject {}
open class ISO8601DateFormatter: Formatter {
    open func string(from date: Date) -> String { "" }
    open func date(from string: String) -> Date? { nil }
}
open class DateFormatter: Formatter {
    open var dateFormat: String! = ""
    open var timeZone: TimeZone! = TimeZone(identifier: "")
    open func string(from date: Date) -> String { "" }
}
public struct UUID: Hashable, Sendable {
    public init() {}
    public var uuidString: String { "" }
}

// MARK: Text: /characterset, and what Foundation adds to String

public struct CharacterSet: Sendable, ExpressibleByArrayLiteral {
    public init(arrayLiteral elements: Unicode.Scalar...) {}
    public static var newlines: CharacterSet { [] }
    public static var whitespaces: CharacterSet { [] }
    public static var whitespacesAndNewlines: CharacterSet { [] }
}
extension String {
    public struct Encoding: RawRepresentable, Hashable, Sendable {
        public var rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static let utf8 = Encoding(rawValue: 4)
        public static let isoLatin2 = Encoding(rawValue: 9)
        public static let windowsCP1250 = Encoding(rawValue: 15)
        public static let windowsCP1251 = Encoding(rawValue: 11)
        public static let windowsCP1252 = Encoding(rawValue: 12)
        public static let windowsCP1253 = Encoding(rawValue: 13)
        public static let windowsCP1254 = Encoding(rawValue: 14)
    }
    public struct CompareOptions: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static let regularExpression = CompareOptions(rawValue: 1)
        public static let backwards = CompareOptions(rawValue: 2)
    }
    public init(format: String, _ arguments: any CVarArg...) { self = "" }
    public init?(data: Data, encoding: Encoding) { nil }
    public init?(bytes: some Sequence<UInt8>, encoding: Encoding) { nil }
    public init(contentsOf url: URL, encoding: Encoding) throws { self = "" }
    public init(contentsOfFile path: String, encoding: Encoding) throws { self = "" }
}
public enum ComparisonResult: Int, Sendable { case orderedAscending, orderedSame, orderedDescending }
extension String: CVarArg {
    public var _cVarArgEncoding: [Int] { [] }
}
extension StringProtocol {
    public func components<T: StringProtocol>(separatedBy separator: T) -> [String] { [] }
    public func components(separatedBy separator: CharacterSet) -> [String] { [] }
    public func trimmingCharacters(in set: CharacterSet) -> String { "" }
    public func padding<T: StringProtocol>(toLength: Int, withPad: T, startingAt: Int) -> String { "" }
    public func replacingOccurrences<Target: StringProtocol, Replacement: StringProtocol>(
        of target: Target, with replacement: Replacement, options: String.CompareOptions = [],
        range: Range<Index>? = nil
    ) -> String { "" }
    public func range<T: StringProtocol>(
        of string: T, options: String.CompareOptions = [], range: Range<Index>? = nil
    ) -> Range<Index>? { nil }
    public func caseInsensitiveCompare<T: StringProtocol>(_ string: T) -> ComparisonResult { .orderedSame }
    public func data(using encoding: String.Encoding, allowLossyConversion: Bool = false) -> Data? { nil }
    public func write(to url: URL, atomically: Bool, encoding: String.Encoding) throws {}
    public func write(toFile path: String, atomically: Bool, encoding: String.Encoding) throws {}
}

// MARK: Coding: /jsonencoder, /jsondecoder, /jsonserialization, /propertylistencoder, /propertylistdecoder

open class JSONEncoder {
    public struct OutputFormatting: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static let sortedKeys = OutputFormatting(rawValue: 1)
        public static let withoutEscapingSlashes = OutputFormatting(rawValue: 2)
    }
    public enum DateEncodingStrategy: Sendable {
        case iso8601
        case custom(@Sendable (Date, any Encoder) throws -> Void)
    }
    open var outputFormatting: OutputFormatting = []
    open var dateEncodingStrategy: DateEncodingStrategy = .iso8601
    public init() {}
    open func encode<T: Encodable>(_ value: T) throws -> Data { Data() }
}
open class JSONDecoder {
    public enum DateDecodingStrategy: Sendable {
        case iso8601
        case custom(@Sendable (_ decoder: any Decoder) throws -> Date)
    }
    open var dateDecodingStrategy: DateDecodingStrategy = .iso8601
    public init() {}
    open func decode<T: Decodable>(_ type: T.Type, from data: Data) throws -> T { fatalError() }
}
open class JSONSerialization: NSObject {
    public struct ReadingOptions: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
    }
    public struct WritingOptions: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static let fragmentsAllowed = WritingOptions(rawValue: 4)
    }
    open class func jsonObject(with data: Data, options opt: ReadingOptions = []) throws -> Any { 0 }
    open class func data(withJSONObject obj: Any, options opt: WritingOptions = []) throws -> Data { Data() }
}
open class PropertyListEncoder {
    public enum PropertyListFormat: Sendable { case binary }
    open var outputFormat: PropertyListFormat = .binary
    public init() {}
    open func encode<Value: Encodable>(_ value: Value) throws -> Data { Data() }
}
open class PropertyListDecoder {
    public init() {}
    open func decode<T: Decodable>(_ type: T.Type, from data: Data) throws -> T { fatalError() }
}

// MARK: XML: /xmlparser, /xmlparserdelegate

open class XMLParser: NSObject {
    public init(data: Data) {}
    public init(stream: InputStream) {}
    open weak var delegate: (any XMLParserDelegate)?
    open var shouldProcessNamespaces = false
    open func parse() -> Bool { true }
    open func abortParsing() {}
    open var lineNumber: Int { 0 }
    open var columnNumber: Int { 0 }
    open var parserError: (any Error)? { nil }
}
public protocol XMLParserDelegate: AnyObject {}

// MARK: Files: /url, /filemanager, /filehandle, /bundle

public struct URLResourceKey: Hashable, Sendable {
    public static let isRegularFileKey = URLResourceKey()
}
public struct URLResourceValues {
    public var isRegularFile: Bool? { nil }
}
public struct URL: Hashable, Sendable {
    public init?(string: String) {}
    public init(fileURLWithPath path: String) {}
    public init(filePath path: String) {}
    public var path: String { "" }
    public func path(percentEncoded: Bool = true) -> String { "" }
    public var lastPathComponent: String { "" }
    public var pathExtension: String { "" }
    public var absoluteString: String { "" }
    public var standardized: URL { self }
    public var standardizedFileURL: URL { self }
    public enum DirectoryHint: Sendable { case isDirectory, notDirectory, checkFileSystem, inferFromPath }
    public func appending(path: String, directoryHint: DirectoryHint = .inferFromPath) -> URL { self }
    public func appendingPathComponent(_ pathComponent: String) -> URL { self }
    public func deletingLastPathComponent() -> URL { self }
    public func deletingPathExtension() -> URL { self }
    public func resolvingSymlinksInPath() -> URL { self }
    public func resourceValues(forKeys keys: Set<URLResourceKey>) throws -> URLResourceValues { URLResourceValues() }
    public static var applicationSupportDirectory: URL { URL(filePath: "/") }
}
public struct FileAttributeKey: Hashable, Sendable {
    public static let size = FileAttributeKey()
    public static let posixPermissions = FileAttributeKey()
    public static let protectionKey = FileAttributeKey()
}
public struct FileProtectionType: Hashable, Sendable {
    public static let completeUntilFirstUserAuthentication = FileProtectionType()
}
open class FileManager: NSObject, @unchecked Sendable {
    public func changeCurrentDirectoryPath(_ path: String) -> Bool { false }
    open class DirectoryEnumerator: NSObject, Sequence, IteratorProtocol {
        public func next() -> Any? { nil }
        public func nextObject() -> Any? { nil }
    }
    public struct DirectoryEnumerationOptions: OptionSet, Sendable {
        public let rawValue: UInt
        public init(rawValue: UInt) { self.rawValue = rawValue }
        public static let skipsHiddenFiles = DirectoryEnumerationOptions(rawValue: 4)
    }
    open class var `default`: FileManager { FileManager() }
    open var currentDirectoryPath: String { "" }
    open var temporaryDirectory: URL { URL(filePath: "/") }
    open func fileExists(atPath path: String) -> Bool { false }
    open func isExecutableFile(atPath path: String) -> Bool { false }
    open func contents(atPath path: String) -> Data? { nil }
    open func createFile(atPath path: String, contents: Data?, attributes: [FileAttributeKey: Any]? = nil) -> Bool {
        true
    }
    open func contentsOfDirectory(atPath path: String) throws -> [String] { [] }
    open func contentsOfDirectory(
        at url: URL, includingPropertiesForKeys keys: [URLResourceKey]?, options: DirectoryEnumerationOptions = []
    ) throws -> [URL] { [] }
    open func subpathsOfDirectory(atPath path: String) throws -> [String] { [] }
    open func enumerator(atPath path: String) -> DirectoryEnumerator? { nil }
    open func enumerator(
        at url: URL, includingPropertiesForKeys keys: [URLResourceKey]?, options: DirectoryEnumerationOptions = [],
        errorHandler: ((URL, any Error) -> Bool)? = nil
    ) -> DirectoryEnumerator? { nil }
    open func attributesOfItem(atPath path: String) throws -> [FileAttributeKey: Any] { [:] }
    open func setAttributes(_ attributes: [FileAttributeKey: Any], ofItemAtPath path: String) throws {}
    open func destinationOfSymbolicLink(atPath path: String) throws -> String { "" }
    open func createDirectory(
        at url: URL, withIntermediateDirectories: Bool, attributes: [FileAttributeKey: Any]? = nil
    ) throws {}
    open func createDirectory(
        atPath path: String, withIntermediateDirectories: Bool, attributes: [FileAttributeKey: Any]? = nil
    ) throws {}
    open func removeItem(at url: URL) throws {}
    open func removeItem(atPath path: String) throws {}
    open func copyItem(atPath srcPath: String, toPath dstPath: String) throws {}
    open func copyItem(at srcURL: URL, to dstURL: URL) throws {}
    open func moveItem(atPath srcPath: String, toPath dstPath: String) throws {}
}
open class FileHandle: NSObject, @unchecked Sendable {
    public init?(forReadingAtPath path: String) {}
    public init?(forWritingAtPath path: String) {}
    override private init() {}
    open class var standardError: FileHandle { FileHandle() }
    open class var standardOutput: FileHandle { FileHandle() }
    open class var standardInput: FileHandle { FileHandle() }
    open class var nullDevice: FileHandle { FileHandle() }
    open var fileDescriptor: Int32 { 0 }
    open func write(_ data: Data) {}
    open func write<T: DataProtocol>(contentsOf data: T) throws {}
    open func readDataToEndOfFile() -> Data { Data() }
    open func readToEnd() throws -> Data? { nil }
    open func read(upToCount count: Int) throws -> Data? { nil }
    open var availableData: Data { Data() }
    @discardableResult open func seekToEnd() throws -> UInt64 { 0 }
    open func seek(toOffset offset: UInt64) throws {}
    open func close() throws {}
}
open class Pipe: NSObject, @unchecked Sendable {
    open var fileHandleForReading: FileHandle { .nullDevice }
    open var fileHandleForWriting: FileHandle { .nullDevice }
}
open class Bundle: NSObject, @unchecked Sendable {
    open class var main: Bundle { Bundle() }
    open class var allBundles: [Bundle] { [] }
    open var bundlePath: String { "" }
    open var bundleURL: URL { URL(filePath: "/") }
}

// MARK: Processes and threads: /processinfo, /process (macOS alone), /thread, /runloop, /timer, /nslock

open class ProcessInfo: NSObject, @unchecked Sendable {
    open class var processInfo: ProcessInfo { ProcessInfo() }
    open var environment: [String: String] { [:] }
    open var arguments: [String] { [] }
    open var activeProcessorCount: Int { 1 }
    open var processIdentifier: Int32 { 1 }
    open var operatingSystemVersionString: String { "" }
}
#if os(macOS)
    open class Process: NSObject, @unchecked Sendable {
        public enum TerminationReason: Int, Sendable { case exit, uncaughtSignal }
        open var executableURL: URL?
        open var arguments: [String]?
        open var environment: [String: String]?
        open var currentDirectoryURL: URL?
        open var standardInput: Any?
        open var standardOutput: Any?
        open var standardError: Any?
        open var terminationHandler: (@Sendable (Process) -> Void)?
        open var processIdentifier: Int32 { 1 }
        open var isRunning: Bool { false }
        open var terminationStatus: Int32 { 0 }
        open var terminationReason: TerminationReason { .exit }
        open func run() throws {}
        open func terminate() {}
        open func interrupt() {}
        open func waitUntilExit() {}
    }
#endif
open class Thread: NSObject, @unchecked Sendable {
    override public init() {}
    public convenience init(block: @escaping @Sendable () -> Void) { self.init() }
    open class func detachNewThread(_ block: @escaping @Sendable () -> Void) {}
    open class func sleep(forTimeInterval ti: TimeInterval) {}
    open var name: String?
    open var stackSize = 0
    open func start() {}
}
open class NSLock: NSObject, @unchecked Sendable {
    open func lock() {}
    open func unlock() {}
    open func withLock<R>(_ body: () throws -> R) rethrows -> R { try body() }
}
open class Timer: NSObject {
    public convenience init(timeInterval: TimeInterval, repeats: Bool, block: @escaping @Sendable (Timer) -> Void) {
        self.init()
    }
}
open class RunLoop: NSObject {
    public struct Mode: Hashable, Sendable {
        public static let `default` = Mode()
    }
    open class var main: RunLoop { RunLoop() }
    open func add(_ timer: Timer, forMode mode: Mode) {}
    open func run() {}
}
