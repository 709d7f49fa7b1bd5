// Three lines of the last values in one canvas, one below the other, each from half a turn to one side to half a
// turn to the other. As long as there are few values, they have the whole width.
'use strict';

const Sparkline = (() => {
  const LENGTH = 50;
  const RANGE = Math.PI;
  const LANES = ['pitch', 'roll', 'yaw'];
  const colours = { pitch: '', roll: '', yaw: '', zero: '' };

  function restyle() {
    const style = getComputedStyle(document.documentElement);
    for (const name of Object.keys(colours)) colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
  restyle();

  class Sparkline {
    #values = LANES.map(() => new Float64Array(LENGTH));
    #next = 0;
    #count = 0;
    #canvas;
    #width = 0;
    #height = 0;

    constructor(canvas) {
      this.#canvas = canvas;
    }

    get count() { return this.#count; }

    // The values of one message, in radians: pitch, roll, yaw.
    add(values) {
      for (let lane = 0; lane < LANES.length; lane += 1) this.#values[lane][this.#next] = values[lane];
      this.#next = (this.#next + 1) % LENGTH;
      this.#count = Math.min(LENGTH, this.#count + 1);
    }

    // The size of the canvas in pixels of the page; asked for once and not in each frame, as it costs a layout.
    resize(width, height) {
      const ratio = devicePixelRatio || 1;
      this.#width = width;
      this.#height = height;
      this.#canvas.width = Math.round(width * ratio);
      this.#canvas.height = Math.round(height * ratio);
      this.#canvas.getContext('2d').setTransform(ratio, 0, 0, ratio, 0, 0);
    }

    draw() {
      const context = this.#canvas.getContext('2d');
      context.clearRect(0, 0, this.#width, this.#height);
      const height = this.#height / LANES.length;
      context.lineJoin = 'round';
      context.lineCap = 'round';
      for (let lane = 0; lane < LANES.length; lane += 1) this.#line(context, lane, (lane + 0.5) * height, height);
    }

    #line(context, lane, middle, height) {
      context.strokeStyle = colours.zero;
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(0, Math.round(middle) + 0.5);
      context.lineTo(this.#width, Math.round(middle) + 0.5);
      context.stroke();

      const step = (this.#width - 6) / Math.max(1, this.#count - 1);
      const scale = (height / 2 - 3) / RANGE;
      const values = this.#values[lane];
      context.strokeStyle = context.fillStyle = colours[LANES[lane]];
      context.lineWidth = 1.75;
      context.beginPath();
      let x = 0;
      let y = 0;
      for (let i = 0; i < this.#count; i += 1) {
        const value = values[(this.#next - this.#count + i + LENGTH) % LENGTH];
        x = 3 + i * step;
        y = middle - Math.max(-RANGE, Math.min(RANGE, value)) * scale;
        if (i === 0) context.moveTo(x, y);
        else context.lineTo(x, y);
      }
      // A single value is a line across.
      if (this.#count === 1) context.lineTo(x = this.#width - 3, y);
      context.stroke();
      if (this.#count === 0) return;
      // The same line down to zero, as a shade: how far from rest at a glance.
      context.lineTo(x, middle);
      context.lineTo(3, middle);
      context.globalAlpha = 0.13;
      context.fill();
      context.globalAlpha = 1;
      context.beginPath();
      context.arc(x, y, 2.5, 0, 2 * Math.PI);
      context.fill();
    }
  }

  return { Sparkline, restyle };
})();
