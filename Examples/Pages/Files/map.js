// A map that needs no network: a graticule in Web Mercator, the tracks that devices have left, and markers that glide
// from fix to fix. Street tiles can be laid underneath where there is a network.
//
// Positions are kept in "world units": the projected world is a square from (0, 0) in the north-west to (1, 1). Three
// layers lie on each other: lines and tiles, redrawn when the view changes; tracks, which only grow until then; and the
// markers, which are buttons, so that they have titles and can be clicked.
'use strict';

const WorldMap = (() => {
  const TILE = 256;
  const TILES = 'https://tile.openstreetmap.org';
  const CREDIT =
    '© <a href="https://www.openstreetmap.org/copyright" rel="noreferrer">OpenStreetMap</a> contributors';
  const NEAREST = 18;
  const FARTHEST = 0;
  const FIT_LIMIT = 16;
  const FOLLOW_ZOOM = 13;
  const PADDING = 56;
  // The height of north and the scale, with a margin.
  const CORNER = 44;
  // For so many milliseconds after the first device the map jumps to where all are, instead of flying through half the world.
  const ARRIVAL = 1000;
  const MARKER_PAUSE = 0.25;
  const TRACK_POINTS = 400;
  // Nearer than this (some four metres) is not worth a point of a track.
  const TRACK_STEP = 1e-7;
  const TILE_CACHE = 200;
  const MERCATOR_LIMIT = 85.0511;
  const EARTH = 40075017;
  const STEPS = [45, 30, 15, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005];

  const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
  const projectX = (longitude) => (longitude + 180) / 360;
  const projectY = (latitude) => {
    const angle = (clamp(latitude, -MERCATOR_LIMIT, MERCATOR_LIMIT) * Math.PI) / 180;
    return 0.5 - Math.log(Math.tan(Math.PI / 4 + angle / 2)) / (2 * Math.PI);
  };
  const longitudeOf = (x) => x * 360 - 180;
  const latitudeOf = (y) => (Math.atan(Math.sinh(Math.PI * (1 - 2 * y))) * 180) / Math.PI;
  const ease = (t) => 1 - (1 - t) ** 3;

  // The way a device has taken. When there is no room left, every second point of the older half goes: the whole
  // journey stays, coarser towards its beginning.
  class Track {
    points = new Float64Array(2 * TRACK_POINTS);
    // 1 where a point starts another piece, which no line joins to the one before.
    starts = new Uint8Array(TRACK_POINTS);
    count = 0;

    add(x, y, startsPiece = false) {
      const last = 2 * (this.count - 1);
      const isNear = this.count > 0 && Math.hypot(x - this.points[last], y - this.points[last + 1]) < TRACK_STEP;
      if (isNear && !startsPiece) return;
      if (this.count === TRACK_POINTS) this.#thin();
      this.points[2 * this.count] = x;
      this.points[2 * this.count + 1] = y;
      this.starts[this.count] = startsPiece || this.count === 0 ? 1 : 0;
      this.count += 1;
    }

    #thin() {
      const half = TRACK_POINTS / 2;
      let to = 0;
      let startsPiece = 0;
      for (let from = 0; from < TRACK_POINTS; from += 1) {
        startsPiece |= this.starts[from];
        if (from < half && from % 2 === 1) continue;
        this.points[2 * to] = this.points[2 * from];
        this.points[2 * to + 1] = this.points[2 * from + 1];
        // A piece whose first point goes starts at the next one.
        this.starts[to] = startsPiece;
        startsPiece = 0;
        to += 1;
      }
      this.count = to;
    }
  }

  class WorldMap {
    #box;
    #ground;
    #tracks;
    #overlay;
    #scaleBar;
    #where;
    #bubble;
    #credit;
    #devices = new Map();
    #view = { x: projectX(-122.2), y: projectY(37.55), zoom: 8 };
    #flight = null;
    #fitting = true;
    #followed = null;
    #fittedAt = 0;
    #fitDue = false;
    // When the first device came.
    #begunAt = 0;
    #drawnAt = 0;
    #width = 1;
    #height = 1;
    #viewChanged = true;
    #selected = null;
    #onSelect;
    #onView;
    #colours = {};
    #tilesOn = false;
    #tiles = new Map();
    #calm = matchMedia('(prefers-reduced-motion: reduce)');
    #task = (now) => this.#draw(now);

    // - onSelect(id or null): a marker was clicked, or the ground beside them
    // - onView({ isFitting, followed }): whether the view holds all devices by itself, and the device that it follows or null
    constructor(box, { onSelect, onView }) {
      this.#box = box;
      this.#onSelect = onSelect;
      this.#onView = onView;
      this.#ground = this.#layer('canvas', 'ground');
      this.#tracks = this.#layer('canvas', 'tracks');
      this.#overlay = this.#layer('div', 'overlay');
      const corner = this.#layer('div', 'corner');
      corner.innerHTML = '<span class="north" title="North is up">N</span><span class="scale"></span><span class="where"></span>';
      [, this.#scaleBar, this.#where] = corner.children;
      this.#credit = this.#layer('div', 'credit');
      this.#bubble = document.createElement('div');
      this.#bubble.className = 'bubble';
      this.#bubble.hidden = true;
      this.#overlay.append(this.#bubble);
      this.#credit.hidden = true;
      new ResizeObserver(() => this.#resize()).observe(box);
      matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.#restyle());
      this.#listen();
      this.#resize();
      this.#restyle();
    }

    get size() { return this.#devices.size; }
    get followed() { return this.#followed; }

    // The name of the place that the map shows; empty if unknown.
    set place(name) { this.#where.textContent = name; }

    // The track of a device in pieces, each a list of latitudes with longitudes.
    pieces(id) {
      const { points, starts, count } = this.#devices.get(id).track;
      const pieces = [];
      for (let i = 0; i < count; i += 1) {
        if (starts[i] === 1) pieces.push([]);
        pieces.at(-1).push([latitudeOf(points[2 * i + 1]), longitudeOf(points[2 * i])]);
      }
      return pieces;
    }

    // Creates the marker of a device, or lets it glide to its new place; one that `jumps` is there at once.
    move(id, latitude, longitude, { colour, heading, jumps }) {
      const now = performance.now();
      const x = projectX(longitude);
      const y = projectY(latitude);
      let device = this.#devices.get(id);
      if (!device) {
        device = {
          id, colour, x, y, fromX: x, fromY: y, toX: x, toY: y, start: now, end: now, drawnX: x, drawnY: y, heard: now,
          minX: x, maxX: x, minY: y, maxY: y, track: new Track(), marker: this.#marker(id, colour), placed: false, heading: null,
        };
        device.track.add(x, y);
        if (this.#devices.size === 0) this.#begunAt = now;
        this.#devices.set(id, device);
        this.#fittedAt = 0;
      } else {
        // A marker that is far from its last fix, as no frame was drawn or the next fix came early, is taken there: the
        // track goes through it.
        if (this.#glide(device, now) < 0.5) Object.assign(device, { x: device.toX, y: device.toY });
        if (!this.#viewChanged) this.#lengthen(device, this.#tracks.getContext('2d'));
        device.track.add(device.x, device.y);
        if (jumps) {
          device.track.add(device.toX, device.toY);
          device.track.add(x, y, true);
          Object.assign(device, { x, y, drawnX: x, drawnY: y });
        }
        // As long as the device took between its last two fixes: it then moves without stops.
        const pause = this.#calm.matches ? 0 : clamp(now - device.heard, 50, 1200);
        Object.assign(device, {
          fromX: device.x, fromY: device.y, toX: x, toY: y, start: now, end: now + pause, heard: now,
          minX: Math.min(device.minX, x), maxX: Math.max(device.maxX, x),
          minY: Math.min(device.minY, y), maxY: Math.max(device.maxY, y),
        });
      }
      if (heading !== null && heading !== device.heading) {
        device.heading = heading;
        device.marker.style.setProperty('--heading', `${heading.toFixed(0)}deg`);
        device.marker.dataset.heads = '';
      }
      device.placed = false;
      this.#fitDue = true;
      Frames.draw(this.#task);
    }

    // Shows whether a device is 'here', 'silent' or 'gone'.
    mark(id, presence) {
      const marker = this.#devices.get(id)?.marker;
      if (!marker) return;
      marker.dataset.presence = presence;
      marker.title = presence === 'gone' ? `${id} was last here` : `${id} is here`;
    }

    remove(id) {
      this.#devices.get(id)?.marker.remove();
      this.#devices.delete(id);
      this.#forgetIfAway();
      this.#fitDue = true;
      this.#viewChanged = true;
      Frames.draw(this.#task);
    }

    clear() {
      for (const device of this.#devices.values()) device.marker.remove();
      this.#devices.clear();
      this.#forgetIfAway();
      this.#viewChanged = true;
      Frames.draw(this.#task);
    }

    select(id) {
      this.#devices.get(this.#selected)?.marker.removeAttribute('aria-pressed');
      this.#selected = this.#devices.has(id) ? id : null;
      const device = this.#devices.get(this.#selected);
      device?.marker.setAttribute('aria-pressed', 'true');
      this.#bubble.hidden = !device;
      this.#bubble.textContent = device ? `Device ${id}` : '';
      if (device) device.placed = false;
      Frames.draw(this.#task);
    }

    // Brings a device into view without changing the scale.
    show(id) {
      const device = this.#devices.get(id);
      if (!device) return;
      const [x, y] = this.#toScreen(device.toX, device.toY);
      if (x > PADDING && y > PADDING && x < this.#width - PADDING && y < this.#height - PADDING) return;
      this.#setView(false);
      this.#fly({ x: device.toX, y: device.toY, zoom: this.#view.zoom });
    }

    // Keeps a device in the middle until the map is moved; null ends that. Zooming does not.
    follow(id) {
      const device = this.#devices.get(id);
      this.#setView(false, device ? id : null);
      this.#flight = null;
      if (!device) return;
      device.placed = false;
      this.#see({ x: device.x, y: device.y, zoom: Math.max(this.#view.zoom, FOLLOW_ZOOM) });
    }

    // From now on the view shows all devices and their tracks, until the user moves it.
    fit() {
      this.#setView(true);
      this.#fittedAt = 0;
      this.#fitDue = true;
      Frames.draw(this.#task);
    }

    zoomBy(steps, x = this.#width / 2, y = this.#height / 2) {
      const zoom = clamp(this.#view.zoom + steps, FARTHEST, NEAREST);
      const followed = this.#devices.get(this.#followed);
      if (followed) return this.#see({ x: followed.x, y: followed.y, zoom });
      const [worldX, worldY] = this.#toWorld(x, y);
      const scale = TILE * 2 ** zoom;
      this.#setView(false);
      this.#flight = null;
      return this.#see({ x: worldX - (x - this.#width / 2) / scale, y: worldY - (y - this.#height / 2) / scale, zoom });
    }

    panBy(x, y) {
      const scale = this.#scale();
      this.#setView(false);
      this.#flight = null;
      this.#see({ ...this.#view, x: this.#view.x - x / scale, y: this.#view.y - y / scale });
    }

    set streetTiles(on) {
      this.#tilesOn = on;
      this.#credit.hidden = !on;
      this.#credit.innerHTML = CREDIT;
      this.#tiles.clear();
      this.#viewChanged = true;
      Frames.draw(this.#task);
    }

    // Where a device's marker is now, for those who cannot look: { x, y } in pixels, { latitude, longitude }.
    position(id) {
      const device = this.#devices.get(id);
      if (!device) return null;
      const [x, y] = this.#toScreen(device.x, device.y);
      return { x, y, latitude: latitudeOf(device.y), longitude: longitudeOf(device.x) };
    }

    // MARK: Making and styling

    #layer(element, name) {
      const layer = document.createElement(element);
      layer.className = `layer ${name}`;
      this.#box.append(layer);
      return layer;
    }

    #marker(id, colour) {
      const marker = document.createElement('button');
      marker.type = 'button';
      marker.className = 'marker';
      // Until the next frame, which places it.
      marker.hidden = true;
      // Keyboard users choose a device in the list: two hundred more stops of the Tab key would be in the way.
      marker.tabIndex = -1;
      marker.title = `${id} is here`;
      marker.style.setProperty('--device', colour);
      marker.addEventListener('click', (event) => {
        event.stopPropagation();
        this.#onSelect(id);
      });
      this.#overlay.append(marker);
      return marker;
    }

    #restyle() {
      const style = getComputedStyle(this.#box);
      for (const name of ['land', 'line', 'fine', 'label']) {
        this.#colours[name] = style.getPropertyValue(`--map-${name}`).trim();
      }
      this.#colours.font = `11px ${style.fontFamily}`;
      this.#viewChanged = true;
      Frames.draw(this.#task);
    }

    #resize() {
      const ratio = devicePixelRatio || 1;
      this.#width = Math.max(1, this.#box.clientWidth);
      this.#height = Math.max(1, this.#box.clientHeight);
      for (const canvas of [this.#ground, this.#tracks]) {
        canvas.width = Math.round(this.#width * ratio);
        canvas.height = Math.round(this.#height * ratio);
        canvas.getContext('2d').setTransform(ratio, 0, 0, ratio, 0, 0);
      }
      this.#fittedAt = 0;
      this.#fitDue = true;
      this.#viewChanged = true;
      Frames.draw(this.#task);
    }

    // MARK: The view

    #scale() { return TILE * 2 ** this.#view.zoom; }

    #toScreen(x, y) {
      const scale = this.#scale();
      return [(x - this.#view.x) * scale + this.#width / 2, (y - this.#view.y) * scale + this.#height / 2];
    }

    #toWorld(x, y) {
      const scale = this.#scale();
      return [(x - this.#width / 2) / scale + this.#view.x, (y - this.#height / 2) / scale + this.#view.y];
    }

    #see({ x, y, zoom }) {
      this.#view = { x: clamp(x, 0, 1), y: clamp(y, 0, 1), zoom: clamp(zoom, FARTHEST, NEAREST) };
      this.#viewChanged = true;
      Frames.draw(this.#task);
    }

    #setView(isFitting, followed = null) {
      if (isFitting === this.#fitting && followed === this.#followed) return;
      this.#fitting = isFitting;
      this.#followed = followed;
      this.#onView({ isFitting, followed });
    }

    #forgetIfAway() {
      if (!this.#devices.has(this.#followed)) this.#setView(this.#fitting, null);
      if (!this.#devices.has(this.#selected)) this.select(null);
    }

    #fly(to) {
      const now = performance.now();
      if (this.#calm.matches) return this.#see(to);
      this.#flight = { from: this.#view, to, start: now, end: now + 500 };
      return Frames.draw(this.#task);
    }

    // A new view when devices have left the old one, or when it has become far too wide; otherwise it rests.
    #refit(now) {
      if (!this.#fitting || this.#devices.size === 0) this.#fitDue = false;
      if (!this.#fitDue || (this.#fittedAt > 0 && now - this.#fittedAt < 500)) return undefined;
      const isFirst = this.#fittedAt === 0;
      this.#fitDue = false;
      this.#fittedAt = now;
      let [west, north, east, south] = [1, 1, 0, 0];
      for (const device of this.#devices.values()) {
        west = Math.min(west, device.minX);
        east = Math.max(east, device.maxX);
        north = Math.min(north, device.minY);
        south = Math.max(south, device.maxY);
      }
      const width = Math.max(1, this.#width - 2 * PADDING) / TILE;
      const height = Math.max(1, this.#height - 2 * PADDING) / TILE;
      const fitting = Math.log2(Math.min(width / Math.max(east - west, 1e-9), height / Math.max(south - north, 1e-9)));
      const target = this.#flight?.to ?? this.#view;
      const scale = TILE * 2 ** target.zoom;
      const reachX = (this.#width / 2 - PADDING / 2) / scale;
      const reachY = (this.#height / 2 - PADDING / 2) / scale;
      const isInside = west > target.x - reachX && east < target.x + reachX
        && north > target.y - reachY && south < target.y + reachY;
      const ideal = clamp(fitting, 1, FIT_LIMIT);
      if (!isFirst && isInside && ideal - target.zoom < 1) return undefined;
      // A little farther than needed: devices that move out should not make the map jump at each step.
      const begins = now - this.#begunAt < ARRIVAL;
      const isExact = begins ? ideal === FIT_LIMIT : isFirst || isInside;
      const view = { x: (west + east) / 2, y: (north + south) / 2, zoom: isExact ? ideal : Math.max(1, ideal - 0.35) };
      if (!begins) return this.#fly(view);
      this.#flight = null;
      return this.#see(view);
    }

    // MARK: Drawing

    #draw(now) {
      this.#refit(now);
      this.#advance(now);
      this.#chase(now);
      // Many markers move less often, so that a frame keeps room for everything else: two hundred twenty times a second.
      if (!this.#viewChanged && now - this.#drawnAt < this.#devices.size * MARKER_PAUSE) return Frames.draw(this.#task);
      this.#drawnAt = now;
      if (this.#viewChanged) this.#drawGround();
      const context = this.#tracks.getContext('2d');
      if (this.#viewChanged) this.#drawTracks(context);
      let isMoving = this.#flight !== null;
      for (const device of this.#devices.values()) {
        if (!this.#viewChanged && device.placed) continue;
        isMoving = this.#place(device, now, context) || isMoving;
      }
      this.#viewChanged = false;
      if (isMoving || this.#fitDue) Frames.draw(this.#task);
      return undefined;
    }

    #advance(now) {
      if (!this.#flight) return;
      const { from, to, start, end } = this.#flight;
      const t = ease(clamp((now - start) / (end - start), 0, 1));
      this.#see({
        x: from.x + (to.x - from.x) * t, y: from.y + (to.y - from.y) * t, zoom: from.zoom + (to.zoom - from.zoom) * t,
      });
      if (now >= end) this.#flight = null;
    }

    // The view goes with the device that it follows.
    #chase(now) {
      const device = this.#devices.get(this.#followed);
      if (!device || device.placed) return;
      this.#glide(device, now);
      if (device.x === this.#view.x && device.y === this.#view.y) return;
      this.#view = { ...this.#view, x: device.x, y: device.y };
      this.#viewChanged = true;
    }

    // Where the device is on the way to its last fix; returns how much of that way is done.
    #glide(device, now) {
      const t = device.end > device.start ? clamp((now - device.start) / (device.end - device.start), 0, 1) : 1;
      device.x = device.fromX + (device.toX - device.fromX) * t;
      device.y = device.fromY + (device.toY - device.fromY) * t;
      return t;
    }

    // Returns whether the marker is still on its way.
    #place(device, now, context) {
      const t = this.#glide(device, now);
      device.placed = t === 1;
      const [x, y] = this.#toScreen(device.x, device.y);
      const place = `translate(${x.toFixed(1)}px, ${y.toFixed(1)}px)`;
      device.marker.style.transform = place;
      device.marker.hidden = x < -30 || y < -30 || x > this.#width + 30 || y > this.#height + 30;
      if (device.id === this.#selected) {
        // Beside the left edge the bubble opens to the right, and the other way round.
        const half = this.#bubble.offsetWidth / 2 + 6;
        const shift = clamp(x, Math.min(half, this.#width / 2), Math.max(this.#width - half, this.#width / 2));
        this.#bubble.style.transform = `translate(${shift.toFixed(1)}px, ${y.toFixed(1)}px)`;
        this.#bubble.classList.toggle('below', y < 60);
      }
      this.#lengthen(device, context);
      return t < 1;
    }

    // The track follows the marker frame by frame, until a change of view draws it anew.
    #lengthen(device, context) {
      if (device.drawnX === device.x && device.drawnY === device.y) return;
      context.strokeStyle = device.colour;
      context.beginPath();
      context.moveTo(...this.#toScreen(device.drawnX, device.drawnY));
      context.lineTo(...this.#toScreen(device.x, device.y));
      context.stroke();
      device.drawnX = device.x;
      device.drawnY = device.y;
    }

    #drawTracks(context) {
      context.clearRect(0, 0, this.#width, this.#height);
      context.lineWidth = 2.5;
      context.lineCap = context.lineJoin = 'round';
      const scale = this.#scale();
      const left = this.#width / 2 - this.#view.x * scale;
      const top = this.#height / 2 - this.#view.y * scale;
      for (const device of this.#devices.values()) {
        const { points, starts, count } = device.track;
        context.strokeStyle = device.colour;
        context.beginPath();
        for (let i = 0; i < count; i += 1) {
          const x = points[2 * i] * scale + left;
          const y = points[2 * i + 1] * scale + top;
          // Around the back of the world there is no line across its front.
          const jumps = i > 0 && Math.abs(points[2 * i] - points[2 * i - 2]) > 0.5;
          if (starts[i] === 1 || jumps) context.moveTo(x, y);
          else context.lineTo(x, y);
        }
        if (count > 0) context.lineTo(device.x * scale + left, device.y * scale + top);
        context.stroke();
        device.drawnX = device.x;
        device.drawnY = device.y;
      }
    }

    #drawGround() {
      const context = this.#ground.getContext('2d');
      context.fillStyle = this.#colours.land;
      context.fillRect(0, 0, this.#width, this.#height);
      if (this.#tilesOn) this.#drawTiles(context);
      this.#drawGraticule(context);
      this.#drawScaleBar();
    }

    #drawGraticule(context) {
      const [west, north] = this.#toWorld(0, 0);
      const [east, south] = this.#toWorld(this.#width, this.#height);
      const degreesPerPixel = 360 / this.#scale();
      const coarse = STEPS.filter((step) => step / degreesPerPixel >= 110).at(-1) ?? STEPS[0];
      const fine = STEPS.filter((step) => step / degreesPerPixel >= 22).at(-1) ?? STEPS[0];
      context.lineWidth = 1;
      context.font = this.#colours.font;
      const sides = [longitudeOf(west), longitudeOf(east), latitudeOf(clamp(south, 0, 1)), latitudeOf(clamp(north, 0, 1))];
      if (!this.#tilesOn) this.#drawLines(context, fine, this.#colours.fine, sides, false);
      this.#drawLines(context, coarse, this.#colours.line, sides, true);
    }

    #drawLines(context, step, colour, [west, east, south, north], withLabels) {
      const digits = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
      context.strokeStyle = colour;
      context.fillStyle = this.#colours.label;
      context.beginPath();
      const labels = [];
      for (let i = Math.ceil(Math.max(west, -180) / step); i * step <= Math.min(east, 180); i += 1) {
        const x = Math.round(this.#toScreen(projectX(i * step), 0)[0]) + 0.5;
        context.moveTo(x, 0);
        context.lineTo(x, this.#height);
        const label = this.#degrees(i * step, digits, 'W', 'E');
        // Half a number at the edge reads as another one.
        if (!withLabels || x + 8 + context.measureText(label).width <= this.#width) labels.push([label, x + 4, 14]);
      }
      for (let i = Math.ceil(south / step); i * step <= north; i += 1) {
        const y = Math.round(this.#toScreen(0, projectY(i * step))[1]) + 0.5;
        context.moveTo(0, y);
        context.lineTo(this.#width, y);
        // Not over the first label of the other lines, nor under north and the scale.
        if (y > 30 && y < this.#height - CORNER) labels.push([this.#degrees(i * step, digits, 'S', 'N'), 6, y - 4]);
      }
      context.stroke();
      if (!withLabels) return;
      context.strokeStyle = this.#colours.land;
      context.lineWidth = 3;
      for (const [label, x, y] of labels) {
        context.strokeText(label, x, y);
        context.fillText(label, x, y);
      }
      context.lineWidth = 1;
    }

    #degrees(value, digits, negative, positive) {
      const side = Math.abs(value) < 1e-9 ? '' : value < 0 ? ` ${negative}` : ` ${positive}`;
      return `${Math.abs(value).toFixed(digits)}°${side}`;
    }

    #drawScaleBar() {
      const metresPerPixel = (EARTH * Math.cos((latitudeOf(this.#view.y) * Math.PI) / 180)) / this.#scale();
      const most = metresPerPixel * 120;
      const power = 10 ** Math.floor(Math.log10(most));
      const length = [5, 2, 1].map((digit) => digit * power).find((candidate) => candidate <= most);
      this.#scaleBar.textContent = length >= 1000 ? `${length / 1000} km` : `${length} m`;
      this.#scaleBar.style.width = `${(length / metresPerPixel).toFixed(0)}px`;
    }

    // MARK: Street tiles

    #drawTiles(context) {
      const level = clamp(Math.round(this.#view.zoom), 0, 19);
      const count = 2 ** level;
      const [west, north] = this.#toWorld(0, 0);
      const [east, south] = this.#toWorld(this.#width, this.#height);
      const size = this.#scale() / count;
      for (let x = Math.max(0, Math.floor(west * count)); x <= Math.min(count - 1, Math.floor(east * count)); x += 1) {
        for (let y = Math.max(0, Math.floor(north * count)); y <= Math.min(count - 1, Math.floor(south * count)); y += 1) {
          const tile = this.#tile(`${level}/${x}/${y}`);
          const [left, top] = this.#toScreen(x / count, y / count);
          if (tile.complete && tile.naturalWidth > 0) context.drawImage(tile, left, top, size + 0.5, size + 0.5);
        }
      }
    }

    #tile(key) {
      let tile = this.#tiles.get(key);
      if (tile) {
        // Used last, thrown away last.
        this.#tiles.delete(key);
      } else {
        tile = new Image();
        tile.onload = () => {
          this.#viewChanged = true;
          Frames.draw(this.#task);
        };
        tile.onerror = () => { this.#credit.textContent = 'Street tiles cannot be loaded; the map works without them.'; };
        tile.src = `${TILES}/${key}.png`;
      }
      this.#tiles.set(key, tile);
      if (this.#tiles.size > TILE_CACHE) this.#tiles.delete(this.#tiles.keys().next().value);
      return tile;
    }

    // MARK: Pointers and keys

    #listen() {
      const pointers = new Map();
      let travelled = 0;
      const place = (event) => {
        const box = this.#box.getBoundingClientRect();
        return { x: event.clientX - box.left, y: event.clientY - box.top };
      };
      this.#box.addEventListener('pointerdown', (event) => {
        if (event.target.closest('button, a')) return;
        this.#box.setPointerCapture(event.pointerId);
        pointers.set(event.pointerId, place(event));
        travelled = 0;
      });
      this.#box.addEventListener('pointermove', (event) => {
        const before = pointers.get(event.pointerId);
        if (!before) return;
        const now = place(event);
        travelled += Math.hypot(now.x - before.x, now.y - before.y);
        if (pointers.size === 1) {
          if (travelled > 3) this.panBy(now.x - before.x, now.y - before.y);
        } else {
          const other = [...pointers].find(([id]) => id !== event.pointerId)[1];
          const spread = Math.hypot(now.x - other.x, now.y - other.y) / Math.hypot(before.x - other.x, before.y - other.y);
          if (spread > 0 && Number.isFinite(spread)) {
            this.zoomBy(Math.log2(spread), (now.x + other.x) / 2, (now.y + other.y) / 2);
          }
          this.panBy((now.x - before.x) / 2, (now.y - before.y) / 2);
        }
        pointers.set(event.pointerId, now);
      });
      const release = (event) => {
        if (pointers.delete(event.pointerId) && event.type === 'pointerup' && travelled <= 3) this.#onSelect(null);
      };
      this.#box.addEventListener('pointerup', release);
      this.#box.addEventListener('pointercancel', release);
      this.#box.addEventListener('wheel', (event) => {
        event.preventDefault();
        const { x, y } = place(event);
        const step = event.deltaMode === 1 ? event.deltaY * 16 : event.deltaY;
        this.zoomBy(clamp(-step / 300, -1, 1), x, y);
      }, { passive: false });
      this.#box.addEventListener('dblclick', (event) => {
        if (event.target.closest('button, a')) return;
        const { x, y } = place(event);
        this.zoomBy(1, x, y);
      });
      this.#box.addEventListener('keydown', (event) => {
        const step = event.shiftKey ? 200 : 60;
        const actions = {
          ArrowLeft: () => this.panBy(step, 0), ArrowRight: () => this.panBy(-step, 0),
          ArrowUp: () => this.panBy(0, step), ArrowDown: () => this.panBy(0, -step),
          '+': () => this.zoomBy(0.5), '=': () => this.zoomBy(0.5), '-': () => this.zoomBy(-0.5), 0: () => this.fit(),
          Escape: () => this.#onSelect(null),
        };
        if (event.ctrlKey || event.metaKey || event.altKey || !actions[event.key]) return;
        event.preventDefault();
        actions[event.key]();
      });
    }
  }

  return WorldMap;
})();
