// The inspector: every frame that the devices of this program exchange with their broker.
//
// The program keeps the last frames and tells those after a number; see Examples/Shared/Pages/FrameFeed.swift. Of the
// thousands that this page may hold only the rows in sight are in the document, and they are changed once per animation
// frame, however many frames come in between.
'use strict';

const Inspector = (() => {
  const $ = (id) => document.getElementById(id);
  const MOST_FRAMES = 5000;
  const PAUSE = 400;
  const PAUSE_HIDDEN = 3000;
  const PAUSE_AFTER_FAILURE = 2000;
  const ROW = 30;
  const SPARE = 8;

  let frames = [];
  let shown = frames;
  let cursor = 0;
  let clears = null;
  let dropped = 0;
  let missed = 0;
  let isPaused = false;
  let follows = true;
  let selected = null;
  let filter = { text: '', direction: '' };
  const rows = [];

  // MARK: Asking the program

  async function ask(path, options) {
    const response = await fetch(path, { cache: 'no-store', ...options });
    if (!response.ok) throw Object.assign(new Error((await response.text()).trim()), { status: response.status });
    return response.json();
  }

  async function poll() {
    let pause = document.hidden ? PAUSE_HIDDEN : PAUSE;
    try {
      take(await ask(`frames.json?since=${cursor}`));
      sayHow();
    } catch (error) {
      pause = PAUSE_AFTER_FAILURE;
      if (error.status === 404) say('off', 'This program keeps no frames');
      else say('waiting', 'The program is out of reach');
    }
    setTimeout(poll, pause);
  }

  function take(answer) {
    // Cleared by somebody, or another program has taken the port.
    if ((clears !== null && answer.clears !== clears) || answer.cursor < cursor) forget();
    else if (cursor > 0) missed += answer.missed;
    clears = answer.clears;
    cursor = answer.cursor;
    dropped = answer.dropped;
    setPaused(answer.paused);
    if (answer.frames.length > 0) {
      for (const frame of answer.frames) frame.words = words(frame);
      frames.push(...answer.frames);
      if (frames.length > MOST_FRAMES) frames.splice(0, frames.length - MOST_FRAMES);
      const isFiltered = filter.text || filter.direction;
      shown = isFiltered ? frames.filter(matches) : frames;
    }
    Frames.draw(draw);
  }

  function forget() {
    frames = [];
    shown = frames;
    cursor = 0;
    missed = 0;
    close();
  }

  function order(action) {
    ask(`frames/${action}`, { method: 'POST' }).then((answer) => {
      take(answer);
      sayHow();
    }, (error) => say('waiting', error.message));
  }

  // MARK: Searching

  function words({ type, destination, client, note }) {
    return `${type}\n${destination ?? ''}\n${client}\n${note}`.toLowerCase();
  }

  function matches(frame) {
    if (filter.direction && frame.sent !== (filter.direction === 'sent')) return false;
    return frame.words.includes(filter.text);
  }

  function search() {
    filter = { text: $('search').value.trim().toLowerCase(), direction: $('direction').value };
    shown = filter.text || filter.direction ? frames.filter(matches) : frames;
    draw();
    if (!follows) bringIntoSight(shown.findIndex(({ number }) => number === selected));
  }

  // The chosen frame amid its neighbours; without one, the oldest.
  function bringIntoSight(index) {
    const scroller = $('scroller');
    scroller.scrollTop = Math.max(0, (index + 1) * ROW - scroller.clientHeight / 2);
  }

  // MARK: The table

  function draw() {
    const scroller = $('scroller');
    const head = $('table').tHead.offsetHeight;
    const height = scroller.clientHeight - head;
    const most = Math.max(0, shown.length * ROW - height);
    const top = follows ? most : Math.min(scroller.scrollTop, most);
    const first = Math.max(0, Math.floor(top / ROW) - SPARE);
    const end = Math.min(shown.length, Math.ceil((top + height) / ROW) + SPARE);
    while (rows.length < end - first) rows.push(makeRow());
    $('above').firstElementChild.style.height = `${first * ROW}px`;
    $('below').firstElementChild.style.height = `${(shown.length - end) * ROW}px`;
    for (const [index, row] of rows.entries()) {
      const frame = index < end - first ? shown[first + index] : null;
      row.element.hidden = !frame;
      if (frame) fill(row, frame, first + index);
    }
    $('table').setAttribute('aria-rowcount', shown.length + 1);
    if (follows && Math.abs(scroller.scrollTop - most) > 1) scroller.scrollTop = most;
    const isFiltered = shown !== frames;
    $('empty').hidden = shown.length > 0;
    $('empty').textContent = frames.length > 0 ? 'No frame matches.' : 'No frame has gone by yet.';
    const count = (number, what) => `${number.toLocaleString('en')} ${what}`;
    $('tally').textContent = [
      isFiltered ? `${count(shown.length, 'of')} ${count(frames.length, 'frames')}` : count(frames.length, 'frames'),
      dropped > 0 ? count(dropped, 'dropped from the log') : '', missed > 0 ? count(missed, 'missed by this page') : '',
    ].filter(Boolean).join(' · ');
  }

  function makeRow() {
    const element = document.createElement('tr');
    const cells = {};
    for (const name of ['time', 'direction', 'type', 'size', 'destination', 'qos', 'note', 'client']) {
      const cell = document.createElement('td');
      cell.className = name;
      element.append(cell);
      cells[name] = cell.appendChild(document.createTextNode(''));
    }
    const word = document.createElement('span');
    word.className = 'word';
    cells.direction.after(word);
    cells.word = word.appendChild(document.createTextNode(''));
    const row = { element, cells, frame: null };
    element.addEventListener('click', () => select(row.frame));
    // What a mouse is pressed on must not move away before it is released.
    element.addEventListener('mousedown', () => setFollowing(false));
    $('rows').append(element);
    return row;
  }

  function fill(row, frame, index) {
    const { element, cells } = row;
    const isSelected = frame.number === selected;
    if (element.ariaSelected !== String(isSelected)) element.setAttribute('aria-selected', String(isSelected));
    element.tabIndex = isSelected || (selected === null && index === shown.length - 1) ? 0 : -1;
    if (row.frame === frame) return;
    row.frame = frame;
    element.setAttribute('aria-rowindex', index + 2);
    element.className = frame.sent ? 'sent' : 'received';
    cells.time.data = clock(frame.time);
    cells.direction.data = frame.sent ? '▲' : '▼';
    cells.word.data = frame.sent ? ' sent' : ' received';
    cells.type.data = frame.type;
    cells.size.data = frame.size.toLocaleString('en');
    cells.destination.data = frame.destination ?? '';
    cells.qos.data = frame.qos ?? '';
    cells.note.data = frame.note;
    cells.client.data = frame.client;
    element.title = frame.destination ?? '';
  }

  function clock(milliseconds) {
    const time = new Date(milliseconds);
    const digits = (number, count = 2) => String(number).padStart(count, '0');
    return `${digits(time.getHours())}:${digits(time.getMinutes())}:${digits(time.getSeconds())}`
      + `.${digits(time.getMilliseconds(), 3)}`;
  }

  // MARK: Details

  async function select(frame) {
    selected = frame.number;
    setFollowing(false);
    Frames.draw(draw);
    try {
      const details = await ask(`frame.json?number=${frame.number}`);
      if (selected === frame.number) show(details);
    } catch (error) {
      if (selected === frame.number) show({ ...frame, fields: [], octets: '', payload: null, problem: error.message });
    }
  }

  function show(frame) {
    setDetailed(true);
    $('details-title').textContent = frame.type;
    $('about').textContent = frame.problem ?? [
      `${frame.sent ? 'sent' : 'received'} at ${clock(frame.time)}`, `${frame.size.toLocaleString('en')} octets`,
      frame.protocol, `connection ${frame.connection}`, frame.client,
    ].filter(Boolean).join(' · ');
    $('fields').replaceChildren(...frame.fields.map(([name, value]) => {
      const field = document.createElement('div');
      field.append(document.createElement('dt'), document.createElement('dd'));
      field.firstChild.textContent = name;
      field.lastChild.textContent = value;
      return field;
    }));
    $('payload').hidden = frame.payload === null;
    $('payload').querySelector('pre').textContent = frame.payload ?? '';
    $('octets').textContent = dump(frame.octets, frame.size);
    Frames.draw(draw);
  }

  // Eight octets to a line: their place, their digits and what they are as text.
  function dump(digits, size) {
    const octets = digits.match(/../g) ?? [];
    const lines = [];
    for (let start = 0; start < octets.length; start += 8) {
      const part = octets.slice(start, start + 8);
      const text = part.map((octet) => {
        const code = parseInt(octet, 16);
        return code >= 0x20 && code < 0x7f ? String.fromCharCode(code) : '·';
      }).join('');
      lines.push(`${start.toString(16).padStart(4, '0')}  ${part.join(' ').padEnd(23)}  ${text}`);
    }
    if (octets.length < size) lines.push(`… ${(size - octets.length).toLocaleString('en')} more octets`);
    return lines.join('\n');
  }

  function setDetailed(on) {
    document.querySelector('.details').hidden = !on;
    document.querySelector('main').classList.toggle('with-details', on);
  }

  function close() {
    selected = null;
    setDetailed(false);
    Frames.draw(draw);
  }

  function step(count) {
    if (shown.length === 0) return;
    const index = shown.findIndex(({ number }) => number === selected);
    const next = Math.min(shown.length - 1, Math.max(0, index < 0 ? shown.length - 1 : index + count));
    setFollowing(false);
    const scroller = $('scroller');
    const height = scroller.clientHeight - $('table').tHead.offsetHeight;
    const top = next * ROW;
    if (top < scroller.scrollTop) scroller.scrollTop = top;
    if (top + ROW > scroller.scrollTop + height) scroller.scrollTop = top + ROW - height;
    select(shown[next]);
    draw();
    rows.find(({ frame, element }) => !element.hidden && frame === shown[next])?.element.focus({ preventScroll: true });
  }

  // MARK: Controls

  function say(state, text) {
    document.documentElement.dataset.state = state;
    if ($('state').textContent !== text) $('state').textContent = text;
  }

  function sayHow() {
    say(isPaused ? 'paused' : 'on', isPaused ? 'Paused' : 'Live');
  }

  function setPaused(on) {
    isPaused = on;
    $('pause').setAttribute('aria-pressed', String(on));
    $('pause').textContent = on ? 'Resume' : 'Pause';
  }

  function setFollowing(on) {
    follows = on;
    $('follow').setAttribute('aria-pressed', String(on));
    if (on) Frames.draw(draw);
  }

  $('pause').addEventListener('click', () => order(isPaused ? 'resume' : 'pause'));
  $('clear').addEventListener('click', () => order('clear'));
  $('follow').addEventListener('click', () => setFollowing(!follows));
  $('close').addEventListener('click', () => {
    const before = selected;
    close();
    rows.find(({ frame }) => frame?.number === before)?.element.focus();
  });
  $('search').addEventListener('input', search);
  $('direction').addEventListener('change', search);
  $('scroller').addEventListener('wheel', (event) => { if (event.deltaY < 0) setFollowing(false); }, { passive: true });
  $('scroller').addEventListener('touchmove', () => setFollowing(false), { passive: true });
  $('scroller').addEventListener('scroll', () => {
    const { scrollTop, scrollHeight, clientHeight } = $('scroller');
    if (!follows && selected === null && scrollTop + clientHeight >= scrollHeight - 2) setFollowing(true);
    Frames.draw(draw);
  });
  $('table').addEventListener('keydown', (event) => {
    const page = Math.max(1, Math.floor($('scroller').clientHeight / ROW) - 2);
    const steps = {
      ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -shown.length, End: shown.length,
    };
    if (event.key === 'Escape') $('close').click();
    else if (event.key === 'Enter' || event.key === ' ') select(rows.find(({ element }) => element === event.target).frame);
    else if (event.key in steps) step(steps[event.key]);
    else return;
    event.preventDefault();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.target.matches('input, select')) return;
    event.preventDefault();
    $('search').focus();
  });
  new ResizeObserver(() => Frames.draw(draw)).observe($('scroller'));

  poll();
  return { get frames() { return frames; }, get shown() { return shown; }, get follows() { return follows; } };
})();
