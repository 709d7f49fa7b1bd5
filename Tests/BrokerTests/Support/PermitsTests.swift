import Testing

@testable import TestSupport

/// What keeps tests that wait for a broker from holding up all others.
struct PermitsTests {
    @Test func `a permit that is lent goes to another task, and comes back`() async throws {
        let permits = Permits(1)
        try await permits.hold {
            let other: Task<String, any Error> = Task { await permits.hold { "other" } }
            let holder = try await permits.lend {
                try await other.value(within: .patience, "a task that waits for a permit")
            }
            #expect(holder == "other")
        }
        let next: Task<String, any Error> = Task { await permits.hold { "next" } }
        #expect(try await next.value(within: .patience, "a task after the owner") == "next")
    }
}
