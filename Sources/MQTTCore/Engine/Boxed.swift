/// A value that mostly is not there, and takes the room of a reference then.
///
/// A change allocates: for what seldom changes and is seldom looked at.
struct Boxed<Value: Sendable>: Sendable {
    private indirect enum Box: Sendable {
        case value(Value)
    }

    private var box: Box?

    var value: Value? {
        get { if case .value(let value)? = box { value } else { nil } }
        set { box = newValue.map { .value($0) } }
    }
}
