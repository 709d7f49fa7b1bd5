/// Sees what a link exchanges with its peer, in the clear and in whole frames: for inspectors.
///
/// Called outside the link's lock, in the order of the bytes of each direction; `sent` also on the threads of callers.
/// What is seen as sent was taken out of the outbox; whether it arrived nobody knows.
package protocol LinkTap: AnyObject, Sendable {
    func sent(_ bytes: RawSpan)
    /// Called before anybody hears of what the bytes led to.
    func received(_ bytes: RawSpan)
}
