/// What the vectors' files name of Swift Testing, which there is not in Embedded Swift.
public protocol CustomTestStringConvertible {
    var testDescription: String { get }
}
