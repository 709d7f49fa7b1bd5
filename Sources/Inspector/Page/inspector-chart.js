// Messages a second over the last two minutes, sent above zero and received below, with a mark for each reconnect.
'use strict';

const RateChart = (() => {
  const LEFT = 30;
  const BOTTOM = 16;
  const TOP = 6;

  class RateChart {
    #canvas;
    #width = 0;
    #height = 0;
    #colours = {};

    constructor(canvas, onResize) {
      this.#canvas = canvas;
      this.restyle();
      new ResizeObserver(([{ contentRect }]) => {
        const ratio = devicePixelRatio || 1;
        this.#width = contentRect.width;
        this.#height = contentRect.height;
        canvas.width = Math.round(this.#width * ratio);
        canvas.height = Math.round(this.#height * ratio);
        canvas.getContext('2d').setTransform(ratio, 0, 0, ratio, 0, 0);
        onResize();
      }).observe(canvas);
    }

    restyle() {
      const style = getComputedStyle(document.documentElement);
      for (const name of ['accent', 'good', 'warn', 'edge', 'faint']) {
        this.#colours[name] = style.getPropertyValue(`--${name}`).trim();
      }
    }

    // - rates: { sent, received }, one number for each second, oldest first
    // - marks: how many seconds ago clients reconnected
    draw({ sent, received }, marks) {
      const context = this.#canvas.getContext('2d');
      const length = sent.length;
      const most = ceiling(Math.max(1, ...sent.map((count, index) => count + received[index])));
      const bottom = this.#height - BOTTOM;
      const step = (this.#width - LEFT) / length;
      const y = (value) => bottom - (value / most) * (bottom - TOP);
      context.clearRect(0, 0, this.#width, this.#height);
      context.font = '10.5px system-ui, sans-serif';
      context.lineWidth = 1;
      context.fillStyle = this.#colours.faint;
      context.textAlign = 'right';
      context.textBaseline = 'middle';
      for (const value of [0, most / 2, most]) {
        const line = Math.round(y(value)) + 0.5;
        context.strokeStyle = this.#colours.edge;
        context.beginPath();
        context.moveTo(LEFT, line);
        context.lineTo(this.#width, line);
        context.stroke();
        context.fillText(value >= 10000 ? `${value / 1000}k` : String(value), LEFT - 5, line);
      }
      context.textBaseline = 'alphabetic';
      context.textAlign = 'left';
      context.fillText('2 min ago', LEFT, this.#height - 3);
      context.textAlign = 'center';
      context.fillText('1 min', LEFT + (this.#width - LEFT) / 2, this.#height - 3);
      context.textAlign = 'right';
      context.fillText('now', this.#width - 1, this.#height - 3);
      // Sent at the bottom, received on top of it.
      for (let index = 0; index < length; index += 1) {
        const x = LEFT + index * step;
        this.#bar(context, this.#colours.accent, x, step, y(0), y(sent[index]));
        this.#bar(context, this.#colours.good, x, step, y(sent[index]), y(sent[index] + received[index]));
      }
      context.strokeStyle = this.#colours.warn;
      context.lineWidth = 1.5;
      context.setLineDash([3, 3]);
      for (const ago of marks) {
        const x = Math.round(LEFT + (length - ago - 0.5) * step);
        context.beginPath();
        context.moveTo(x, TOP);
        context.lineTo(x, bottom);
        context.stroke();
      }
      context.setLineDash([]);
    }

    #bar(context, colour, x, width, from, to) {
      if (from - to < 0.01) return;
      context.fillStyle = colour;
      context.fillRect(x, Math.min(to, from - 1), Math.max(1, width - 0.6), Math.max(1, from - to));
    }
  }

  // The next of 2, 4, 10, 20, 40, 100, …
  function ceiling(value) {
    for (let power = 1; ; power *= 10) {
      for (const digit of [2, 4, 10]) if (digit * power >= value) return digit * power;
    }
  }

  return RateChart;
})();
