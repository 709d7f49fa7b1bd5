import TestSupport
import Testing

/// Everything that needs a browser, one after the other: a page that waits for its turn on a busy machine looks like
/// one that hangs.
@Suite(.serialized, .requiresBrowser)
enum BrowserTests {}
