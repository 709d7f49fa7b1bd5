// MQTT 3.1.1 over WebSocket: what a page needs that subscribes and publishes, at every quality of service.
// http://docs.oasis-open.org/mqtt/mqtt/v3.1.1/os/mqtt-v3.1.1-os.html
//
// A packet is a type with flags, the length of the rest in one to four bytes of seven bits, and the rest:
//
//     32 1b | 00 0e "/mwm/7/alert.." | 00 01 | "red"
//     │  │    │                       │       payload: all that is left
//     │  │    │                       packet identifier, at QoS 1 and 2 only
//     │  │    topic: length in two bytes, then UTF-8
//     │  remaining length (27)
//     PUBLISH (3) with its flags: DUP 8, QoS 2 and 4, RETAIN 1
//
// The whole conversation of this page, in binary WebSocket messages whose bounds mean nothing [MQTT-6.0.0-1]:
//
//     >>> CONNECT    client id, last will, user, password        <<< CONNACK   0, or why not
//     >>> SUBSCRIBE  filters with the QoS asked for              <<< SUBACK    the QoS granted, or 0x80
//     <<< PUBLISH    QoS 0
//     <<< PUBLISH    QoS 1     >>> PUBACK
//     <<< PUBLISH    QoS 2     >>> PUBREC    <<< PUBREL   >>> PUBCOMP
//     >>> PUBLISH    QoS 1     <<< PUBACK
//     >>> PINGREQ              <<< PINGRESP
//     >>> DISCONNECT           and no last will
'use strict';

