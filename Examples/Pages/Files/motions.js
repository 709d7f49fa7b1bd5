// Headquarters of the motions: for each device a phone that lies as it does, three sparklines, and alerts that colour its
// screen.
//
//     SUBSCRIBE /mwm/+/motion       24 bytes: pitch, roll and yaw as big-endian doubles, in radians; retained
//     SUBSCRIBE /mwm/lastWill       {"deviceID":"…"}, from the broker when a device is gone without a farewell
//     SUBSCRIBE /mwm/lastWill/web   a sentence, from the broker when a page like this one is
//     PUBLISH   /mwm/{id}/alert     the name of a colour, QoS 1
//     last will /mwm/lastWill/web   "Web client {id} has unexpectedly died", QoS 2
'use strict';

const Motions = (() => {
  const { $ } = Panel;
  const MOTIONS = '/mwm/+/motion';
  const MOST_DEVICES = 2000;
  const MOST_EVENTS = 50;
  // Radians; as for the recordings of motions-device.
  const LARGEST_ANGLE = 1000;
  // Milliseconds for which an alert colours a screen.
  const ALERT_TIME = 2000;
  // Milliseconds between two turns of a phone for those who want less motion.
  const CALM_PAUSE = 1000;
  const clientID = `web-${crypto.getRandomValues(new Uint32Array(2)).join('-')}`;
  const text = new TextDecoder();
  const calm = matchMedia('(prefers-reduced-motion: reduce)');

  const collator = new Intl.Collator('en', { numeric: true });
  const devices = new Map();
  let client = null;
  let ignored = 0;
  let hasReportedMost = false;

  const panel = new Panel.Panel({
    dial: ({ url, user, password }, events) => new Mqtt.Client({
      url, clientID, user, password, keepAlive: 60, onMessage: receive,
      will: { topic: '/mwm/lastWill/web', payload: `Web client ${clientID} has unexpectedly died`, qos: 2, retain: false },
      ...events,
    }),
    onState: (state, connected) => {
      client = connected;
      if (state === 'off') forgetAll();
      client?.subscribe({ [MOTIONS]: 0, '/mwm/lastWill': 2, '/mwm/lastWill/web': 2 }).then(
        () => panel.subscribed(MOTIONS),
        (error) => panel.notice(error.message));
      for (const device of devices.values()) device.button.disabled = !client;
    },
  });

  const rate = new Panel.Rate((perSecond) => {
    $('rate').textContent = perSecond > 0 ? `${perSecond.toFixed(perSecond < 10 ? 1 : 0)} messages/s` : '';
  });

  // Cards out of sight are not drawn; they catch up when they come into it.
  const sight = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const device = devices.get(target.dataset.device);
      if (!device) continue;
      device.isSeen = isIntersecting;
      if (isIntersecting) Frames.draw(device.draw);
    }
  }, { rootMargin: '100px' });

  const sizes = new ResizeObserver((entries) => {
    for (const { target, contentRect } of entries) {
      const device = devices.get(target.closest('.card')?.dataset.device);
      if (!device) continue;
      device.sparkline.resize(contentRect.width, contentRect.height);
      device.sparkline.draw();
    }
  });

  // MARK: Messages

  function receive({ topic, payload, retain }) {
    rate.tick();
    if (payload === null) return ignore('too large');
    if (topic === '/mwm/lastWill') return died(payload);
    if (topic === '/mwm/lastWill/web') return note(text.decode(payload).slice(0, 200));
    // "/mwm/{id}/motion" has an empty part before its first slash.
    const [, , id, kind] = topic.split('/');
    if (kind !== 'motion') return undefined;
    const values = read(payload);
    if (!values || !id) return ignore('no motion');
    const device = devices.get(id) ?? appear(id);
    if (!device) return undefined;
    device.sparkline.add(values);
    device.values = values;
    device.isRetained = retain;
    if (device.isSeen) Frames.draw(device.draw);
    return undefined;
  }

  // Pitch, roll and yaw; null when the payload is something else. Larger numbers are no angles in radians: one of them would
  // leave no digits for the small turns that follow.
  function read(payload) {
    if (payload.length !== 24) return null;
    const view = new DataView(payload.buffer, payload.byteOffset, 24);
    const values = [view.getFloat64(0), view.getFloat64(8), view.getFloat64(16)];
    return values.every((angle) => Math.abs(angle) <= LARGEST_ANGLE) ? values : null;
  }

  function died(payload) {
    let id;
    try {
      id = JSON.parse(text.decode(payload)).deviceID;
    } catch {
      return ignore('no last will');
    }
    if (typeof id !== 'string') return ignore('no last will');
    note(`${id.slice(0, 200)} is gone: its last will arrived`);
    const device = devices.get(id);
    if (device) forget(device);
    return undefined;
  }

  // MARK: Events

  // A line in the strip of events, which has its place also while it is empty.
  function note(words) {
    const line = document.createElement('li');
    line.innerHTML = '<time></time><span></span>';
    line.firstChild.textContent = new Date().toLocaleTimeString();
    line.lastChild.textContent = words;
    $('events').prepend(line);
    while ($('events').children.length > MOST_EVENTS) $('events').lastChild.remove();
  }

  function ignore(what) {
    ignored += 1;
    panel.notice(`A message that is ${what} was ignored (${ignored} so far)`);
  }

  // MARK: Devices

  function appear(id) {
    if (devices.size >= MOST_DEVICES) return reportMost();
    const card = $('device').content.firstElementChild.cloneNode(true);
    const canvas = card.querySelector('canvas');
    const device = {
      id, card, values: null, isSeen: false, isRetained: false,
      sparkline: new Sparkline.Sparkline(canvas),
      degrees: [...card.querySelectorAll('dd')].map((cell) => cell.appendChild(document.createTextNode(''))),
      phone: card.querySelector('.phone'), angles: null, turnedAt: -Infinity, turning: 0,
      note: card.querySelector('.note'),
      button: card.querySelector('button'),
      output: card.querySelector('output'),
      draw: () => show(device),
    };
    devices.set(id, device);
    card.dataset.device = id;
    card.querySelector('h3').textContent = id;
    card.querySelector('h3').title = id;
    card.hidden = !matches(device);
    const colour = card.querySelector('select');
    const swatch = card.querySelector('.swatch');
    colour.addEventListener('change', () => { swatch.style.background = colour.value; });
    swatch.style.background = colour.value;
    device.button.disabled = !client;
    device.button.setAttribute('aria-label', `Alert! ${id}`);
    card.querySelector('form').addEventListener('submit', (event) => {
      event.preventDefault();
      alert(device, colour.value);
    });
    arrivals.push(device);
    Frames.draw(arrive);
    return device;
  }

  function reportMost() {
    if (!hasReportedMost) panel.notice(`Only the first ${MOST_DEVICES} devices are shown`);
    hasReportedMost = true;
    return null;
  }

  // All cards of a frame in one go, in the order of their names: the page is laid out once.
  const arrivals = [];

  function arrive() {
    const present = arrivals.filter((device) => devices.get(device.id) === device);
    present.sort((a, b) => collator.compare(a.id, b.id));
    let next = $('devices').firstElementChild;
    for (const { id, card } of present) {
      while (next && collator.compare(next.dataset.device, id) <= 0) next = next.nextElementSibling;
      $('devices').insertBefore(card, next);
      sight.observe(card);
      sizes.observe(card.querySelector('canvas'));
    }
    arrivals.length = 0;
    count();
  }

  function show(device) {
    device.sparkline.draw();
    turn(device);
    device.values.forEach((radians, index) => {
      const degrees = `${Math.round((radians * 180) / Math.PI)}°`;
      if (device.degrees[index].data !== degrees) device.degrees[index].data = degrees;
    });
    const note = device.isRetained ? 'retained: the last motion that the broker kept' : '';
    if (device.note.textContent !== note) device.note.textContent = note;
  }

  // Core Motion's angles: the phone lies on its back, is turned about the upright axis (yaw), raised at its top (pitch) and
  // tilted to its right (roll). In CSS the second axis points down, so that two of them turn the other way.
  function turn(device) {
    const now = performance.now();
    const early = calm.matches ? CALM_PAUSE - (now - device.turnedAt) : 0;
    if (early > 0) {
      // The last motion is shown in the end, even if no other follows.
      device.turning ||= setTimeout(() => {
        device.turning = 0;
        turn(device);
      }, early);
      return;
    }
    device.turnedAt = now;
    const before = device.angles ?? device.values;
    // The short way round: from 179° to −179° are two degrees.
    device.angles = device.values.map((angle, index) => {
      const way = angle - before[index];
      return before[index] + way - 2 * Math.PI * Math.round(way / (2 * Math.PI));
    });
    const [pitch, roll, yaw] = device.angles.map((angle) => (angle * 180) / Math.PI);
    device.phone.style.transform =
      `rotateZ(${(-yaw).toFixed(1)}deg) rotateX(${(-pitch).toFixed(1)}deg) rotateY(${roll.toFixed(1)}deg)`;
  }

  function forget(device) {
    devices.delete(device.id);
    Frames.cancel(device.draw);
    sight.unobserve(device.card);
    sizes.unobserve(device.card.querySelector('canvas'));
    device.card.remove();
    Frames.draw(count);
  }

  function forgetAll() {
    for (const device of devices.values()) forget(device);
    ignored = 0;
    hasReportedMost = false;
    $('events').replaceChildren();
    count();
  }

  function count() {
    $('count').textContent = devices.size;
    $('empty').hidden = devices.size > 0;
    $('filter').hidden = devices.size <= 8;
  }

  const matches = ({ id }) => id.toLowerCase().includes($('filter').value.trim().toLowerCase());

  // MARK: Alerts

  function alert(device, colour) {
    if (!client) return;
    device.output.textContent = '…';
    client.publish(`/mwm/${device.id}/alert`, colour, { qos: 1 }).then(
      (milliseconds) => {
        const time = new Date().toLocaleTimeString('en-GB');
        device.output.textContent = `${colour} acknowledged at ${time}, ${milliseconds.toFixed(0)} ms`;
        flash(device, colour);
      },
      (error) => {
        device.output.textContent = `not sent: ${error.message}`;
      });
  }

  // The phone shows what the device's screen shows.
  function flash(device, colour) {
    clearTimeout(device.flash);
    device.phone.style.setProperty('--screen', colour);
    device.flash = setTimeout(() => device.phone.style.removeProperty('--screen'), ALERT_TIME);
  }

  $('filter').addEventListener('input', () => {
    for (const device of devices.values()) device.card.hidden = !matches(device);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    Sparkline.restyle();
    for (const device of devices.values()) if (device.values) Frames.draw(device.draw);
  });

  panel.open();
  return { devices, clientID, notice: (text) => panel.notice(text), get ignored() { return ignored; } };
})();
