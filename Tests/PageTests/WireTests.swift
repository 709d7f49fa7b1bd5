import MessagingDeviceSupport
import TestSupport
import Testing

extension BrowserTests {
    /// The two wire clients of the pages, without a broker.
    struct MessagingWireTests {
        /// A reader that has read CONNECTED.
        private static let stompReader = "Object.assign(new Stomp.Reader(), { version: '1.2' })"

        /// Feeds the bytes that `source` gives whole, byte by byte and in two halves; the three results in JSON.
        private func readings(_ reader: String, _ method: String, of source: String, in tab: BrowserTab) async throws
            -> String
        {
            try await tab.evaluate(
                """
                (() => {
                    const bytes = \(source);
                    const read = (...chunks) => {
                        const reader = \(reader);
                        return JSON.stringify(chunks.flatMap((chunk) => [...reader.\(method)(chunk)].map((item) =>
                            item.rest ? { ...item, rest: [...item.rest] } : item)));
                    };
                    const half = bytes.length >> 1;
                    const results = new Set([read(bytes), read(...[...bytes].map((byte) => Uint8Array.of(byte))),
                        read(bytes.slice(0, half), bytes.slice(half))]);
                    return [...results].join(' / ');
                })()
                """)
        }

        @Test func `STOMP frames are read alike whole, in halves and byte by byte`() async throws {
            let page = try await Headquarters.open(.locations, "")
            let source = #"""
                new TextEncoder().encode('\n\r\nMESSAGE\r\nx:a\\c\\n\\\\b\r\nx:second\r\n\r\né\0\n' +
                    'RECEIPT\nreceipt-id:1\ncontent-length:3\n\na\0b\0\n\nERROR\n\n\0')
                """#
            #expect(
                try await readings(Self.stompReader, "frames", of: source, in: page.tab)
                    == #"[{"command":"MESSAGE","headers":{"x":"a:\n\\b"},"body":"é"},"#
                    + #"{"command":"RECEIPT","headers":{"receipt-id":"1","content-length":"3"},"body":"a\u0000b"},"#
                    + #"{"command":"ERROR","headers":{},"body":""}]"#)
            try await page.close()
        }

        @Test(arguments: [
            #"'MESSAGE\nx:\\t\n\n\0'"#, #"'MESSAGE\nx\n\n\0'"#, #"'MESSAGE\ncontent-length:-1\n\n\0'"#,
            #"'MESSAGE\ncontent-length:1\n\nab\0'"#, #"'x'.repeat(2 << 20)"#,
        ])
        func `what is no STOMP is refused`(text: String) async throws {
            let page = try await Headquarters.open(.locations, "")
            let outcome = try await page.tab.evaluate(
                """
                (() => { try { [...\(Self.stompReader).frames(new TextEncoder().encode(\(text)))]; return 'taken'; }
                catch (error) { return 'refused'; } })()
                """)
            #expect(outcome == "refused")
            try await page.close()
        }

        @Test(arguments: [#"DOMAIN\user"#, #"DOMAIN\new"#])
        func `an ERROR before CONNECTED is taken as it stands, and refuses the login`(user: String) async throws {
            let page = try await Headquarters.open(.locations, "")
            let outcome = try await page.tab.evaluate(
                #"""
                (() => {
                    const { WebSocket } = window;
                    let socket, outcome;
                    window.WebSocket = class { constructor() { socket = this; } send() {} close() {} };
                    try {
                        new Stomp.Client({ url: 'ws://x', onClosed: (details) => { outcome = details; } });
                        socket.onopen();
                        socket.onmessage({ data: 'ERROR\nmessage:access refused for ' + \#(BrowserTab.quoted(user)) + '\n\n\0' });
                    } finally {
                        window.WebSocket = WebSocket;
                    }
                    return `${outcome.refused} ${outcome.reason}`;
                })()
                """#)
            #expect(outcome == "true access refused for \(user)")
            try await page.close()
        }

        @Test func `a message that comes after disconnecting is not passed on`() async throws {
            let page = try await Headquarters.open(.locations, "")
            let outcome = try await page.tab.evaluate(
                #"""
                (() => {
                    const { WebSocket } = window;
                    let socket;
                    const passed = [];
                    window.WebSocket = class {
                        bufferedAmount = 0;
                        constructor() { socket = this; }
                        send() {}
                        close() {}
                    };
                    try {
                        const client = new Stomp.Client({ url: 'ws://x', onConnected() {}, onClosed() {} });
                        socket.onopen();
                        socket.onmessage({ data: 'CONNECTED\nversion:1.2\n\n\0' });
                        const { id, receipt } = client.subscribe('/topic/x', {}, ({ body }) => passed.push(body));
                        receipt.catch(() => {});
                        const deliver = (body) => socket.onmessage({ data: `MESSAGE\nsubscription:${id}\n\n${body}\0` });
                        deliver('before');
                        client.disconnect();
                        deliver('after');
                    } finally {
                        window.WebSocket = WebSocket;
                    }
                    return passed.join(' ');
                })()
                """#)
            #expect(outcome == "before")
            try await page.close()
        }

        /// Feeds the bytes that `source` gives whole, in pieces of 64 KiB, and cut inside of the head; the distinct results.
        private func readingsOfLarge(_ reader: String, _ method: String, of source: String, in tab: BrowserTab)
            async throws -> String
        {
            try await tab.evaluate(
                """
                (() => {
                    const bytes = \(source);
                    const read = (size, first) => {
                        const reader = \(reader);
                        const items = [];
                        for (let at = 0, end = first; at < bytes.length; at = end, end += size) {
                            for (const item of reader.\(method)(bytes.slice(at, end))) {
                                items.push(item.rest ? `${item.type} ${item.rest.length} ${item.isCut === true}`
                                    : `${item.command} ${item.headers.n ?? ''} ${item.body?.length ?? 'cut'}`);
                            }
                        }
                        return items.join(', ');
                    };
                    const results = new Set([read(bytes.length, bytes.length), read(65536, 65536), read(65536, 3),
                        read(1 << 20, 11)]);
                    return [...results].join(' / ');
                })()
                """)
        }

        @Test func `an MQTT message that is too large is passed without its payload, the next one whole`() async throws
        {
            let page = try await Headquarters.open(.motions, "")
            let source = """
                (() => {
                    const large = Mqtt.encode(3, 2, [0, 3, 97, 47, 98, 0, 7]);
                    const size = 7 + 1500000;
                    const length = [0, 7, 14].map((shift) => ((size >> shift) & 127) | (size >> (shift + 7) ? 128 : 0));
                    const bytes = new Uint8Array(4 + size + 6);
                    bytes.set([large[0], ...length]);
                    bytes.set(large.slice(2), 4);
                    bytes.set([0x30, 4, 0, 1, 99, 9], 4 + size);
                    return bytes;
                })()
                """
            #expect(
                try await readingsOfLarge("new Mqtt.Reader()", "packets", of: source, in: page.tab)
                    == "3 7 true, 3 4 false")
            let other = "Uint8Array.of(0x90, 0xff, 0xff, 0xff, 1, 0)"
            #expect(
                try await page.tab.evaluate(
                    "(() => { try { return [...new Mqtt.Reader().packets(\(other))].length; } catch { return 'refused'; } })()"
                ) == "refused")
            try await page.close()
        }

        @Test(arguments: ["content-length:1500000\\n", ""])
        func `a STOMP message that is too large is passed without its body, the next one whole`(length: String)
            async throws
        {
            let page = try await Headquarters.open(.locations, "")
            let source = """
                new TextEncoder().encode('MESSAGE\\nn:1\\n\(length)\\n' + 'x'.repeat(1500000) + '\\0MESSAGE\\nn:2\\n\\nabc\\0')
                """
            #expect(
                try await readingsOfLarge(Self.stompReader, "frames", of: source, in: page.tab)
                    == "MESSAGE 1 cut, MESSAGE 2 3")
            let other = "new TextEncoder().encode('ERROR\\n\(length)\\n' + 'x'.repeat(1500000) + '\\0')"
            #expect(
                try await page.tab.evaluate(
                    """
                    (() => { try { return [...\(Self.stompReader).frames(\(other))].length; }
                    catch { return 'refused'; } })()
                    """) == "refused")
            try await page.close()
        }

        @Test func `STOMP headers are escaped in the manner of their version`() async throws {
            let page = try await Headquarters.open(.locations, "")
            let tab = page.tab
            let frame = #"Stomp.encode('SEND', { 'a:b': 'c\\d\r\ne' }, 'x', VERSION).replaceAll('\0', '^@')"#
            for (version, expected) in [
                ("1.2", #"a\cb:c\\d\r\ne"#), ("1.1", "a\\cb:c\\\\d\r\\ne"), ("1.0", #"a:b:c\d  e"#),
            ] {
                let text = try await tab.evaluate(frame.replacing("VERSION", with: "'\(version)'"))
                #expect(text == "SEND\n\(expected)\n\nx^@")
            }
            #expect(
                try await tab.evaluate(#"JSON.stringify(Stomp.encode('SEND', {}, 'é\0'))"#).contains("content-length:3")
            )
            try await page.close()
        }

        @Test func `MQTT packets are read alike whole, in halves and byte by byte`() async throws {
            let page = try await Headquarters.open(.motions, "")
            let source = "Uint8Array.of(0x20, 2, 0, 0, 0xd0, 0, 0x32, 0x83, 0x00, 1, 2, 3)"
            #expect(
                try await readings("new Mqtt.Reader()", "packets", of: source, in: page.tab)
                    == #"[{"type":2,"flags":0,"rest":[0,0]},{"type":13,"flags":0,"rest":[]},"#
                    + #"{"type":3,"flags":2,"rest":[1,2,3]}]"#)
            let long =
                "((packet) => [packet.length, ...packet.slice(0, 5)])(Mqtt.encode(3, 0, new Array(200000).fill(7)))"
            #expect(try await page.tab.evaluate(long) == "200004,48,192,154,12,7")
            try await page.close()
        }
    }
}
