// The code of Sources/MessagingShell/MessagingShell.docc/Phones.md, written by `WRITE_SNIPPETS=1 swift test --filter SnippetTests`.
import MQTT
import Observation

@MainActor @Observable
final class DoorModel {
    private(set) var status = "offline"
    private(set) var doors: [String: String] = [:]
    private(set) var problem: String?
    private let client: MQTTClient

    init(client: MQTTClient) { self.client = client }

    /// Runs until the task that calls it is cancelled.
    func run() async {
        async let states: Void = watchStates()
        async let messages: Void = watchDoors()
        _ = await (states, messages)
    }

    /// The app is on the screen.
    func becameActive() { client.resume() }

    /// The app has left the screen: sends what waits, and disconnects gracefully.
    func enteredBackground() async { await client.suspend() }

    private func watchStates() async {
        for await state in client.states {
            status =
                switch state {
                case .connected: "online"
                case .connecting: "connecting"
                case .waiting(_, _, let failure): "offline: \(failure.message)"
                case .waitingForNetwork: "no network"
                case .suspended, .disconnecting, .disconnected: "offline"
                }
        }
    }

    private func watchDoors() async {
        problem = nil
        await client.start()
        do {
            for try await door in try await client.subscribe(to: "house/+/door") {
                doors[door.captures[0]] = door.text
            }
        } catch {
            // A screen that closes cancels the task.
            if error.code != .cancelled { problem = error.message }
        }
    }
}

extension DoorModel {
    /// The person has entered other credentials.
    func tryAgain() async {
        await watchDoors()
    }
}

extension DoorModel {
    /// Returns at once. Without a connection the command waits for it.
    func open(_ door: String) {
        Task {
            do throws(MQTTError) {
                try await client.publish("open", to: "house/\(door)/door/command", qos: .atLeastOnce)
            } catch {
                problem = error.message
            }
        }
    }
}

@MainActor @Observable
final class ChatModel {
    struct Line: Identifiable {
        enum State: Equatable {
            case sending, waitingForServer, sent
            case notSent(String)
        }

        let id: Int
        let text: String
        var state = State.sending
    }

    private(set) var lines: [Line] = []
    private let client: MQTTClient

    init(client: MQTTClient) { self.client = client }

    /// Returns when the server has the message, or the message cannot be delivered.
    func send(_ text: String) async {
        lines.append(Line(id: lines.count, text: text))
        await deliver(lines.count - 1)
    }

    /// Sends every line again that was not sent, in their order; the person has tapped "try again".
    func tryAgain() async {
        await client.start()
        for line in lines {
            if case .notSent = line.state { await deliver(line.id) }
        }
    }

    private func deliver(_ id: Int) async {
        lines[id].state = .sending
        do {
            let confirmation = try await client.publishForConfirmation(
                MQTTOutgoingMessage(lines[id].text, to: "chat/lobby"))
            lines[id].state = .waitingForServer
            try await confirmation.confirmed()
            lines[id].state = .sent
        } catch {
            lines[id].state = .notSent(error.message)
        }
    }
}

#if canImport(SwiftUI)
    import SwiftUI

    struct DoorApp: App {
        @State private var model = DoorModel(client: makeDoorClient())
        @Environment(\.scenePhase) private var phase

        var body: some Scene {
            WindowGroup {
                DoorList(model: model)
            }
            .onChange(of: phase) {
                if phase == .active { model.becameActive() }
                if phase == .background { finishInBackground { await model.enteredBackground() } }
            }
        }
    }

    struct DoorList: View {
        let model: DoorModel

        var body: some View {
            VStack {
                Text(model.status)
                ForEach(model.doors.keys.sorted(), id: \.self) { name in
                    Text("\(name): \(model.doors[name] ?? "")")
                }
            }
            .task { await model.run() }
        }
    }
#endif

#if canImport(SwiftUI)

    #if canImport(UIKit)
        import UIKit

        @MainActor
        final class BackgroundTime {
            private var task = UIBackgroundTaskIdentifier.invalid

            func begin() {
                task = UIApplication.shared.beginBackgroundTask(withName: "last messages") { [weak self] in
                    self?.end()
                }
            }

            func end() {
                UIApplication.shared.endBackgroundTask(task)
                task = .invalid
            }
        }

        @MainActor
        func finishInBackground(_ work: @escaping @MainActor () async -> Void) {
            let time = BackgroundTime()
            time.begin()
            Task {
                await work()
                time.end()
            }
        }
    #else
        @MainActor
        func finishInBackground(_ work: @escaping @MainActor () async -> Void) {
            Task { await work() }
        }
    #endif
#endif

#if canImport(SwiftUI)
    import Foundation
    import MQTT

    func makeDoorClient() -> MQTTClient {
        let folder = URL.applicationSupportDirectory.appending(path: "doors", directoryHint: .isDirectory)
        try? FileManager.default.createDirectory(
            at: folder, withIntermediateDirectories: true,
            attributes: [.protectionKey: FileProtectionType.completeUntilFirstUserAuthentication])
        var configuration = MQTTConfiguration(clientID: "doors-1")
        configuration.version = .v5_0
        configuration.cleanStart = false
        configuration.sessionExpiry = .seconds(86_400)
        configuration.sessionStore = FileSessionStore(directory: folder.path)
        configuration.credentialsProvider = { _ in
            keychainPassword(of: "ann").map { Credentials(userName: "ann", password: $0) }
        }
        return MQTTClient("mqtts://broker.example.com", configuration: configuration)
    }
#endif

#if canImport(SwiftUI)
    import Foundation
    import Security

    func keychainPassword(of account: String) -> String? {
        let query: [CFString: Any] = [
            kSecClass: kSecClassGenericPassword, kSecAttrService: "broker.example.com", kSecAttrAccount: account,
            kSecReturnData: true,
        ]
        var item: CFTypeRef?
        guard SecItemCopyMatching(query as CFDictionary, &item) == errSecSuccess, let data = item as? Data
        else { return nil }
        return String(decoding: data, as: UTF8.self)
    }
#endif

func makeCompanyConfiguration(authority: String, client: String, passphrase: String) -> MQTTConfiguration {
    var configuration = MQTTConfiguration(clientID: "doors-1")
    configuration.tls.trust = .authorities([.file(authority)])
    configuration.tls.identity = .pkcs12(.file(client), passphrase: passphrase)
    // Default: 1.2. Newer versions are always offered.
    configuration.tls.minimumVersion = .tls13
    return configuration
}
