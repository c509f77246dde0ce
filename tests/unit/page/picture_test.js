import { LEFT } from "../../../operator/web/page/draw.js";
import { picture } from "../../../operator/web/page/picture.js";
import { History } from "../../../operator/web/page/state.js";
import { SvgContext, escaped } from "../../../operator/web/page/svg.js";
import { equal, finish, test } from "./check.js";

const WIDTH = 952 - LEFT; // of the plot
const HEIGHT = 290; // of the GPUs of the whole cluster
const colour = (name) => `#${name}`;

// A pseudo-random document: nodes come and go, jobs take and leave their GPUs. Numbers by a linear congruence.
function someDocument(seed) {
  let state = seed;
  const below = (count) => {
    state = (state * 1103515245 + 12345) % 2147483648;
    return Math.floor((state / 2147483648) * count);
  };
  const node = {};
  for (let i = 0; i < 4; i++) node[`n${i}`] = { gpus: 8, used: 8 };
  const changes = [];
  for (let at = 1000; at < 60000; at += 500 + below(3000)) {
    const job = `team/${below(30)}`;
    changes.push({ at, held: job, node: `n${below(4)}`, set: below(3) === 0 ? null : { gpus: 1 + below(3) } });
    if (below(8) === 0) changes.push({ at, node: `n${below(4)}`, set: below(2) === 0 ? null : { gpus: 8, used: 8 } });
  }
  return { replica: "r", from: 0, begin: 0, now: 60000, origin: 0, frame: { node }, changes };
}

function loaded(document) {
  const history = new History();
  history.load(document);
  return history;
}

// The boxes of the bands, which come before the axes: [{x, y, width, height, fill}, …].
function boxesOf(svg) {
  const bands = svg.slice(0, svg.indexOf("<path d=\"M44"));
  return [...bands.matchAll(/<path d="([^"]*)" fill="([^"]*)"/g)].flatMap(([, path, fill]) =>
    [...path.matchAll(/M([\d.]+) ([\d.]+)h([\d.]+)v([\d.]+)h-[\d.]+z/g)].map(([, ...numbers]) => {
      const [x, y, width, height] = numbers.map(Number);
      return { x, y, width, height, fill };
    }));
}

// The GPUs under the middle of a column, by the boxes; each is half a pixel wider than its columns.
function gpusAt(boxes, column, top) {
  const x = LEFT + column + 0.75;
  const here = boxes.filter((box) => box.x < x && x < box.x + box.width);
  return (here.reduce((sum, { height }) => sum + height, 0) / HEIGHT) * top;
}

test("areas of all bands add up to the cluster's GPUs, or to what pods use beyond them", () => {
  for (const seed of [1, 7, 1234, 99999]) {
    const history = loaded(someDocument(seed));
    const held = (time) => [...history.held.values()].reduce((sum, { total }) => sum + (total.at(time) ?? 0), 0);
    const want = (time) => Math.max(history.capacity.at(time), history.used.at(time) ?? 0, held(time));
    const times = Array.from({ length: WIDTH }, (_, i) => (i * 60000) / WIDTH);
    const top = Math.max(...times.map(want));
    const boxes = boxesOf(picture(history, { begin: 0, end: 60000 }, colour));
    times.forEach((time, i) => {
      const got = gpusAt(boxes, i, top);
      equal(Math.abs(got - want(time)) < 0.05, true, `seed ${seed}, ${time} ms: ${got} of ${want(time)}`);
    });
  }
});

test("no text becomes markup, and no character is one that XML lacks", () => {
  equal(escaped(`<a href="x">&'\u0000\u001b[31m\ud800\ufffe😀`), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\ufffd\ufffd[31m\ufffd\ufffd😀");
  const history = loaded({
    replica: "r", from: 0, begin: 0, now: 1000, changes: [],
    frame: { node: { n: { gpus: 1, used: 1 } }, held: { "</text><script>alert(1)</script>": { n: { gpus: 1 } } } },
  });
  const svg = picture(history, { begin: 0, end: 1000 }, colour);
  equal([svg.includes("<script"), svg.includes("&lt;/text&gt;&lt;script&gt;")], [false, true]);
});

test("a long name is cut, and the legend has rows within the picture", () => {
  const held = {};
  for (let i = 0; i < 20; i++) held[`team-${i}/${"x".repeat(3 * i)}`] = { n: { gpus: 1 } };
  const history = loaded({ replica: "r", from: 0, begin: 0, now: 1000, frame: { node: { n: { gpus: 20 } }, held }, changes: [] });
  const svg = picture(history, { begin: 0, end: 1000 }, colour);
  const [, width, height] = /viewBox="0 0 (\d+) (\d+)"/.exec(svg);
  const items = [...svg.matchAll(/<text x="([\d.]+)" y="([\d.]+)" text-anchor="start"[^>]*>([^<]*)/g)];
  equal(items.length >= 20, true);
  for (const [, x, y, text] of items) {
    equal(Number(x) + 5 * text.length < Number(width) && Number(y) < Number(height), true, text);
    equal([...text].length <= 60, true, text);
  }
});

test("the surface records what was drawn with its styles", () => {
  const context = new SvgContext();
  context.fillStyle = "#123456";
  context.globalAlpha = 0.25;
  context.fillRect(1, 2, 3.456, 4);
  context.globalAlpha = 1;
  context.strokeStyle = "#abcdef";
  context.setLineDash([4, 3]);
  context.beginPath();
  context.moveTo(0, 0);
  context.lineTo(10, 5);
  context.stroke();
  context.textAlign = "right";
  context.textBaseline = "top";
  context.fillText("a<b", 5, 6);
  context.beginPath();
  context.fill();
  equal(context.elements, [
    '<rect x="1" y="2" width="3.46" height="4" fill="#123456" opacity="0.25"/>',
    '<path d="M0 0L10 5" fill="none" stroke="#abcdef" stroke-width="1" stroke-dasharray="4 3"/>',
    '<text x="5" y="15.6" text-anchor="end" font-size="12" fill="#123456">a&lt;b</text>',
  ]);
});

finish();
