package import Transport

extension MemoryStream {
    /// Waits until the other end takes no more of what it was sent.
    package func settle() async throws {
        var last = -1
        while last != progress.acknowledged {
            last = progress.acknowledged
            try await Task.sleep(for: .milliseconds(20))
        }
    }
}
