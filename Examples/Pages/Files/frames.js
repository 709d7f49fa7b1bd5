// Work that is seen is done once per animation frame, however many messages come in between, and no longer than a
// frame has room for: what is left over waits for the next one. Nothing piles up meanwhile, as each task is there once.
'use strict';

const Frames = (() => {
  const BUDGET = 8;
  const tasks = new Set();
  let requested = false;

  function run(now) {
    requested = false;
    const end = performance.now() + BUDGET;
    // A task that asks for the next frame while it runs is behind all that are waiting now.
    const count = tasks.size;
    let done = 0;
    for (const task of tasks) {
      if (done >= count || performance.now() > end) break;
      done += 1;
      tasks.delete(task);
      task(now);
    }
    if (tasks.size > 0) request();
  }

  function request() {
    if (requested) return;
    requested = true;
    requestAnimationFrame(run);
  }

  return {
    // Runs `task(now)` in the next frame; asking twice is asking once.
    draw(task) {
      tasks.add(task);
      request();
    },
    cancel(task) {
      tasks.delete(task);
    },
  };
})();
