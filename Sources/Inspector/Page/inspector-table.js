// The table of frames. Of the thousands that it may hold only the rows in sight are in the document.
'use strict';

const FrameTable = (() => {
  const $ = (id) => document.getElementById(id);
  const ROW = 30;
  const SPARE = 8;
  const CELLS = ['time', 'direction', 'type', 'size', 'destination', 'qos', 'answer', 'note', 'client'];

  class FrameTable {
    #rows = [];
    #shown = [];
    #selected = null;
    #follows = true;
    #onSelect;
    #onFollow;
    #isDue = false;

    // - onSelect(frame or null)
    // - onFollow(boolean): whether the table scrolls with new frames
    constructor({ onSelect, onFollow }) {
      this.#onSelect = onSelect;
      this.#onFollow = onFollow;
      this.#listen();
    }

    get follows() { return this.#follows; }
    get selected() { return this.#selected; }

    set follows(on) {
      this.#follows = on;
      this.#onFollow(on);
      if (on) this.draw();
    }

    set shown(frames) {
      this.#shown = frames;
      this.draw();
    }

    // Draws once in the next animation frame, however often it is asked.
    draw() {
      if (this.#isDue) return;
      this.#isDue = true;
      requestAnimationFrame(() => {
        this.#isDue = false;
        this.#draw();
      });
    }

    select(frame) {
      this.#selected = frame?.number ?? null;
      if (frame) this.follows = false;
      this.draw();
      this.#onSelect(frame);
    }

    // Closes the details; the keyboard stays at the row.
    deselect() {
      const before = this.#selected;
      this.select(null);
      this.#rows.find(({ frame }) => frame?.number === before)?.element.focus();
    }

    // Shows the chosen frame amid its neighbours; without one, the oldest frames.
    bringIntoSight() {
      const index = this.#shown.findIndex(({ number }) => number === this.#selected);
      this.#draw();
      $('scroller').scrollTop = Math.max(0, (index + 1) * ROW - $('scroller').clientHeight / 2);
    }

    #draw() {
      const scroller = $('scroller');
      const height = scroller.clientHeight - $('table').tHead.offsetHeight;
      const most = Math.max(0, this.#shown.length * ROW - height);
      const top = this.#follows ? most : Math.min(scroller.scrollTop, most);
      const first = Math.max(0, Math.floor(top / ROW) - SPARE);
      const end = Math.min(this.#shown.length, Math.ceil((top + height) / ROW) + SPARE);
      while (this.#rows.length < end - first) this.#rows.push(this.#makeRow());
      $('above').firstElementChild.style.height = `${first * ROW}px`;
      $('below').firstElementChild.style.height = `${(this.#shown.length - end) * ROW}px`;
      for (const [index, row] of this.#rows.entries()) {
        const frame = index < end - first ? this.#shown[first + index] : null;
        row.element.hidden = !frame;
        if (frame) this.#fill(row, frame, first + index);
      }
      $('table').setAttribute('aria-rowcount', this.#shown.length + 1);
      if (this.#follows && Math.abs(scroller.scrollTop - most) > 1) scroller.scrollTop = most;
    }

    #makeRow() {
      const element = document.createElement('tr');
      const cells = {};
      for (const name of CELLS) {
        const cell = document.createElement('td');
        cell.className = name;
        element.append(cell);
        cells[name] = cell.appendChild(document.createTextNode(''));
      }
      const word = document.createElement('span');
      word.className = 'word';
      cells.direction.after(word);
      cells.word = word.appendChild(document.createTextNode(''));
      const row = { element, cells, frame: null, answer: undefined };
      element.addEventListener('click', () => this.select(row.frame));
      // What a mouse is pressed on must not move away before it is released.
      element.addEventListener('mousedown', () => { this.follows = false; });
      $('rows').append(element);
      return row;
    }

    #fill(row, frame, index) {
      const { element, cells } = row;
      const isSelected = frame.number === this.#selected;
      if (element.ariaSelected !== String(isSelected)) element.setAttribute('aria-selected', String(isSelected));
      element.tabIndex = isSelected || (this.#selected === null && index === this.#shown.length - 1) ? 0 : -1;
      if (row.frame === frame && row.answer === frame.answer) return;
      row.frame = frame;
      row.answer = frame.answer;
      element.setAttribute('aria-rowindex', index + 2);
      element.className = `${frame.sent ? 'sent' : 'received'}${frame.reconnect ? ' reconnect' : ''}`;
      cells.time.data = clock(frame.time);
      cells.direction.data = frame.sent ? '▲' : '▼';
      cells.word.data = frame.sent ? ' sent' : ' received';
      cells.type.data = frame.type;
      cells.size.data = frame.size.toLocaleString('en');
      cells.destination.data = frame.destination ?? (frame.reconnect ? 'reconnected' : '');
      cells.qos.data = frame.qos ?? '';
      cells.answer.data = frame.answer !== undefined ? duration(frame.answer) : frame.asks ? '…' : '';
      cells.note.data = frame.note;
      cells.client.data = frame.client;
      element.title = frame.destination ?? '';
    }

    #step(count) {
      if (this.#shown.length === 0) return;
      const index = this.#shown.findIndex(({ number }) => number === this.#selected);
      const last = this.#shown.length - 1;
      const next = Math.min(last, Math.max(0, index < 0 ? last : index + count));
      const scroller = $('scroller');
      const height = scroller.clientHeight - $('table').tHead.offsetHeight;
      const top = next * ROW;
      this.select(this.#shown[next]);
      if (top < scroller.scrollTop) scroller.scrollTop = top;
      if (top + ROW > scroller.scrollTop + height) scroller.scrollTop = top + ROW - height;
      this.#draw();
      this.#rows.find(({ frame, element }) => !element.hidden && frame === this.#shown[next])
        ?.element.focus({ preventScroll: true });
    }

    #listen() {
      const scroller = $('scroller');
      scroller.addEventListener('wheel', ({ deltaY }) => { if (deltaY < 0) this.follows = false; }, { passive: true });
      scroller.addEventListener('touchmove', () => { this.follows = false; }, { passive: true });
      scroller.addEventListener('scroll', () => {
        const { scrollTop, scrollHeight, clientHeight } = scroller;
        if (!this.#follows && this.#selected === null && scrollTop + clientHeight >= scrollHeight - 2) this.follows = true;
        this.draw();
      });
      $('table').addEventListener('keydown', (event) => {
        const page = Math.max(1, Math.floor(scroller.clientHeight / ROW) - 2);
        const all = this.#shown.length;
        const steps = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -all, End: all };
        if (event.key === 'Escape') this.deselect();
        else if (event.key === 'Enter' || event.key === ' ') {
          this.select(this.#rows.find(({ element }) => element === event.target)?.frame ?? null);
        } else if (event.key in steps) this.#step(steps[event.key]);
        else return;
        event.preventDefault();
      });
      new ResizeObserver(() => this.draw()).observe(scroller);
    }
  }

  function clock(milliseconds) {
    const time = new Date(milliseconds);
    const digits = (number, count = 2) => String(number).padStart(count, '0');
    return `${digits(time.getHours())}:${digits(time.getMinutes())}:${digits(time.getSeconds())}`
      + `.${digits(time.getMilliseconds(), 3)}`;
  }

  // Milliseconds in three digits or so.
  function duration(milliseconds) {
    if (milliseconds < 10) return `${milliseconds.toFixed(2)} ms`;
    return milliseconds < 10000 ? `${milliseconds.toFixed(0)} ms` : `${(milliseconds / 1000).toFixed(1)} s`;
  }

  return { FrameTable, clock, duration };
})();
