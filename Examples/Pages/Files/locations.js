// Headquarters of the locations: watches every device on one topic and writes texts to each device's own queue.
//
//     SUBSCRIBE /topic/device.*.location       {"deviceID":"…","lat":37.3352,"lng":-122.0325,"ts":"2014-03-13T17:19:05+01:00"}
//     SEND      /queue/device.{id}.text        plain text, persistent:true
'use strict';

const Locations = (() => {
  const { $ } = Panel;
  const LOCATIONS = '/topic/device.*.location';
  const MOST_DEVICES = 2000;
  const MOST_TEXTS = 100;
  const LIST_PAUSE = 250;

  const devices = new Map();
  // The devices of the list, by their identifiers: "van-2" before "van-10".
  const order = [];
  const collator = new Intl.Collator('en', { numeric: true });
  const dirty = new Set();
  let selected = null;
  let client = null;
  let listeningSince = 0;
  let subscription = null;
  let ignored = 0;
  let hasReportedMost = false;

  const map = new WorldMap($('map'), {
    onSelect: (id) => select(id, { fromMap: true }),
    onView: ({ isFitting, followed }) => {
      $('fit').setAttribute('aria-pressed', String(isFitting));
      $('follow').setAttribute('aria-pressed', String(followed !== null));
    },
  });

  // The program that serves the page knows where its recording was made.
  map.place = (new URLSearchParams(location.search).get('place') ?? '').slice(0, 80);

  const panel = new Panel.Panel({
    settings: () => ({ host: $('host').value.trim() || '/' }),
    dial: ({ url, user, password, host }, events) =>
      new Stomp.Client({ url, login: user, passcode: user ? password : '', host, ...events }),
    onState: (state, connected) => {
      client = connected;
      subscription = null;
      if (state === 'off') forgetAll();
      if (client) subscribe();
      offerText();
    },
  });

  const rate = new Panel.Rate((perSecond) => {
    $('rate').textContent = perSecond > 0 ? `${perSecond.toFixed(perSecond < 10 ? 1 : 0)} messages/s` : '';
  });

  // MARK: Locations

  function subscribe() {
    const selector = $('selector').value.trim();
    listeningSince = performance.now();
    subscription = client.subscribe(LOCATIONS, { selector }, receive);
    const { id } = subscription;
    subscription.receipt.then(
      () => { if (subscription?.id === id) panel.subscribed(`${LOCATIONS}${selector ? ` where ${selector}` : ''}`); },
      () => {});
  }

  function receive({ body }) {
    rate.tick();
    const fix = read(body);
    if (!fix) {
      ignored += 1;
      return panel.notice(`A message that is no location was ignored (${ignored} so far)`);
    }
    let device = devices.get(fix.id);
    if (!device) {
      if (devices.size >= MOST_DEVICES) return reportMost();
      device = Object.assign(new Fleet.Device(fix.id, Fleet.colour(fix.id)), {
        row: null, presence: 'here', since: new Date().toLocaleTimeString(),
      });
      devices.set(fix.id, device);
    }
    const jumps = device.add(fix, performance.now());
    dirty.add(device);
    if (device.row === null) Frames.draw(list);
    map.move(fix.id, fix.latitude, fix.longitude, { colour: device.colour, heading: device.heading, jumps });
    return undefined;
  }

  function reportMost() {
    if (!hasReportedMost) panel.notice(`Only the first ${MOST_DEVICES} devices are shown`);
    hasReportedMost = true;
  }

  // What devices send is checked as what any stranger sends; null when it is no location.
  function read(body) {
    try {
      const { deviceID, lat, lng, ts } = JSON.parse(body);
      const isNamed = typeof deviceID === 'string' && deviceID.length > 0 && deviceID.length <= 200;
      // Of null, "" and [] the amount is 0, which is a place.
      const isPlace = typeof lat === 'number' && typeof lng === 'number' && Math.abs(lat) <= 90 && Math.abs(lng) <= 180;
      if (!isNamed || !isPlace) return null;
      return { id: deviceID, latitude: lat, longitude: lng, time: typeof ts === 'string' ? ts : '' };
    } catch {
      return null;
    }
  }

  // MARK: The list

  function list() {
    for (const device of dirty) {
      if (device.row === null && devices.has(device.id)) addRow(device);
      refresh(device);
    }
    dirty.clear();
    $('count').textContent = devices.size;
    $('empty').hidden = devices.size > 0;
    $('filter').hidden = devices.size <= 8;
    sayPresence();
  }

  function addRow(device) {
    const row = document.createElement('li');
    row.innerHTML = '<button type="button" class="device" aria-pressed="false"><span class="dot"></span>'
      + '<span class="id"></span><span class="ago"></span><span class="place"></span>'
      + '<span class="drive"><span class="length"></span><i aria-hidden="true"></i><span class="speed"></span></span></button>';
    const [button] = row.children;
    button.style.setProperty('--device', device.colour);
    button.tabIndex = order.length === 0 ? 0 : -1;
    button.querySelector('.id').textContent = device.id;
    button.addEventListener('click', () => select(device.id === selected ? null : device.id));
    button.addEventListener('focus', () => {
      for (const other of devices.values()) if (other.button) other.button.tabIndex = other === device ? 0 : -1;
    });
    Object.assign(device, {
      row, button, place: button.querySelector('.place'), arrow: button.querySelector('i'),
      lengthText: button.querySelector('.length'), speedText: button.querySelector('.speed'), ago: button.querySelector('.ago'),
    });
    row.hidden = !matches(device);
    const next = place(device);
    $('devices').insertBefore(row, order[next]?.row ?? null);
    order.splice(next, 0, device);
  }

  // Where a device belongs in the list.
  function place({ id }) {
    let [low, high] = [0, order.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (collator.compare(order[middle].id, id) <= 0) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function refresh(device) {
    if (!device.place) return;
    const { latitude, longitude, length, speed, heading } = device;
    put(device.place, `φ:${latitude.toFixed(4)}, λ:${longitude.toFixed(4)}`);
    put(device.lengthText, Fleet.kilometres(length));
    put(device.speedText, speed === null ? '' : `${(speed * 3.6).toFixed(0)} km/h`);
    device.arrow.hidden = heading === null;
    if (heading !== null) device.arrow.style.rotate = `${heading.toFixed(0)}deg`;
    appear(device, performance.now());
  }

  // What changes with time alone.
  function appear(device, now) {
    if (!device.ago) return;
    const isListening = client !== null;
    const presence = isListening ? device.presenceAt(now, listeningSince) : device.presence;
    if (presence !== device.presence || device.row.dataset.presence === undefined) {
      device.presence = presence;
      device.row.dataset.presence = presence;
      map.mark(device.id, presence);
    }
    const ago = Fleet.ago(now - device.heard);
    put(device.ago, presence === 'gone' ? `gone, ${ago}` : ago);
    const heading = device.heading === null ? '' : `, heading ${Fleet.compass(device.heading)}`;
    const title = `${device.id}\nlast fix ${device.time || ago}${heading}\n${Fleet.kilometres(device.length)} since ${device.since}`;
    if (device.button.title !== title) device.button.title = title;
  }

  function age(now = performance.now()) {
    for (const device of devices.values()) appear(device, now);
    sayPresence();
  }

  function sayPresence() {
    const counts = { here: 0, silent: 0, gone: 0 };
    for (const { presence } of devices.values()) counts[presence] += 1;
    put($('presence'), [
      counts.silent > 0 ? `${counts.silent} silent` : '', counts.gone > 0 ? `${counts.gone} gone` : '',
    ].filter(Boolean).join(' · '));
    $('forget').hidden = counts.gone === 0;
  }

  function put(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  const matches = ({ id }) => id.toLowerCase().includes($('filter').value.trim().toLowerCase());

  function select(id, { fromMap = false } = {}) {
    devices.get(selected)?.button?.setAttribute('aria-pressed', 'false');
    selected = devices.has(id) ? id : null;
    const device = devices.get(selected);
    device?.button?.setAttribute('aria-pressed', 'true');
    if (fromMap) device?.row?.scrollIntoView({ block: 'nearest' });
    map.select(selected);
    if (map.followed !== null) map.follow(selected);
    else if (device && !fromMap) map.show(selected);
    $('follow').disabled = !device;
    offerText();
  }

  function follow() {
    if (selected) map.follow(map.followed === selected ? null : selected);
  }

  function forget(device) {
    devices.delete(device.id);
    dirty.delete(device);
    device.row?.remove();
    if (order.includes(device)) order.splice(order.indexOf(device), 1);
    map.remove(device.id);
    if (device.id === selected) select(null);
    if (order.length > 0 && !order.some(({ button }) => button.tabIndex === 0)) order[0].button.tabIndex = 0;
  }

  function forgetGone() {
    for (const device of [...devices.values()]) if (device.presence === 'gone') forget(device);
    list();
  }

  function forgetAll() {
    devices.clear();
    order.length = 0;
    dirty.clear();
    select(null);
    ignored = 0;
    hasReportedMost = false;
    map.clear();
    $('devices').replaceChildren();
    list();
  }

  // The arrow keys lead from device to device; the others work on the one that they have led to.
  function key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const shown = order.filter(({ row }) => !row.hidden);
    const index = shown.findIndex(({ button }) => button === event.target);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8, Home: -shown.length, End: shown.length }[event.key];
    if (index < 0) return;
    if (step !== undefined) shown[Math.min(shown.length - 1, Math.max(0, index + step))].button.focus();
    else if (event.key === 'f') {
      if (shown[index].id !== selected) select(shown[index].id);
      follow();
    } else if (event.key === 'Escape') select(null);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // MARK: Texts

  function offerText() {
    $('text-label').textContent = selected ? `Text to ${selected}` : 'Choose a device to write to';
    $('text').disabled = !selected;
    $('send').disabled = !selected || !client;
  }

  function send(id, body) {
    const line = document.createElement('li');
    line.innerHTML = '<span class="body"></span><span class="to"></span><span class="receipt"></span>';
    line.querySelector('.body').textContent = body;
    line.querySelector('.to').textContent = `to ${id}`;
    $('sent').prepend(line);
    while ($('sent').children.length > MOST_TEXTS) $('sent').lastChild.remove();
    deliver(line, id, body);
  }

  function deliver(line, id, body) {
    const receipt = line.querySelector('.receipt');
    line.dataset.receipt = 'waiting';
    receipt.textContent = 'waiting for the receipt';
    // persistent: the text survives a restart of the broker while the device is away.
    const sending = client?.send(`/queue/device.${id}.text`, body, { persistent: 'true' })
      ?? Promise.reject(new Error('not connected'));
    sending.then(
      (milliseconds) => {
        line.dataset.receipt = 'received';
        receipt.textContent = `receipt after ${milliseconds.toFixed(0)} ms`;
      },
      () => {
        line.dataset.receipt = 'lost';
        receipt.textContent = 'no receipt ';
        const again = document.createElement('button');
        again.type = 'button';
        again.className = 'quiet';
        again.textContent = 'Send again';
        again.addEventListener('click', () => deliver(line, id, body));
        receipt.append(again);
      });
  }

  // MARK: Controls

  $('text-form').addEventListener('submit', (event) => {
    event.preventDefault();
    const body = $('text').value;
    if (!selected || !client || body.trim() === '') return;
    send(selected, body);
    $('text').value = '';
  });
  $('selector').addEventListener('change', () => {
    if (!client) return;
    if (subscription) client.unsubscribe(subscription.id);
    forgetAll();
    offerText();
    subscribe();
  });
  $('filter').addEventListener('input', () => {
    for (const device of devices.values()) if (device.row) device.row.hidden = !matches(device);
  });
  $('closer').addEventListener('click', () => map.zoomBy(0.75));
  $('farther').addEventListener('click', () => map.zoomBy(-0.75));
  $('fit').addEventListener('click', () => map.fit());
  $('follow').addEventListener('click', follow);
  $('forget').addEventListener('click', forgetGone);
  $('devices').addEventListener('keydown', key);
  $('map').addEventListener('keydown', (event) => {
    if (event.key !== 'f' || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    follow();
  });
  document.addEventListener('keydown', (event) => {
    if (event.key !== '/' || $('filter').hidden || event.target.matches('input')) return;
    event.preventDefault();
    $('filter').focus();
  });
  $('tiles').addEventListener('change', (event) => { map.streetTiles = event.target.checked; });
  setInterval(() => { if (dirty.size > 0) Frames.draw(list); }, LIST_PAUSE);
  setInterval(() => age(), 1000);

  panel.open();
  return { devices, map, select, follow, age, notice: (text) => panel.notice(text), get selected() { return selected; }, get ignored() { return ignored; } };
})();
