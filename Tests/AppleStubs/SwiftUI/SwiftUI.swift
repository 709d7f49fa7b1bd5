// The used part of SwiftUI, for `.ci/check-apple` alone. https://developer.apple.com/documentation/swiftui

import Foundation

// /swiftui/scenephase
public enum ScenePhase: Comparable, Hashable, Sendable { case background, inactive, active }

// /swiftui/environmentvalues, /environmentvalues/scenephase
public struct EnvironmentValues: Sendable {
    public var scenePhase: ScenePhase { .active }
}

// /swiftui/environment
@propertyWrapper public struct Environment<Value> {
    public init(_ keyPath: KeyPath<EnvironmentValues, Value>) { wrappedValue = EnvironmentValues()[keyPath: keyPath] }
    public let wrappedValue: Value
}

// /swiftui/state
@propertyWrapper public struct State<Value> {
    public init(wrappedValue value: Value) { wrappedValue = value }
    public var wrappedValue: Value
}

// /swiftui/view, /viewbuilder
@MainActor @preconcurrency public protocol View {
    associatedtype Body: View
    @ViewBuilder @MainActor @preconcurrency var body: Body { get }
}
extension Never: View {
    public var body: Never { fatalError() }
}
@resultBuilder public struct ViewBuilder {
    public static func buildBlock<each Content: View>(_ content: repeat each Content) -> TupleView<
        (repeat each Content)
    > {
        TupleView()
    }
    public static func buildBlock<Content: View>(_ content: Content) -> Content { content }
}
public struct TupleView<Content>: View {
    public var body: Never { fatalError() }
}

// /swiftui/text, /vstack, /foreach, /list
public struct Text: View {
    public init(_ content: String) {}
    public var body: Never { fatalError() }
}
public struct VStack<Content: View>: View {
    public init(@ViewBuilder content: () -> Content) {}
    public var body: Never { fatalError() }
}
public struct ForEach<Data: RandomAccessCollection, ID: Hashable, Content: View>: View {
    public init(
        _ data: Data, id: KeyPath<Data.Element, ID>, @ViewBuilder content: @escaping (Data.Element) -> Content
    ) {}
    public var body: Never { fatalError() }
}
public struct List<SelectionValue: Hashable, Content: View>: View {
    public init<Data: RandomAccessCollection, ID: Hashable, RowContent: View>(
        _ data: Data, id: KeyPath<Data.Element, ID>, @ViewBuilder rowContent: @escaping (Data.Element) -> RowContent
    ) where Content == ForEach<Data, ID, RowContent>, SelectionValue == Never {}
    public var body: Never { fatalError() }
}

extension View {
    // /swiftui/view/task(priority:_:)
    public func task(
        priority: TaskPriority = .userInitiated,
        @_inheritActorContext _ action: sending @escaping @isolated(any) () async -> Void
    ) -> some View { self }
}

// /swiftui/app, /scene, /scenebuilder, /windowgroup
@MainActor @preconcurrency public protocol App {
    associatedtype Body: Scene
    @SceneBuilder @MainActor @preconcurrency var body: Body { get }
    @MainActor @preconcurrency init()
}
@MainActor @preconcurrency public protocol Scene {
    associatedtype Body: Scene
    @SceneBuilder @MainActor @preconcurrency var body: Body { get }
}
extension Never: Scene {}
@resultBuilder public struct SceneBuilder {
    public static func buildBlock<Content: Scene>(_ content: Content) -> Content { content }
}
public struct WindowGroup<Content: View>: Scene {
    public init(@ViewBuilder content: () -> Content) {}
    public var body: Never { fatalError() }
}
extension Scene {
    // /swiftui/scene/onchange(of:initial:_:)
    public func onChange<V: Equatable>(of value: V, initial: Bool = false, _ action: @escaping () -> Void) -> some Scene
    {
        self
    }
}
