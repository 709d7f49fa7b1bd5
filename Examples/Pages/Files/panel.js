// What both pages have at their top: the form that connects, the state of the connection, and what went wrong.
//
// The broker may be given in the page's address, as `locations.html?url=ws://127.0.0.1:61614`; the page then connects by
// itself. A device that serves the page does so. Without it the form waits with the usual address.
'use strict';

const Panel = (() => {
  const $ = (id) => document.getElementById(id);

  class Panel {
    #session;
    #countdown = 0;
    #client = null;
    #onState;

    // - dial(settings, events): makes the client; settings: { url, user, password } and what `settings()` adds
    // - onState(state, client): after the form has been set for it; client is null unless the state is 'on'
    constructor({ dial, settings = () => ({}), onState }) {
      this.#onState = onState;
      this.form = $('connection');
      this.#session = new Session(
        (events) => dial({ ...this.#fields(), ...settings() }, events),
        (state, details) => this.#show(state, details));
      this.form.addEventListener('submit', (event) => {
        event.preventDefault();
        if (this.#session.state === 'off') this.#start();
      });
      $('disconnect').addEventListener('click', () => this.#session.stop());
      $('now').addEventListener('click', () => this.#session.tryNow());
      $('url').addEventListener('input', () => this.#complain(''));
      this.#show('off', { reason: '' });
      // Only the program that serves this page has frames to show, and only below the token in its address.
      const isBelowToken = location.protocol === 'http:' && location.pathname.split('/').length === 3;
      for (const link of document.querySelectorAll('.served')) link.hidden = !isBelowToken;
    }

    // Call when the page is ready to show messages.
    open() {
      const url = new URLSearchParams(location.search).get('url');
      if (!url) return;
      $('url').value = url;
      this.#start();
    }

    // What is worth reading but not worth stopping for.
    notice(text) {
      const line = document.createElement('p');
      line.textContent = line.title = text;
      $('notices').replaceChildren(line);
      clearTimeout(this.noticeTimer);
      this.noticeTimer = setTimeout(() => line.remove(), 8000);
    }

    // The broker has granted the subscriptions: what is published from now on arrives. It keeps no message for a page that
    // is connected but not yet subscribed, and RabbitMQ sends no retained ones for wildcards.
    subscribed(what) {
      document.documentElement.dataset.subscribed = what;
      this.notice(`Subscribed to ${what}`);
    }

    #start() {
      const problem = Panel.problem($('url').value.trim());
      this.#complain(problem);
      if (problem) $('url').focus();
      else this.#session.start();
    }

    #fields() {
      return { url: $('url').value.trim(), user: $('user').value, password: $('password').value };
    }

    #complain(text) {
      $('problem').textContent = text;
      $('url').setAttribute('aria-invalid', String(text.includes('ws://')));
    }

    #show(state, details) {
      const { url } = this.#fields();
      clearInterval(this.#countdown);
      this.#client = state === 'on' ? details.client : null;
      document.documentElement.dataset.state = state;
      delete document.documentElement.dataset.subscribed;
      $('connect').disabled = state !== 'off';
      $('disconnect').disabled = state === 'off';
      for (const field of this.form.querySelectorAll('.login input')) field.readOnly = state !== 'off';
      $('now').hidden = state !== 'waiting';
      $('countdown').textContent = '';
      switch (state) {
        case 'connecting':
          this.#complain('');
          this.#say(`Connecting to ${url}`);
          break;
        case 'on':
          this.#say(`Connected · ${[details.version, details.server?.split(' ')[0]].filter(Boolean).join(' · ')}`);
          break;
        case 'waiting':
          this.#say(`${details.wasOn ? 'Connection lost' : 'No connection'}: ${details.reason}`);
          this.#count(details.until);
          break;
        default:
          this.#say('Not connected');
          if (details.refused) this.#complain(`invalid user credentials (${details.reason})`);
          else if (details.reason !== 'disconnected') this.#complain(details.reason);
          if (details.refused) $('user').focus();
      }
      this.#onState(state, this.#client);
    }

    // The state is read out when it changes; the seconds are for the eye alone.
    #say(text) {
      $('state').textContent = text;
    }

    #count(until) {
      const show = () => {
        const seconds = Math.max(0, Math.ceil((until - performance.now()) / 1000));
        $('countdown').textContent = seconds > 0 ? `next try in ${seconds} s` : 'trying again';
      };
      show();
      this.#countdown = setInterval(show, 250);
    }

    // Why a text is no address of a broker; empty when it is one.
    static problem(text) {
      let url;
      try {
        url = new URL(text);
      } catch {
        return 'This is no address: write ws://host:port/path, or wss:// for TLS.';
      }
      if (!['ws:', 'wss:'].includes(url.protocol)) return `A page cannot speak ${url.protocol}// — use ws:// or wss://.`;
      if (url.username || url.password) return 'Write user and password into their fields, not into ws://user:password@….';
      return '';
    }
  }

  // A rate over the last seconds, and the time that has passed in words.
  class Rate {
    #count = 0;
    #perSecond = 0;

    constructor(show) {
      setInterval(() => {
        this.#perSecond = this.#perSecond === 0 ? this.#count : (this.#perSecond + this.#count) / 2;
        if (this.#count === 0 && this.#perSecond < 0.5) this.#perSecond = 0;
        this.#count = 0;
        show(this.#perSecond);
      }, 1000);
    }

    tick() {
      this.#count += 1;
    }
  }

  return { Panel, Rate, $ };
})();
