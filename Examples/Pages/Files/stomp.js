// STOMP 1.0, 1.1 and 1.2 over WebSocket: what a page needs that subscribes and sends.
// https://stomp.github.io/stomp-specification-1.2.html
//
// A frame is text up to the blank line, then any bytes up to a NUL:
//
//     SEND                                    command
//     destination:/queue/device.7.text        headers: name, colon, value; the first of a name counts
//     receipt:text-1
//                                             a blank line
//     Hello^@                                 body; its end is the NUL, or told by `content-length`
//
// A lone line feed between frames is a heart-beat. The whole conversation of this page:
//
//     >>> CONNECT     accept-version, host, heart-beat, login, passcode
//     <<< CONNECTED   version, heart-beat                   or ERROR, and the broker closes
//     >>> SUBSCRIBE   id, destination, selector, receipt
//     <<< RECEIPT     receipt-id
//     <<< MESSAGE     subscription, destination, message-id, body
//     >>> SEND        destination, persistent, receipt, body
//     <<< RECEIPT     receipt-id
//     >>> DISCONNECT  receipt
//     <<< RECEIPT     receipt-id
'use strict';

const Stomp = (() => {
  const LF = 10;
  const CR = 13;
  const LARGEST_FRAME = 1 << 20;
  const TOO_LARGE = `a frame is larger than ${LARGEST_FRAME} bytes`;
  const LARGEST_BACKLOG = 1 << 20;
  const utf8 = new TextEncoder();
  const text = new TextDecoder();

  // STOMP 1.2 "Value Encoding": these bytes would end a header or its name. CONNECT and CONNECTED are never escaped,
  // STOMP 1.1 knows no \r, and STOMP 1.0 no escape at all.
  const ESCAPES = { '\\': '\\\\', '\r': '\\r', '\n': '\\n', ':': '\\c' };
  const MEANINGS = { '\\\\': '\\', '\\r': '\r', '\\n': '\n', '\\c': ':' };

  function escape(value, version) {
    if (version === '1.0') return value.replace(/[\r\n]/g, ' ');
    return value.replace(version === '1.1' ? /[\\\n:]/g : /[\\\r\n:]/g, (character) => ESCAPES[character]);
  }

  function unescape(value, version) {
    if (version === '1.0' || !value.includes('\\')) return value;
    return value.replace(/\\[\s\S]?/g, (sequence) => {
      const meaning = MEANINGS[sequence];
      if (meaning === undefined) throw new Error(`the header escape "${sequence}" is unknown`);
      return meaning;
    });
  }

  // The text of a frame. `content-length` is written only where it must be: ActiveMQ takes a SEND with it for bytes and
  // one without it for text.
  function encode(command, headers, body = '', version = '1.2') {
    const plain = command === 'CONNECT';
    const lines = Object.entries(headers)
      .filter(([, value]) => value !== undefined && value !== '')
      .map(([name, value]) =>
        plain ? `${name}:${String(value).replace(/[\r\n]/g, ' ')}`
          : `${escape(name, version)}:${escape(String(value), version)}`);
    if (body.includes('\0')) lines.push(`content-length:${utf8.encode(body).length}`);
    return [command, ...lines, '', body].join('\n') + '\0';
  }

  // Cuts frames out of a stream of bytes. A WebSocket message mostly holds one frame, but nothing promises that.
  //
  // A MESSAGE that is too large has the body null: it is skipped, because the broker would send it again and again to a
  // page that closed the connection.
  class Reader {
    // As in CONNECTED. Until that has been read nothing is unescaped: an ERROR that refuses CONNECT is shown as it stands.
    version = '1.0';
    #rest = new Uint8Array(0);
    // The MESSAGE whose body is being skipped, and how many bytes of that are known to come; then a NUL is looked for.
    #skipped = null;
    #left = 0;

    *frames(chunk) {
      let bytes = chunk;
      if (this.#rest.length > 0) {
        bytes = new Uint8Array(this.#rest.length + chunk.length);
        bytes.set(this.#rest);
        bytes.set(chunk, this.#rest.length);
      }
      let start = 0;
      for (;;) {
        if (this.#skipped) {
          const count = Math.min(this.#left, bytes.length - start);
          this.#left -= count;
          start += count;
          const end = bytes.indexOf(0, start);
          if (this.#left > 0 || end < 0) {
            start = bytes.length;
            break;
          }
          const frame = this.#skipped;
          this.#skipped = null;
          start = end + 1;
          yield frame;
        }
        while (bytes[start] === LF || bytes[start] === CR) start += 1;
        const head = this.#endOfHead(bytes, start);
        if (head < 0) break;
        const frame = this.#head(text.decode(bytes.subarray(start, head)));
        const length = frame.headers['content-length'];
        if (length !== undefined && !/^\d{1,10}$/.test(length)) throw new Error(`content-length "${length}" is no length`);
        const end = length === undefined ? bytes.indexOf(0, head) : head + Number(length);
        if ((end < 0 ? bytes.length : end) - start > LARGEST_FRAME) {
          if (frame.command !== 'MESSAGE') throw new Error(TOO_LARGE);
          this.#skipped = { ...frame, body: null };
          this.#left = length === undefined ? 0 : Number(length);
          start = head;
          continue;
        }
        if (end < 0 || end >= bytes.length) break;
        if (bytes[end] !== 0) throw new Error('a body is longer than its content-length');
        frame.body = text.decode(bytes.subarray(head, end));
        start = end + 1;
        yield frame;
      }
      if (bytes.length - start > LARGEST_FRAME) throw new Error(TOO_LARGE);
      this.#rest = bytes.slice(start);
    }

    // Just after the blank line; lines may end with CR LF. -1 when it has not come yet.
    #endOfHead(bytes, start) {
      for (let at = bytes.indexOf(LF, start); at >= 0; at = bytes.indexOf(LF, at + 1)) {
        if (bytes[at + 1] === LF) return at + 2;
        if (bytes[at + 1] === CR && bytes[at + 2] === LF) return at + 3;
      }
      return -1;
    }

    #head(head) {
      const [command, ...lines] = head.split('\n').map((line) => line.replace(/\r$/, ''));
      const headers = Object.create(null);
      for (const line of lines) {
        if (line === '') break;
        const colon = line.indexOf(':');
        if (colon < 0) throw new Error(`a ${command} frame has a header without a colon`);
        const name = unescape(line.slice(0, colon), this.version);
        if (!(name in headers)) headers[name] = unescape(line.slice(colon + 1), this.version);
      }
      return { command, headers, body: '' };
    }
  }

  // One connection, from CONNECT to its end. It does not come back: see session.js.
  //
  // - url, login, passcode, host
  // - heartBeat: [milliseconds in which we promise to send, milliseconds in which we want to hear something]
  // - onConnected({ version, server }), called once
  // - onClosed({ reason, refused }), called once, and the last thing that happens; `refused` says that the broker did
  //   not like the credentials
  // - every(milliseconds, action): a timer that returns its own cancellation
  class Client {
    #options;
    #socket;
    #reader = new Reader();
    #subscriptions = new Map();
    #receipts = new Map();
    #number = 0;
    #connected = false;
    #closed = false;
    #stopBeating = () => {};
    #lastSent = 0;
    #lastHeard = 0;

    constructor(options) {
      this.#options = { host: '/', heartBeat: [20000, 60000], ...options };
      this.#socket = new WebSocket(options.url, ['v12.stomp', 'v11.stomp', 'v10.stomp']);
      this.#socket.binaryType = 'arraybuffer';
      this.#socket.onopen = () => this.#connect();
      this.#socket.onmessage = ({ data }) => this.#receive(data);
      this.#socket.onclose = ({ code, reason }) => this.#close(
        reason || (this.#connected ? `the connection ended (${code})` : `no STOMP broker answers at ${options.url}`));
    }

    // The promise is kept when the broker's receipt comes, with the milliseconds that it took, and broken when the
    // connection ends before.
    send(destination, body, headers = {}) {
      return this.#withReceipt('SEND', { destination, ...headers }, body);
    }

    // `onMessage` gets { headers, body }; the body of a message that is too large is null. Returns the subscription's id, and a promise of the broker's receipt.
    subscribe(destination, headers, onMessage) {
      const id = `subscription-${++this.#number}`;
      this.#subscriptions.set(id, onMessage);
      return { id, receipt: this.#withReceipt('SUBSCRIBE', { id, destination, ack: 'auto', ...headers }) };
    }

    unsubscribe(id) {
      this.#subscriptions.delete(id);
      if (this.#connected) this.#write(encode('UNSUBSCRIBE', { id }, '', this.#reader.version));
    }

    // Leaves when the broker has seen all that we sent, or after two seconds.
    disconnect() {
      // What still arrives meanwhile belongs to nobody.
      this.#subscriptions.clear();
      if (!this.#connected) return this.abort('disconnected');
      const leave = () => this.abort('disconnected');
      setTimeout(leave, 2000);
      this.#withReceipt('DISCONNECT', {}).then(leave, leave);
    }

    abort(reason) {
      this.#close(reason);
    }

    #connect() {
      const { host, login, passcode, heartBeat } = this.#options;
      this.#write(encode('CONNECT', {
        'accept-version': '1.0,1.1,1.2', host, 'heart-beat': heartBeat.join(','), login, passcode,
      }));
    }

    #write(message) {
      if (this.#socket.bufferedAmount > LARGEST_BACKLOG) return this.#close('the broker does not read what is sent');
      this.#socket.send(message);
      this.#lastSent = performance.now();
    }

    #withReceipt(command, headers, body) {
      if (!this.#connected) return Promise.reject(new Error('not connected'));
      const receipt = `${command.toLowerCase()}-${++this.#number}`;
      const start = performance.now();
      const promise = new Promise((resolve, reject) => {
        this.#receipts.set(receipt, { resolve: () => resolve(performance.now() - start), reject });
      });
      this.#write(encode(command, { ...headers, receipt }, body, this.#reader.version));
      return promise;
    }

    #receive(data) {
      this.#lastHeard = performance.now();
      const bytes = typeof data === 'string' ? utf8.encode(data) : new Uint8Array(data);
      try {
        for (const frame of this.#reader.frames(bytes)) {
          this.#handle(frame);
          if (this.#closed) return;
        }
      } catch (error) {
        this.#close(`this is not STOMP: ${error.message}`);
      }
    }

    #handle({ command, headers, body }) {
      switch (command) {
        case 'CONNECTED':
          this.#reader.version = headers.version ?? '1.0';
          this.#connected = true;
          this.#beat(headers['heart-beat']);
          return this.#options.onConnected({ version: `STOMP ${this.#reader.version}`, server: headers.server });
        case 'MESSAGE':
          return this.#subscriptions.get(headers.subscription)?.({ headers, body });
        case 'RECEIPT':
          this.#receipts.get(headers['receipt-id'])?.resolve();
          return this.#receipts.delete(headers['receipt-id']);
        case 'ERROR':
          return this.#close(this.#words(headers.message, body), !this.#connected && isAboutCredentials(headers, body));
        default:
          throw new Error(`a broker does not send ${command.slice(0, 20)}`);
      }
    }

    #words(message = '', body) {
      const first = body.trim().split('\n')[0].slice(0, 300);
      return message && first && first !== message ? `${message}: ${first}` : message || first || 'the broker sent ERROR';
    }

    // STOMP 1.2 "Heart-beating": of what one side offers and the other wants, the slower counts; a 0 means never.
    #beat(header = '0,0') {
      const [offered, wanted] = header.split(',').map(Number);
      const [ours, theirs] = this.#options.heartBeat;
      const outgoing = ours && wanted ? Math.max(ours, wanted) : Infinity;
      const incoming = theirs && offered ? Math.max(theirs, offered) : Infinity;
      if (outgoing === Infinity && incoming === Infinity) return;
      this.#stopBeating = this.#options.every(1000, () => {
        const now = performance.now();
        if (now - this.#lastSent > outgoing / 2) this.#write('\n');
        // Twice the time: the specification asks for a margin, and a late timer of ours is no fault of the broker's.
        if (now - this.#lastHeard > incoming * 2) this.#close('the broker has gone silent');
      });
    }

    #close(reason, refused = false) {
      if (this.#closed) return;
      this.#closed = true;
      this.#connected = false;
      this.#stopBeating();
      this.#socket.onopen = this.#socket.onmessage = this.#socket.onclose = null;
      this.#socket.close();
      for (const { reject } of this.#receipts.values()) reject(new Error(reason));
      this.#receipts.clear();
      this.#options.onClosed({ reason, refused });
    }
  }

  // STOMP has no code for it; these are the words of RabbitMQ, ActiveMQ and the embedded broker.
  function isAboutCredentials(headers, body) {
    return /access refused|authenti|credential|passcode|password|not authorized/i.test(`${headers.message} ${body}`);
  }

  return { Client, Reader, encode };
})();
