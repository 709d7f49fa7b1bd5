// The inspector: every frame that the clients of a program exchange with their servers.
//
// The program records the last frames and streams them, at most twenty updates a second; see FrameReader and FrameRows
// in Sources/Inspector/Feed. What this page counts (topics, rates, acknowledgements) it counts since it was opened.
'use strict';

const Inspector = (() => {
  const $ = (id) => document.getElementById(id);
  const { clock, duration } = FrameTable;
  const MOST_FRAMES = 5000;
  const MOST_MARKS = 500;
  const PAUSE_AFTER_FAILURE = 2000;
  const SIDE_PAUSE = 250;

  let frames = [];
  let shown = frames;
  let cursor = 0;
  let clears = null;
  let dropped = 0;
  let missed = 0;
  let updates = 0;
  let isPaused = false;
  let sideIsDue = true;
  let filter = { text: '', direction: '', topic: null };
  let topics = new Topics.Tree();
  // Frames that ask for an answer and have none yet, by number.
  const unanswered = new Map();
  // When clients reconnected, in milliseconds since 1970.
  let reconnects = [];

  const table = new FrameTable.FrameTable({
    onSelect: (frame) => (frame ? showDetails(frame) : setDetailed(false)),
    onFollow: (on) => $('follow').setAttribute('aria-pressed', String(on)),
  });
  const tree = new TopicTree($('tree'), selectTopic);
  tree.model = topics;
  const chart = new RateChart($('chart'), () => drawSide());

  // MARK: The stream

  function listen() {
    const stream = new EventSource(`events?since=${cursor}${clears === null ? '' : `&clears=${clears}`}`);
    stream.addEventListener('hello', ({ data }) => greet(JSON.parse(data)));
    stream.onmessage = ({ data }) => {
      updates += 1;
      take(JSON.parse(data));
      sayHow();
    };
    stream.onopen = sayHow;
    stream.onerror = () => {
      say('waiting', 'The program is out of reach');
      stream.close();
      setTimeout(listen, PAUSE_AFTER_FAILURE);
    };
  }

  function greet({ heading, links, publishes }) {
    document.querySelector('.publish').hidden = !publishes;
    $('links').hidden = links.length === 0;
    $('links').replaceChildren(...[...links, ['Inspector', '']].map(([name, target]) => {
      const link = document.createElement('a');
      link.textContent = name;
      if (target) link.href = target;
      else link.setAttribute('aria-current', 'page');
      return link;
    }));
    document.querySelector('h1').textContent = heading;
    document.body.classList.toggle('beside-others', links.length > 0);
  }

  function take(update) {
    // Cleared by somebody, or another program has taken the port.
    if ((clears !== null && update.clears !== clears) || update.cursor < cursor) forget();
    missed += update.missed;
    ({ cursor, clears, dropped } = update);
    setPaused(update.paused);
    for (const frame of update.frames) {
      frame.words = `${frame.type}\n${frame.destination ?? ''}\n${frame.client}\n${frame.note}`.toLowerCase();
      topics.take(frame);
      if (frame.asks) unanswered.set(frame.number, frame);
      if (frame.answers !== undefined) answered(frame);
      if (frame.reconnect) reconnects.push(frame.time);
    }
    while (unanswered.size > MOST_FRAMES) unanswered.delete(unanswered.keys().next().value);
    if (reconnects.length > MOST_MARKS) reconnects = reconnects.slice(-MOST_MARKS);
    if (update.frames.length > 0) {
      frames.push(...update.frames);
      if (frames.length > MOST_FRAMES) frames.splice(0, frames.length - MOST_FRAMES);
      sift();
    }
    sideIsDue = true;
    drawTally();
  }

  function answered({ answers, after }) {
    const frame = unanswered.get(answers);
    if (frame) frame.answer = after / 1000;
    unanswered.delete(answers);
  }

  function forget() {
    frames = [];
    cursor = 0;
    missed = 0;
    unanswered.clear();
    reconnects = [];
    topics = new Topics.Tree();
    tree.model = topics;
    filter.topic = null;
    sideIsDue = true;
    table.select(null);
    sift();
  }

  async function order(action) {
    try {
      const response = await fetch(action, { method: 'POST' });
      if (!response.ok) throw new Error((await response.text()).trim());
    } catch (error) {
      say('waiting', error.message);
    }
  }

  // MARK: Searching

  function matches(frame) {
    if (filter.direction && frame.sent !== (filter.direction === 'sent')) return false;
    if (filter.topic && !isBelow(filter.topic, frame.destination)) return false;
    return frame.words.includes(filter.text);
  }

  function isBelow({ path }, destination) {
    if (!destination?.startsWith(path)) return false;
    return destination.length === path.length || '/.'.includes(destination[path.length]);
  }

  function sift() {
    const isFiltered = filter.text || filter.direction || filter.topic;
    shown = isFiltered ? frames.filter(matches) : frames;
    table.shown = shown;
    drawTally();
  }

  function search() {
    filter = { ...filter, text: $('search').value.trim().toLowerCase(), direction: $('direction').value };
    sift();
    if (!table.follows) table.bringIntoSight();
  }

  function drawTally() {
    const count = (number, what) => `${number.toLocaleString('en')} ${what}`;
    $('empty').hidden = shown.length > 0;
    $('empty').textContent = frames.length > 0 ? 'No frame matches.' : 'No frame has gone by yet.';
    $('tally').textContent = [
      shown === frames ? count(frames.length, 'frames') : `${count(shown.length, 'of')} ${count(frames.length, 'frames')}`,
      dropped > 0 ? count(dropped, 'dropped from the log') : '', missed > 0 ? count(missed, 'missed by this page') : '',
    ].filter(Boolean).join(' · ');
  }

  // MARK: Topics

  function selectTopic(node) {
    filter.topic = node;
    $('all').hidden = !node;
    if (node) $('topic').value = node.path;
    sift();
    if (!table.follows) table.bringIntoSight();
    drawSide();
  }

  function drawSide() {
    sideIsDue = false;
    const node = filter.topic ?? topics.root;
    const second = Math.floor(Date.now() / 1000);
    const { answers } = node;
    $('chart-title').textContent = filter.topic ? node.path : 'All topics';
    $('chart-title').title = filter.topic ? node.path : '';
    $('chart-about').textContent = [
      `${node.messages.toLocaleString('en')} messages`, `${node.rate(second).toFixed(1)} a second`,
      `${size(node.bytes)}`,
    ].join(' · ');
    chart.draw(node.rates(second), reconnects.map((time) => second - Math.floor(time / 1000)).filter((ago) => ago < Topics.SECONDS));
    const facts = [
      node.last ? ['Last', node.last.payload ?? '(empty)'] : null,
      answers.count > 0
        ? ['Answers', `last ${duration(answers.last)} · mean ${duration(answers.sum / answers.count)} · longest ${duration(answers.longest)}`]
        : null,
    ].filter(Boolean);
    $('topic-facts').hidden = facts.length === 0;
    fillList($('topic-facts'), facts);
    $('topic-count').textContent = [
      topics.count.toLocaleString('en'), topics.overflow > 0 ? `${topics.overflow.toLocaleString('en')} messages beyond` : '',
    ].filter(Boolean).join(' · ');
    $('no-topics').hidden = topics.count > 0;
    tree.draw();
  }

  function size(bytes) {
    if (bytes < 1000) return `${bytes} B`;
    const units = ['kB', 'MB', 'GB', 'TB'];
    const power = Math.min(units.length, Math.floor(Math.log10(bytes) / 3));
    return `${(bytes / 1000 ** power).toFixed(1)} ${units[power - 1]}`;
  }

  // MARK: Details

  async function showDetails(frame) {
    try {
      const response = await fetch(`frame?number=${frame.number}`, { cache: 'no-store' });
      if (!response.ok) throw new Error((await response.text()).trim());
      const details = await response.json();
      if (table.selected === frame.number) show(details, frame);
    } catch (error) {
      if (table.selected !== frame.number) return;
      show({ ...frame, fields: [], bytes: '', payload: null, problem: error.message }, frame);
    }
  }

  function show(details, { answer }) {
    setDetailed(true);
    $('details-title').textContent = details.type;
    $('about').textContent = details.problem ?? [
      `${details.sent ? 'sent' : 'received'} at ${clock(details.time)}`, `${details.size.toLocaleString('en')} bytes`,
      answer === undefined ? '' : `answered after ${duration(answer)}`,
      details.protocol, `connection ${details.connection}`, details.client,
    ].filter(Boolean).join(' · ');
    fillList($('fields'), details.fields);
    $('payload').hidden = details.payload === null;
    $('payload').querySelector('pre').textContent = details.payload ?? '';
    $('bytes').textContent = dump(details.bytes, details.size);
    table.draw();
  }

  function fillList(list, entries) {
    list.replaceChildren(...entries.map(([name, value]) => {
      const entry = document.createElement('div');
      entry.append(document.createElement('dt'), document.createElement('dd'));
      entry.firstChild.textContent = name;
      entry.lastChild.textContent = value;
      return entry;
    }));
  }

  // Eight bytes to a line: their place, their digits and what they are as text.
  function dump(digits, length) {
    const bytes = digits.match(/../g) ?? [];
    const lines = [];
    for (let start = 0; start < bytes.length; start += 8) {
      const part = bytes.slice(start, start + 8);
      const text = part.map((byte) => {
        const code = parseInt(byte, 16);
        return code >= 0x20 && code < 0x7f ? String.fromCharCode(code) : '·';
      }).join('');
      lines.push(`${start.toString(16).padStart(4, '0')}  ${part.join(' ').padEnd(23)}  ${text}`);
    }
    if (bytes.length < length) lines.push(`… ${(length - bytes.length).toLocaleString('en')} more bytes`);
    return lines.join('\n');
  }

  function setDetailed(on) {
    document.querySelector('.details').hidden = !on;
    document.querySelector('main').classList.toggle('with-details', on);
  }

  // MARK: Publishing

  async function publish() {
    const output = $('published');
    output.className = 'faint';
    output.textContent = 'publishing…';
    try {
      const response = await fetch(`publish?topic=${encodeURIComponent($('topic').value)}`, {
        method: 'POST', headers: { 'Content-Type': 'application/octet-stream' },
        body: new TextEncoder().encode($('message').value),
      });
      if (!response.ok) throw new Error((await response.text()).trim());
      const { microseconds } = await response.json();
      output.className = 'good';
      output.textContent = `✓ after ${duration(microseconds / 1000)}`;
    } catch (error) {
      output.className = 'bad';
      output.textContent = error.message;
    }
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

  function setView(view) {
    document.body.dataset.view = view;
    for (const button of document.querySelectorAll('.views button')) {
      button.setAttribute('aria-pressed', String(button.dataset.view === view));
    }
  }

  $('pause').addEventListener('click', () => order(isPaused ? 'resume' : 'pause'));
  $('clear').addEventListener('click', () => order('clear'));
  $('follow').addEventListener('click', () => { table.follows = !table.follows; });
  $('close').addEventListener('click', () => table.deselect());
  $('all').addEventListener('click', () => tree.select(null));
  $('search').addEventListener('input', search);
  $('direction').addEventListener('change', search);
  $('publish').addEventListener('submit', (event) => {
    event.preventDefault();
    publish();
  });
  for (const button of document.querySelectorAll('.views button')) {
    button.addEventListener('click', () => setView(button.dataset.view));
  }
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || event.target.matches('input, select, textarea')) return;
    event.preventDefault();
    $('search').focus();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    chart.restyle();
    drawSide();
  });
  // Rates fall also when nothing arrives.
  setInterval(() => { if (sideIsDue || topics.count > 0) drawSide(); }, SIDE_PAUSE);

  listen();
  return {
    tree, get frames() { return frames; }, get shown() { return shown; }, get follows() { return table.follows; },
    get topics() { return topics; }, get updates() { return updates; }, get reconnects() { return reconnects; },
    get unanswered() { return unanswered.size; }, take,
  };
})();