const Mqtt = (() => {
  const CONNECT = 1, CONNACK = 2, PUBLISH = 3, PUBACK = 4, PUBREC = 5, PUBREL = 6, PUBCOMP = 7;
  const SUBSCRIBE = 8, SUBACK = 9, PINGREQ = 12, PINGRESP = 13, DISCONNECT = 14;
  const LARGEST_PACKET = 1 << 20;
  const LARGEST_BACKLOG = 1 << 20;
  const utf8 = new TextEncoder();
  const text = new TextDecoder();

  // Table 3.1: the return codes of CONNACK.
  const REFUSALS = [
    'accepted', 'the broker does not speak MQTT 3.1.1', 'the broker rejects the client id', 'the broker is unavailable',
    'bad user name or password', 'not authorized',
  ];

  const word = (number) => [number >> 8, number & 0xff];

  // Two bytes of length, then UTF-8 or bytes as they are.
  function field(value) {
    const bytes = typeof value === 'string' ? utf8.encode(value) : value;
    if (bytes.length > 0xffff) throw new Error('a text is longer than 65,535 bytes');
    return [...word(bytes.length), ...bytes];
  }

  function encode(type, flags, ...parts) {
    const rest = parts.flat();
    const length = [];
    let left = rest.length;
    do {
      length.push((left & 0x7f) | (left > 0x7f ? 0x80 : 0));
      left >>= 7;
    } while (left > 0);
    return Uint8Array.from([(type << 4) | flags, ...length, ...rest]);
  }

  function connect({ clientID, keepAlive, user, password, will }) {
    const flags = 0x02 // clean session
      | (will ? 0x04 | (will.qos << 3) | (will.retain ? 0x20 : 0) : 0)
      | (user ? 0x80 : 0)
      // [MQTT-3.1.2-22]: no password without a user name.
      | (user && password !== undefined ? 0x40 : 0);
    return encode(CONNECT, 0, field('MQTT'), 4, flags, word(keepAlive), field(clientID),
      will ? [...field(will.topic), ...field(will.payload)] : [],
      user ? field(user) : [], user && password !== undefined ? field(password) : []);
  }

  // Cuts packets out of a stream of bytes.
  //
  // A PUBLISH that is too large ends before its payload and has `isCut`: the payload is skipped, because the broker would
  // send a retained one again and again to a page that closed the connection.
  class Reader {
    #rest = new Uint8Array(0);
    // The PUBLISH whose payload is being skipped, and how many bytes of that are to come.
    #skipped = null;
    #left = 0;

    *packets(chunk) {
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
          if (this.#left > 0) break;
          const packet = this.#skipped;
          this.#skipped = null;
          yield packet;
        }
        let length = 0;
        let at = start + 1;
        let more = true;
        for (let shift = 0; more && at < bytes.length; shift += 7, at += 1) {
          if (shift > 21) throw new Error('a length has more than four bytes');
          length |= (bytes[at] & 0x7f) << shift;
          more = bytes[at] > 0x7f;
        }
        const [type, flags] = [bytes[start] >> 4, bytes[start] & 0x0f];
        if (length > LARGEST_PACKET && type !== PUBLISH) throw new Error(`a packet is larger than ${LARGEST_PACKET} bytes`);
        if (more) break;
        if (length > LARGEST_PACKET) {
          // The topic, and the packet identifier where there is one.
          const head = at + 2 <= bytes.length ? 2 + ((bytes[at] << 8) | bytes[at + 1]) + (flags & 6 ? 2 : 0) : Infinity;
          if (at + head > bytes.length) break;
          this.#skipped = { type, flags, rest: bytes.slice(at, at + head), isCut: true };
          this.#left = length - head;
          start = at + head;
          continue;
        }
        if (at + length > bytes.length) break;
        yield { type, flags, rest: bytes.subarray(at, at + length) };
        start = at + length;
      }
      this.#rest = bytes.slice(start);
    }
  }

  // One connection, from CONNECT to its end. It does not come back: see session.js.
  //
  // - url, clientID, user, password, keepAlive in seconds, will: { topic, payload, qos, retain }
  // - onConnected({ version }), called once
  // - onMessage({ topic, payload, qos, retain }), with the payload's bytes; null when there are too many
  // - onClosed({ reason, refused }), called once, and the last thing that happens; `refused` says that the broker did
  //   not like the credentials
  // - every(milliseconds, action): a timer that returns its own cancellation
  class Client {
    #options;
    #socket;
    #reader = new Reader();
    #identifier = 0;
    #waiting = new Map();
    #received = new Set();
    #connected = false;
    #closed = false;
    #stopPinging = () => {};
    #lastSent = 0;
    #pingedAt = null;

    constructor(options) {
      this.#options = { keepAlive: 60, ...options };
      this.#socket = new WebSocket(options.url, ['mqtt']);
      this.#socket.binaryType = 'arraybuffer';
      this.#socket.onopen = () => this.#write(connect(this.#options));
      this.#socket.onmessage = ({ data }) => this.#receive(data);
      this.#socket.onclose = ({ code, reason }) => this.#close(
        reason || (this.#connected ? `the connection ended (${code})` : `no MQTT broker answers at ${options.url}`));
    }

    // The promise is kept when the broker's PUBACK comes (at QoS 0: at once), with the milliseconds that it took, and
    // broken when the connection ends before.
    publish(topic, payload, { qos = 0, retain = false } = {}) {
      if (!this.#connected) return Promise.reject(new Error('not connected'));
      if (qos > 1) return Promise.reject(new Error('this client publishes at QoS 0 and 1'));
      const body = typeof payload === 'string' ? utf8.encode(payload) : payload;
      const flags = (qos << 1) | (retain ? 1 : 0);
      if (qos === 0) {
        this.#write(encode(PUBLISH, flags, field(topic), [...body]));
        return Promise.resolve(0);
      }
      return this.#exchange((identifier) => encode(PUBLISH, flags, field(topic), word(identifier), [...body]));
    }

    // Filters with the QoS to ask for, as { '/mwm/+/motion': 0 }. Kept when the broker has granted each of them.
    subscribe(filters) {
      if (!this.#connected) return Promise.reject(new Error('not connected'));
      const list = Object.entries(filters).flatMap(([filter, qos]) => [...field(filter), qos]);
      // [MQTT-3.8.1-1]: the flags of SUBSCRIBE are 0010.
      return this.#exchange((identifier) => encode(SUBSCRIBE, 2, word(identifier), list));
    }

    disconnect() {
      if (this.#connected) this.#write(encode(DISCONNECT, 0));
      this.abort('disconnected');
    }

    abort(reason) {
      this.#close(reason);
    }

    #write(packet) {
      if (this.#socket.bufferedAmount > LARGEST_BACKLOG) return this.#close('the broker does not read what is sent');
      this.#socket.send(packet);
      this.#lastSent = performance.now();
    }

    #exchange(packet) {
      if (this.#waiting.size >= 0xffff) return Promise.reject(new Error('65,535 packets wait for the broker'));
      do this.#identifier = (this.#identifier % 0xffff) + 1; while (this.#waiting.has(this.#identifier));
      const identifier = this.#identifier;
      const start = performance.now();
      const promise = new Promise((resolve, reject) => {
        this.#waiting.set(identifier, { resolve: () => resolve(performance.now() - start), reject });
      });
      this.#write(packet(identifier));
      return promise;
    }

    #receive(data) {
      try {
        if (typeof data === 'string') throw new Error('a text message');
        for (const packet of this.#reader.packets(new Uint8Array(data))) {
          this.#handle(packet);
          if (this.#closed) return;
        }
      } catch (error) {
        this.#close(`this is not MQTT: ${error.message}`);
      }
    }

    #handle({ type, flags, rest, isCut }) {
      const identifier = (rest[0] << 8) | rest[1];
      switch (type) {
        case CONNACK:
          return this.#accepted(rest[1]);
        case PUBLISH:
          return this.#published(flags, rest, isCut);
        case PUBREL:
          this.#received.delete(identifier);
          return this.#write(encode(PUBCOMP, 0, word(identifier)));
        case PUBACK:
          return this.#settle(identifier);
        case SUBACK:
          return this.#settle(identifier, rest.subarray(2).includes(0x80) ? 'the broker refuses a subscription' : null);
        case PINGRESP:
          this.#pingedAt = null;
          return undefined;
        default:
          throw new Error(`packet type ${type}`);
      }
    }

    #accepted(code) {
      if (code !== 0) return this.#close(REFUSALS[code] ?? `refused with code ${code}`, code === 4 || code === 5);
      this.#connected = true;
      this.#ping();
      return this.#options.onConnected({ version: 'MQTT 3.1.1' });
    }

    #published(flags, rest, isCut = false) {
      const qos = (flags >> 1) & 3;
      const length = (rest[0] << 8) | rest[1];
      let at = 2 + length;
      const message = { topic: text.decode(rest.subarray(2, at)), qos, retain: (flags & 1) === 1, payload: null };
      let isNew = true;
      if (qos > 0) {
        const identifier = (rest[at] << 8) | rest[at + 1];
        at += 2;
        // [MQTT-4.3.3-2]: at QoS 2 the identifier is remembered until PUBREL, so that a repetition is not a message.
        isNew = qos === 1 || !this.#received.has(identifier);
        if (qos === 2) this.#received.add(identifier);
        this.#write(encode(qos === 1 ? PUBACK : PUBREC, 0, word(identifier)));
      }
      if (at > rest.length) throw new Error('a PUBLISH ends too early');
      message.payload = isCut ? null : rest.subarray(at);
      if (isNew) this.#options.onMessage(message);
    }

    #settle(identifier, problem = null) {
      const exchange = this.#waiting.get(identifier);
      this.#waiting.delete(identifier);
      if (problem) exchange?.reject(new Error(problem));
      else exchange?.resolve();
    }

    // [MQTT-3.1.2-23]: something is sent within each keep alive; the broker's silence after PINGREQ ends it for us.
    #ping() {
      const keepAlive = this.#options.keepAlive * 1000;
      if (keepAlive === 0) return;
      this.#stopPinging = this.#options.every(1000, () => {
        const now = performance.now();
        if (this.#pingedAt !== null && now - this.#pingedAt > keepAlive / 2) {
          this.#close('the broker has gone silent');
        } else if (this.#pingedAt === null && now - this.#lastSent > keepAlive / 2) {
          this.#pingedAt = now;
          this.#write(encode(PINGREQ, 0));
        }
      });
    }

    #close(reason, refused = false) {
      if (this.#closed) return;
      this.#closed = true;
      this.#connected = false;
      this.#stopPinging();
      this.#socket.onopen = this.#socket.onmessage = this.#socket.onclose = null;
      this.#socket.close();
      for (const { reject } of this.#waiting.values()) reject(new Error(reason));
      this.#waiting.clear();
      this.#options.onClosed({ reason, refused });
    }
  }

  return { Client, Reader, encode };
})();
