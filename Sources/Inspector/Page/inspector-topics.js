// The tree of topics: what every frame adds to its topic and to all levels above.
//
// MQTT topics have levels between slashes. STOMP leaves destinations to the broker, and brokers take dots as well as
// slashes, so both divide there. Each level keeps its separator: "/queue", "/device", ".van-1", ".text".
'use strict';

const Topics = (() => {
  // Further topics are only counted, in `overflow`.
  const MOST_NODES = 5000;
  const DEEPEST = 16;
  // Seconds that rates are kept for.
  const SECONDS = 120;

  class Node {
    children = new Map();
    messages = 0;
    bytes = 0;
    // Of the last message at this very topic: { payload, sent, time }.
    last = null;
    // Acknowledgements, in milliseconds.
    answers = { count: 0, sum: 0, longest: 0, last: 0 };
    // For each of the last seconds how many messages were sent and received; a ring with the second of its newest place.
    #sent = new Uint16Array(SECONDS);
    #received = new Uint16Array(SECONDS);
    #newest = 0;

    constructor(name, path, parent) {
      this.name = name;
      this.path = path;
      this.parent = parent;
      this.depth = parent ? parent.depth + 1 : -1;
    }

    count(frame, second) {
      this.messages += 1;
      this.bytes += frame.size;
      this.#advance(second);
      if (second <= this.#newest - SECONDS) return;
      const ring = frame.sent ? this.#sent : this.#received;
      const place = ((second % SECONDS) + SECONDS) % SECONDS;
      if (ring[place] < 0xffff) ring[place] += 1;
    }

    answered(milliseconds) {
      this.answers.count += 1;
      this.answers.sum += milliseconds;
      this.answers.longest = Math.max(this.answers.longest, milliseconds);
      this.answers.last = milliseconds;
    }

    // The numbers of the seconds up to `second`, oldest first.
    rates(second, length = SECONDS) {
      this.#advance(second);
      const at = (ring, index) => ring[(((second - length + 1 + index) % SECONDS) + SECONDS) % SECONDS];
      return {
        sent: Array.from({ length }, (_, index) => at(this.#sent, index)),
        received: Array.from({ length }, (_, index) => at(this.#received, index)),
      };
    }

    // Messages a second, over the last five whole seconds.
    rate(second) {
      const { sent, received } = this.rates(second, 6);
      let sum = 0;
      for (let index = 0; index < 5; index += 1) sum += sent[index] + received[index];
      return sum / 5;
    }

    #advance(second) {
      if (second <= this.#newest) return;
      const steps = Math.min(SECONDS, second - this.#newest);
      for (let step = 0; step < steps; step += 1) {
        const place = (((second - step) % SECONDS) + SECONDS) % SECONDS;
        this.#sent[place] = 0;
        this.#received[place] = 0;
      }
      this.#newest = second;
    }
  }

  class Tree {
    root = new Node('', '', null);
    count = 0;
    overflow = 0;
    #known = new Map();
    #waiting = new Map();

    // Takes a frame of the log; see JSON.row in Sources/Inspector/Feed.
    take(frame) {
      if (frame.answers !== undefined) this.#answered(frame);
      if (!frame.message || frame.destination === null) return;
      const node = this.node(frame.destination, frame.type !== 'PUBLISH');
      const second = Math.floor(frame.time / 1000);
      for (let at = node ?? this.root; at; at = at.parent) at.count(frame, second);
      if (!node) {
        this.overflow += 1;
        return;
      }
      node.last = { payload: frame.payload, sent: frame.sent, time: frame.time };
      if (frame.asks) this.#remember(frame.number, node);
    }

    // The node of a topic; null when there are too many.
    node(topic, isSTOMP) {
      const known = this.#known.get(topic);
      if (known) return known;
      const levels = split(topic, isSTOMP);
      let node = this.root;
      for (const level of levels) {
        let child = node.children.get(level);
        if (!child) {
          if (this.count >= MOST_NODES) return null;
          child = new Node(level, node.path + level, node);
          node.children.set(level, child);
          this.count += 1;
        }
        node = child;
      }
      this.#known.set(topic, node);
      return node;
    }

    #remember(number, node) {
      this.#waiting.set(number, node);
      // What nobody answers must not pile up.
      if (this.#waiting.size > 2 * MOST_NODES) this.#waiting.delete(this.#waiting.keys().next().value);
    }

    #answered({ answers, after }) {
      const node = this.#waiting.get(answers);
      if (!node) return;
      this.#waiting.delete(answers);
      for (let at = node; at; at = at.parent) at.answered(after / 1000);
    }
  }

  function split(topic, isSTOMP) {
    const levels = topic.match(isSTOMP ? /[/.]?[^/.]*/g : /\/?[^/]*/g).filter((level) => level !== '');
    if (levels.length <= DEEPEST) return levels.length > 0 ? levels : [topic];
    return [...levels.slice(0, DEEPEST - 1), levels.slice(DEEPEST - 1).join('')];
  }

  return { Tree, split, SECONDS };
})();
