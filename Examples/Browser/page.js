// The host of the engine: a WebSocket, a timer, and the page's text. `engine` is the WebAssembly module in Base64.
const address = location.hash.slice(1) || 'ws://localhost:9001';
const show = (id, text) => { document.getElementById(id).textContent = text; };
let exports, socket, timer;

// A copy of bytes in the engine's memory.
const bytes = (place, count) => new Uint8Array(exports.memory.buffer, place, count).slice();
const text = (place, count) => new TextDecoder().decode(bytes(place, count));

// Puts bytes where the engine reads them.
function pass(data) {
    const place = exports.input(data.length);
    new Uint8Array(exports.memory.buffer, place, data.length).set(data);
}

function open() {
    let isOver = false;
    try {
        socket = new WebSocket(address, 'mqtt');
    } catch (error) {
        // The address is no URL of a WebSocket: another attempt would not help.
        return show('state', `cannot connect: ${error.message}`);
    }
    const mine = socket;
    mine.binaryType = 'arraybuffer';
    mine.onopen = () => exports.opened(performance.now());
    mine.onmessage = (event) => {
        if (socket !== mine || event.data.byteLength === 0) return;
        pass(new Uint8Array(event.data));
        exports.received(performance.now());
    };
    mine.onclose = () => {
        if (isOver) return;
        isOver = true;
        exports.closed(performance.now());
    };
}

const host = {
    host_write: (place, count) => { if (socket.readyState === WebSocket.OPEN) socket.send(bytes(place, count)); },
    host_close: () => socket.close(),
    host_open: (delay) => setTimeout(open, delay),
    host_wake: (delay) => {
        clearTimeout(timer);
        timer = setTimeout(() => exports.timedOut(performance.now()), Math.min(delay, 1 << 30));
    },
    host_state: (state) => show('state', ['closed', 'connecting', 'connected'][state]),
    host_message: (topic, topicCount, payload, payloadCount) => {
        const item = document.createElement('li');
        item.textContent = `${text(topic, topicCount)}: ${text(payload, payloadCount)}`;
        document.getElementById('messages').append(item);
    },
    host_acknowledged: (count) => show('acknowledged', count),
};

function publish(topic, payload) {
    const [name, content] = [topic, payload].map((part) => new TextEncoder().encode(part));
    pass([...name, ...content]);
    return exports.publish(name.length, performance.now()) === 1;
}

document.querySelector('form').onsubmit = (event) => {
    event.preventDefault();
    const { topic, payload } = event.target;
    topic.setCustomValidity(publish(topic.value, payload.value) ? '' : 'A topic is not empty, and has no + and no #.');
    topic.reportValidity();
};
document.querySelector('form').oninput = (event) => event.target.setCustomValidity('');

// Each page that is loaded is a client of its own, also after a reload, with which the engine loses what it knows of its session.
// `crypto.randomUUID` is missing without https.
function clientID() {
    const random = [...crypto.getRandomValues(new Uint8Array(8))].map((byte) => byte.toString(16).padStart(2, '0'));
    return `page${random.join('')}`;
}

const code = Uint8Array.from(atob(engine), (character) => character.charCodeAt(0));
WebAssembly.instantiate(code, { env: host }).then(({ instance }) => {
    exports = instance.exports;
    const id = new TextEncoder().encode(clientID());
    pass(id);
    exports.start(id.length);
    open();
});
