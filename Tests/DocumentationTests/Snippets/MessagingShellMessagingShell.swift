// The code of Sources/MessagingShell/MessagingShell.docc/MessagingShell.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT
import STOMP

func printStates(of client: some MessagingClient) async {
    for await state in client.states { print(client, state) }
}

func firstPayload(of messages: some MessageSubscription) async throws -> [UInt8]? {
    for try await message in messages { return Array(message.content) }
    return nil
}
