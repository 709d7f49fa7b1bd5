// A connection that comes back: one client after the other, with a growing and uneven pause between them.
//
//     off ── start ──> connecting ── onConnected ──> on
//      ^                 ^      │                     │
//      │                 └──────┴── waiting <─────────┴── onClosed
//      └── stop, or credentials refused before they were ever accepted
'use strict';

const Session = (() => {
  const FIRST_PAUSE = 500;
  const LONGEST_PAUSE = 15000;
  // A connection that lived this long was a good one; the next pause is the first again.
  const STABLE = 10000;
  const PATIENCE = 10000;

  class Session {
    state = 'off';
    #dial;
    #onChange;
    #client = null;
    #attempt = 0;
    #pauses = 0;
    #accepted = false;
    #timer = 0;

    // - dial({ every, onConnected, onClosed }): makes a Stomp.Client or Mqtt.Client, or throws when the URL is none
    // - onChange(state, details): 'connecting', {}; 'on', { version, server, client }; 'waiting', { reason, until, wasOn };
    //   'off', { reason, refused }
    constructor(dial, onChange) {
      this.#dial = dial;
      this.#onChange = onChange;
      // The browser knows when the network is back; there is no reason to sleep on.
      addEventListener('online', () => { if (this.state === 'waiting') this.#connect(); });
    }

    start() {
      if (this.state !== 'off') return;
      this.#accepted = false;
      this.#pauses = 0;
      this.#connect();
    }

    stop(reason = 'disconnected', refused = false) {
      if (this.state === 'off') return;
      this.#attempt += 1;
      clearTimeout(this.#timer);
      this.#client?.disconnect();
      this.#client = null;
      this.#change('off', { reason, refused });
    }

    // Without the pause that is left.
    tryNow() {
      if (this.state === 'waiting') this.#connect();
    }

    #connect() {
      clearTimeout(this.#timer);
      const attempt = ++this.#attempt;
      const isOurs = (action) => (details) => { if (attempt === this.#attempt) action(details); };
      this.#change('connecting', {});
      try {
        this.#client = this.#dial({
          every: Session.every,
          onConnected: isOurs((details) => this.#connected(details)),
          onClosed: isOurs((details) => this.#closed(details)),
        });
      } catch (error) {
        return this.stop(error.message);
      }
      this.#timer = setTimeout(() => this.#client?.abort('no answer within ten seconds'), PATIENCE);
      return undefined;
    }

    #connected(details) {
      clearTimeout(this.#timer);
      this.#accepted = true;
      this.#timer = setTimeout(() => { this.#pauses = 0; }, STABLE);
      this.#change('on', { ...details, client: this.#client });
    }

    #closed({ reason, refused }) {
      clearTimeout(this.#timer);
      this.#client = null;
      // Credentials that were good a moment ago are refused by a broker that is still starting: that is a loss.
      if (refused && !this.#accepted) return this.stop(reason, true);
      const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** this.#pauses) * (0.5 + Math.random() / 2);
      this.#pauses += 1;
      this.#timer = setTimeout(() => this.#connect(), pause);
      return this.#change('waiting', { reason, until: performance.now() + pause, wasOn: this.#accepted });
    }

    #change(state, details) {
      this.state = state;
      this.#onChange(state, details);
    }

    // setInterval for heart-beats. Browsers let a hidden page's own timers run once a minute, which a broker that was
    // promised a beat every twenty seconds does not wait for; the timers of a worker go on.
    static every(milliseconds, action) {
      try {
        const source = URL.createObjectURL(
          new Blob([`setInterval(() => postMessage(0), ${Number(milliseconds)})`], { type: 'text/javascript' }));
        const worker = new Worker(source);
        worker.onmessage = action;
        let fallback = null;
        worker.onerror = () => { fallback ??= setInterval(action, milliseconds); };
        URL.revokeObjectURL(source);
        return () => { worker.terminate(); clearInterval(fallback); };
      } catch {
        const timer = setInterval(action, milliseconds);
        return () => clearInterval(timer);
      }
    }
  }

  return Session;
})();
