// The tree of topics on the page. Of all open levels only the rows in sight are in the document.
'use strict';

const TopicTree = (() => {
  const ROW = 28;
  const SPARE = 4;
  // So many levels are open from the start.
  const OPEN_AT_ONCE = 40;

  class TopicTree {
    #box;
    #content;
    #model;
    #onSelect;
    #rows = [];
    #visible = [];
    // What somebody has opened or closed; everything else follows `#opensByItself`.
    #choices = new Map();
    #selected = null;

    // - box: scrolls; the rows are put into it
    // - onSelect(node or null)
    constructor(box, onSelect) {
      this.#box = box;
      this.#onSelect = onSelect;
      this.#content = document.createElement('div');
      this.#content.className = 'content';
      box.append(this.#content);
      box.addEventListener('scroll', () => this.#fill());
      box.addEventListener('keydown', (event) => this.#key(event));
      new ResizeObserver(() => this.#fill()).observe(box);
    }

    get visible() { return this.#visible; }
    get selected() { return this.#selected; }

    set model(model) {
      this.#model = model;
      this.#choices.clear();
      this.#selected = null;
    }

    draw() {
      const visible = [];
      const visit = (node) => {
        const children = [...node.children.values()].sort((a, b) => collator.compare(a.name, b.name));
        for (const child of children) {
          visible.push(child);
          if (this.#isOpen(child)) visit(child);
        }
      };
      visit(this.#model.root);
      this.#visible = visible;
      this.#content.style.height = `${visible.length * ROW}px`;
      this.#fill();
    }

    select(node) {
      this.#selected = node;
      if (node) for (let at = node.parent; at?.parent; at = at.parent) this.#choices.set(at, true);
      this.#onSelect(node);
      this.draw();
    }

    #opensByItself(node) {
      return node.depth < 1 || this.#model.count <= OPEN_AT_ONCE || node.children.size === 1;
    }

    #isOpen(node) {
      return node.children.size > 0 && (this.#choices.get(node) ?? this.#opensByItself(node));
    }

    #setOpen(node, on) {
      this.#choices.set(node, on);
      this.draw();
    }

    #fill() {
      const first = Math.max(0, Math.floor(this.#box.scrollTop / ROW) - SPARE);
      const end = Math.min(this.#visible.length, Math.ceil((this.#box.scrollTop + this.#box.clientHeight) / ROW) + SPARE);
      while (this.#rows.length < end - first) this.#rows.push(this.#makeRow());
      const second = Math.floor(Date.now() / 1000);
      for (const [index, row] of this.#rows.entries()) {
        const node = index < end - first ? this.#visible[first + index] : null;
        row.element.hidden = !node;
        if (node) this.#show(row, node, first + index, second);
      }
    }

    #makeRow() {
      const element = document.createElement('div');
      element.className = 'topic';
      element.setAttribute('role', 'treeitem');
      element.innerHTML = '<span class="twist" aria-hidden="true"></span><span class="name"></span>'
        + '<span class="value"></span><span class="number"></span>';
      const [twist, name, value, number] = element.children;
      const row = { element, twist, name, value, number, node: null };
      element.addEventListener('click', (event) => {
        if (event.target === twist) this.#setOpen(row.node, !this.#isOpen(row.node));
        else this.select(row.node === this.#selected ? null : row.node);
      });
      element.addEventListener('dblclick', () => this.#setOpen(row.node, !this.#isOpen(row.node)));
      this.#content.append(element);
      return row;
    }

    #show(row, node, index, second) {
      const { element } = row;
      const rate = node.rate(second);
      const isSelected = node === this.#selected;
      row.node = node;
      element.style.transform = `translateY(${index * ROW}px)`;
      element.style.setProperty('--depth', node.depth);
      element.setAttribute('aria-level', node.depth + 1);
      element.setAttribute('aria-selected', String(isSelected));
      element.tabIndex = isSelected || (this.#selected === null && index === 0) ? 0 : -1;
      const state = node.children.size === 0 ? '' : String(this.#isOpen(node));
      if (state === '') element.removeAttribute('aria-expanded');
      else element.setAttribute('aria-expanded', state);
      put(row.name, node.name);
      put(row.value, node.last?.payload ?? (node.last ? '(empty)' : ''));
      put(row.number, rate >= 0.1 ? `${rate.toFixed(rate < 9.95 ? 1 : 0)}/s` : node.messages.toLocaleString('en'));
      row.number.classList.toggle('live', rate >= 0.1);
      const title = `${node.path}\n${node.messages.toLocaleString('en')} messages`;
      if (element.title !== title) element.title = title;
    }

    #key(event) {
      const index = this.#visible.indexOf(this.#rows.find(({ element }) => element === event.target)?.node);
      const node = this.#visible[index];
      if (!node || event.ctrlKey || event.metaKey || event.altKey) return;
      switch (event.key) {
        case 'ArrowDown': this.#move(index + 1); break;
        case 'ArrowUp': this.#move(index - 1); break;
        case 'Home': this.#move(0); break;
        case 'End': this.#move(this.#visible.length - 1); break;
        case 'ArrowRight':
          if (this.#isOpen(node)) this.#move(index + 1);
          else if (node.children.size > 0) this.#setOpen(node, true);
          break;
        case 'ArrowLeft':
          if (this.#isOpen(node)) this.#setOpen(node, false);
          else if (node.parent?.parent) this.#move(this.#visible.indexOf(node.parent));
          break;
        case 'Enter': case ' ': this.select(node === this.#selected ? null : node); break;
        case 'Escape': this.select(null); break;
        default: return;
      }
      event.preventDefault();
    }

    #move(index) {
      const node = this.#visible[Math.min(this.#visible.length - 1, Math.max(0, index))];
      const place = this.#visible.indexOf(node) * ROW;
      if (place < this.#box.scrollTop) this.#box.scrollTop = place;
      if (place + ROW > this.#box.scrollTop + this.#box.clientHeight) {
        this.#box.scrollTop = place + ROW - this.#box.clientHeight;
      }
      this.select(node);
      this.#rows.find(({ element, node: shown }) => !element.hidden && shown === node)?.element.focus({ preventScroll: true });
    }
  }

  // "van-2" before "van-10".
  const collator = new Intl.Collator('en', { numeric: true });

  function put(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  return TopicTree;
})();
