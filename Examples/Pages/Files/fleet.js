// What is known of a device from its fixes: how far and how fast it went, where it heads, and whether it is still there.
'use strict';

const Fleet = (() => {
  const EARTH_RADIUS = 6371008.8;
  // Milliseconds. Devices that send more often are not missed sooner; one that has sent once may take its time.
  const LEAST_INTERVAL = 1000;
  const FIRST_INTERVAL = 10000;
  const SILENT_AFTER = 3;
  const GONE_AFTER = 10;
  // Speed is measured over the last entries, which are a second apart at least.
  const ENTRIES = 6;
  const ENTRY_PAUSE = 1000;
  // A step is a jump when it is so many times as long as the usual ones, for each interval that it took, and faster than
  // any car: the recording has started over. Metres and metres a second.
  const JUMP_FACTOR = 10;
  const JUMP_LEAST_DISTANCE = 100;
  const JUMP_LEAST_STEP = 10;
  const JUMP_LEAST_SPEED = 70;
  // Milliseconds. Messages that come faster than this may as well have been held up.
  const JUMP_LEAST_PAUSE = 250;
  // So much longer than usual is enough where it leads back to where the way began.
  const RETURN_FACTOR = 1.5;
  // Less is what a receiver at rest reports.
  const LEAST_STEP = 1;

  const radians = (degrees) => (degrees * Math.PI) / 180;

  // Metres between two places on a sphere.
  function distance(a, b) {
    const [p, q] = [radians(a.latitude), radians(b.latitude)];
    const s = Math.sin((q - p) / 2) ** 2
      + Math.cos(p) * Math.cos(q) * Math.sin(radians(b.longitude - a.longitude) / 2) ** 2;
    return 2 * EARTH_RADIUS * Math.asin(Math.min(1, Math.sqrt(s)));
  }

  // The direction in which one sets out from the first place to the second: degrees clockwise from north.
  function bearing(a, b) {
    const [p, q, turn] = [radians(a.latitude), radians(b.latitude), radians(b.longitude - a.longitude)];
    const angle = Math.atan2(
      Math.sin(turn) * Math.cos(q), Math.cos(p) * Math.sin(q) - Math.sin(p) * Math.cos(q) * Math.cos(turn));
    return ((angle * 180) / Math.PI + 360) % 360;
  }

  class Device {
    fixes = 0;
    latitude = 0;
    longitude = 0;
    // As the device wrote it.
    time = '';
    // When the last fix arrived, in milliseconds of performance.now().
    heard = 0;
    // Milliseconds that usually pass between two fixes.
    interval = FIRST_INTERVAL;
    // Metres, metres a second, and degrees clockwise from north; the last two are null while unknown.
    length = 0;
    speed = null;
    heading = null;
    // The moments and lengths that speed is measured between, in milliseconds and metres.
    #entries = [];
    #stamp = NaN;
    // What lies between two fixes as a rule: metres, milliseconds of the device's clock and of ours; null before the second.
    #usual = null;
    // Where the way began: the first fix, or the one after the last jump.
    #start = null;

    constructor(id, colour) {
      this.id = id;
      this.colour = colour;
    }

    // Takes a fix that arrived at `now`; returns whether the device cannot have driven there from the last one.
    add({ latitude, longitude, time }, now) {
      const stamp = Date.parse(time);
      const before = { latitude: this.latitude, longitude: this.longitude };
      const pause = now - this.heard;
      const passed = Math.max(0, stamp - this.#stamp) || 0;
      const isFirst = this.fixes === 0;
      const isBack = stamp < this.#stamp;
      Object.assign(this, { latitude, longitude, time, heard: now });
      this.#stamp = stamp;
      this.fixes += 1;
      if (isFirst) {
        this.#start = { latitude, longitude };
        this.#restart(now);
        return false;
      }
      this.interval = Math.max(LEAST_INTERVAL, this.fixes === 2 ? pause : this.interval * 0.8 + pause * 0.2);
      const step = distance(before, this);
      // Back in time and elsewhere is a recording that has started over, however fast it is replayed.
      const jumps = (isBack && step >= JUMP_LEAST_DISTANCE) || this.#isJump(step, passed, pause);
      if (jumps || isBack) this.#restart(now);
      if (jumps) {
        this.#start = { latitude, longitude };
        return true;
      }
      const usual = this.#usual ?? { step, passed, pause };
      const mean = (old, latest) => old * 0.7 + latest * 0.3;
      this.#usual = {
        step: mean(usual.step, step), passed: mean(usual.passed, passed), pause: mean(usual.pause, pause),
      };
      this.length += step;
      if (step >= LEAST_STEP) this.heading = bearing(before, this);
      this.#measure(now);
      return false;
    }

    // 'here', 'silent' or 'gone'; no silence is counted from before the page was listening.
    presenceAt(now, listeningSince) {
      const silence = now - Math.max(this.heard, listeningSince);
      if (silence > GONE_AFTER * this.interval) return 'gone';
      return silence > SILENT_AFTER * this.interval ? 'silent' : 'here';
    }

    // Times in whole seconds say nothing about the last one.
    #isJump(step, passed, pause) {
      if (this.#usual === null || step < JUMP_LEAST_DISTANCE) return false;
      if (step / (Math.max(passed, pause) / 1000) < JUMP_LEAST_SPEED) return false;
      const { step: usualStep, passed: usualPassed, pause: usualPause } = this.#usual;
      const missed = Math.max(
        1, pause / Math.max(usualPause, JUMP_LEAST_PAUSE), usualPassed > 0 ? (passed - 1000) / usualPassed : 0);
      const way = Math.max(usualStep, JUMP_LEAST_STEP) * missed;
      // A fast or coarse replay takes steps that are a good part of the whole way.
      const isBackAtStart = distance(this.#start, this) <= way;
      return step > (isBackAtStart ? RETURN_FACTOR : JUMP_FACTOR) * way;
    }

    // Where the device writes when it was there, that counts: messages may be held up and come all at once.
    #clock(now) { return Number.isNaN(this.#stamp) ? now : this.#stamp; }

    #restart(now) {
      this.#entries = [{ at: this.#clock(now), length: this.length }];
      this.speed = null;
    }

    #measure(now) {
      const at = this.#clock(now);
      const last = this.#entries.at(-1);
      if (at - last.at < ENTRY_PAUSE) return;
      this.#entries.push({ at, length: this.length });
      if (this.#entries.length > ENTRIES) this.#entries.shift();
      const first = this.#entries[0];
      this.speed = (this.length - first.length) / ((at - first.at) / 1000);
    }
  }

  // MARK: In words and colours

  // Of equal lightness for all, and always the same for a name. What the names of a fleet have in common decides on the
  // first colour; the golden angle leads from number to number, as far from those before as a circle of hues allows.
  function colour(id) {
    const [, common, number] = id.match(/^(.*?)(\d{0,6})$/su);
    let hash = 0x811c9dc5;
    for (let i = 0; i < common.length; i += 1) hash = Math.imul(hash ^ common.charCodeAt(i), 0x01000193) >>> 0;
    return `oklch(0.62 0.17 ${((hash % 3600) / 10 + Number(number) * 137.508).toFixed(1) % 360})`;
  }

  const POINTS = ['N', 'NE', 'E', 'SE', 'S', 'SW', 'W', 'NW'];

  function compass(heading) { return POINTS[Math.round(heading / 45) % 8]; }

  function kilometres(metres) {
    if (metres < 1000) return `${metres.toFixed(0)} m`;
    return `${(metres / 1000).toFixed(metres < 100000 ? 1 : 0)} km`;
  }

  function ago(milliseconds) {
    const seconds = Math.max(0, Math.round(milliseconds / 1000));
    if (seconds < 2) return 'now';
    if (seconds < 120) return `${seconds} s ago`;
    const minutes = Math.floor(seconds / 60);
    return minutes < 120 ? `${minutes} min ago` : `${Math.floor(minutes / 60)} h ago`;
  }

  return { Device, distance, bearing, colour, compass, kilometres, ago };
})();
