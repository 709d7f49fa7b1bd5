// The standard library's own `span` and `mutableSpan` of an array need macOS 26 or iOS 26. These have the same names and
// take precedence over them in every file that imports MessagingWire, and they work on the systems that the package supports. Once
// these are macOS 26 and iOS 26, delete this file and the setting `Lifetimes` in Package.swift.
//
// Safe: the elements of an array of Swift are in one piece of memory, which the array keeps for as long as it is borrowed
// and is alone in referring to while it is changed. The lifetime of each span is that of the borrow or of the change. No
// array here comes from Objective-C, whose elements would have to be copied first.

extension Array {
    /// The elements, for as long as the array is borrowed.
    @inlinable
    package var span: Span<Element> {
        @inline(__always) @_lifetime(borrow self)
        get {
            let elements = unsafe withUnsafeBufferPointer { unsafe $0 }
            return unsafe _overrideLifetime(Span(_unsafeElements: elements), borrowing: self)
        }
    }

    /// The elements to be changed, for as long as the array is not used otherwise.
    @inlinable
    package var mutableSpan: MutableSpan<Element> {
        @inline(__always) @_lifetime(&self)
        mutating get {
            let elements = unsafe withUnsafeMutableBufferPointer { unsafe $0 }
            return unsafe _overrideLifetime(MutableSpan(_unsafeElements: elements), mutating: &self)
        }
    }
}
