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
  const dirty = new Set();
  let selected = null;
  let client = null;
  let subscription = null;
  let ignored = 0;

  const map = new WorldMap($('map'), {
    onSelect: (id) => select(id, { fromMap: true }),
    onFitting: (on) => $('fit').setAttribute('aria-pressed', String(on)),
  });

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
    subscription = client.subscribe(LOCATIONS, { selector }, receive);
    const { id } = subscription;
    subscription.receipt.then(
      () => { if (subscription?.id === id) panel.notice(`Subscribed to ${LOCATIONS}${selector ? ` where ${selector}` : ''}`); },
      () => {});
  }

  function receive({ body }) {
    rate.tick();
    const fix = read(body);
    if (!fix) {
      ignored += 1;
      panel.notice(`A message that is no location was ignored (${ignored} so far)`);
      return;
    }
    let device = devices.get(fix.id);
    if (!device) {
      if (devices.size >= MOST_DEVICES) return;
      device = { id: fix.id, colour: colour(devices.size), row: null, fixes: 0 };
      devices.set(fix.id, device);
    }
    device.latitude = fix.latitude;
    device.longitude = fix.longitude;
    device.time = fix.time;
    device.heard = performance.now();
    device.fixes += 1;
    dirty.add(device);
    if (device.row === null) Frames.draw(list);
    map.move(fix.id, fix.latitude, fix.longitude, device.colour);
  }

  // What devices send is checked as what any stranger sends; null when it is no location.
  function read(body) {
    try {
      const { deviceID, lat, lng, ts } = JSON.parse(body);
      const isNamed = typeof deviceID === 'string' && deviceID.length > 0 && deviceID.length <= 200;
      if (!isNamed || !(Math.abs(lat) <= 90) || !(Math.abs(lng) <= 180)) return null;
      return { id: deviceID, latitude: Number(lat), longitude: Number(lng), time: typeof ts === 'string' ? ts : '' };
    } catch {
      return null;
    }
  }

  // Of equal lightness for all, and by the golden angle as far from those before as a circle of hues allows.
  function colour(index) {
    return `oklch(0.62 0.17 ${(255 + index * 137.508) % 360})`;
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
  }

  function addRow(device) {
    const row = document.createElement('li');
    const button = document.createElement('button');
    button.type = 'button';
    button.className = 'device';
    button.title = device.id;
    button.setAttribute('aria-pressed', 'false');
    button.style.setProperty('--device', device.colour);
    button.innerHTML = '<span class="dot"></span><span class="id"></span><span class="place"></span>';
    button.querySelector('.id').textContent = device.id;
    button.addEventListener('click', () => select(device.id === selected ? null : device.id));
    row.append(button);
    device.row = row;
    device.button = button;
    device.place = button.querySelector('.place');
    row.hidden = !matches(device);
    $('devices').append(row);
  }

  function refresh(device) {
    if (device.place) device.place.textContent = `φ:${device.latitude.toFixed(4)}, λ:${device.longitude.toFixed(4)}`;
  }

  const matches = ({ id }) => id.toLowerCase().includes($('filter').value.trim().toLowerCase());

  function select(id, { fromMap = false } = {}) {
    devices.get(selected)?.button?.setAttribute('aria-pressed', 'false');
    selected = devices.has(id) ? id : null;
    const device = devices.get(selected);
    device?.button?.setAttribute('aria-pressed', 'true');
    if (fromMap) device?.row?.scrollIntoView({ block: 'nearest' });
    map.select(selected);
    if (device && !fromMap) map.show(selected);
    offerText();
  }

  function forgetAll() {
    devices.clear();
    dirty.clear();
    selected = null;
    ignored = 0;
    map.clear();
    $('devices').replaceChildren();
    list();
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
  $('tiles').addEventListener('change', (event) => { map.streetTiles = event.target.checked; });
  setInterval(() => { if (dirty.size > 0) Frames.draw(list); }, LIST_PAUSE);

  panel.open();
  return { devices, map, select, get ignored() { return ignored; } };
})();
