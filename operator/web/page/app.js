// The page: which part of the history is in view, and what the keys and the pointer do.

import { colour, surfaceOf } from "./canvas.js";
import { BOTTOM, LEFT, drawStack, fillOfBand } from "./draw.js";
import { MAX_BANDS, bandAt, labelOf, stack, zoomed } from "./layout.js";
import { JobPanel, byId, drawDetail, drawEvents, drawQueues, element } from "./panels.js";
import { picture } from "./picture.js";
import { download, savedRuns } from "./saved.js";
import { History } from "./state.js";
import { follow } from "./stream.js";
import { SECOND, dateAndTime, when } from "./times.js";

const MIN_BRUSH = 5; // pixels
const WINDOW_FROM_SERVER = 24 * 3600e3;

const history = new History();
const canvas = byId("stack");
const runs = savedRuns(byId("saved").textContent);
let live = runs.length === 0;
let view = { begin: 0, end: 1 };
let mark = 0; // the time that the tables show
let sight = { bands: [], top: 0 };
let brush = null;
let selected = null;
let drawn = false; // whether a drawing is due

const jobs = new JobPanel((name) => select(name));

function select(name) {
  selected = name;
  jobs.selected = name;
  byId("detail").hidden = name === null; // a hidden title takes no focus
  draw();
  if (name === null) return;
  drawDetail(history, view, mark, live, selected); // a screen reader reads the title at once
  byId("detail-title").focus();
}

function follows() {
  const length = live ? Number(byId("window").value) : view.end - view.begin;
  view = { begin: history.now - length, end: history.now };
  mark = history.now;
}

// Shows a run of a saved page, from its beginning to its end.
function showRun({ name, document: recorded }) {
  history.load(recorded);
  const clock = () => `saved at ${dateAndTime(history.now)}, of replica ${history.replica}`;
  byId("connection").textContent = history.origin === null ? clock() : name;
  select(null);
  showAll();
}

function showAll() {
  mark = history.now;
  look({ begin: history.begin, end: Math.max(history.now, history.begin + SECOND) });
}

function setLive(on) {
  live = on;
  byId("live").setAttribute("aria-pressed", String(on));
  if (live) follows();
  draw();
}

function look(next) {
  live = false;
  byId("live").setAttribute("aria-pressed", "false");
  view = next;
  mark = Math.min(Math.max(mark, view.begin), view.end);
  draw();
}

// Draws at the next frame of the browser, however often this is called until then.
function draw() {
  if (drawn) return;
  drawn = true;
  requestAnimationFrame(() => {
    drawn = false;
    drawNow();
  });
}

function drawNow() {
  if (history.now === 0) return;
  if (live) follows();
  const columns = Math.max(Math.floor(canvas.clientWidth - LEFT), 1);
  sight = stack(history, view.begin, view.end, columns, MAX_BANDS);
  drawStack(surfaceOf(canvas), view, sight, history, mark, brush);
  drawMoment();
  jobs.update(history, view, mark);
  drawDetail(history, view, mark, live, selected);
  drawQueues(history, view, mark);
  drawEvents(history, view);
  byId("save-page").href = `/saved.html?from=${Math.floor(view.begin)}`;
}

function columnOf(time) {
  const count = sight.bands[0]?.gpus.length ?? 0;
  const column = Math.floor(((time - view.begin) / (view.end - view.begin)) * count);
  return Math.min(Math.max(column, 0), count - 1);
}

function timeAt(x) {
  return view.begin + ((x - LEFT) / (canvas.clientWidth - LEFT)) * (view.end - view.begin);
}

// The numbers at the time mark: a sentence, the legend, and the table.
function drawMoment() {
  const column = columnOf(mark);
  const total = (kind) => sight.bands.filter((band) => band.kind === kind).reduce((sum, { gpus }) => sum + gpus[column], 0);
  const known = mark >= history.begin;
  const at = when(mark, history.origin);
  byId("moment").textContent = known
    ? `${at}: ${total("job") + total("others")} GPUs held by jobs, ${total("foreign")} by other workloads, ` +
      `${total("yielded")} yielded, ${total("idle")} idle`
    : `${at}: this replica recorded nothing before ${when(history.begin, history.origin)}`;
  const legend = [];
  const rows = [];
  sight.bands.forEach((band) => {
    if (Math.max(...band.gpus) === 0) return;
    const item = element("li", "", { title: band.queue });
    const sample = element("canvas", "", { "aria-hidden": "true" });
    item.append(sample, labelOf(band));
    legend.push([item, sample, band]);
    const row = element("tr");
    row.append(element("td", band.queue || "–"), element("td", band.label),
      element("td", String(band.gpus[column]), { class: "number" }));
    rows.push(row);
  });
  byId("legend").replaceChildren(...legend.map(([item]) => item));
  for (const [, sample, band] of legend) {
    const surface = surfaceOf(sample);
    surface.context.fillStyle = fillOfBand(surface, band);
    surface.context.fillRect(0, 0, surface.width, surface.height);
  }
  byId("stack-table").tBodies[0].replaceChildren(...rows);
}

canvas.addEventListener("pointerdown", (event) => {
  canvas.setPointerCapture(event.pointerId);
  brush = [event.offsetX, event.offsetX];
});
canvas.addEventListener("pointermove", (event) => {
  if (brush === null) {
    const gpus = ((canvas.clientHeight - BOTTOM - event.offsetY) / (canvas.clientHeight - BOTTOM - 8)) * sight.top;
    const band = bandAt(sight.bands, columnOf(timeAt(event.offsetX)), gpus);
    canvas.title = band === undefined ? "" : `${band.queue && `${band.queue}: `}${band.label}`;
    return;
  }
  brush[1] = event.offsetX;
  draw();
});
canvas.addEventListener("pointerup", (event) => {
  if (brush === null) return;
  brush[1] = event.offsetX;
  const [from, to] = [Math.min(...brush), Math.max(...brush)].map((x) => timeAt(Math.max(x, LEFT)));
  const isBrush = Math.abs(brush[1] - brush[0]) >= MIN_BRUSH;
  brush = null;
  if (isBrush) {
    look({ begin: from, end: to });
    return;
  }
  const time = timeAt(event.offsetX);
  const gpus = ((canvas.clientHeight - BOTTOM - event.offsetY) / (canvas.clientHeight - BOTTOM - 8)) * sight.top;
  const band = bandAt(sight.bands, columnOf(time), gpus);
  mark = time;
  look(view);
  if (band?.kind === "job") select(band.label);
});
canvas.addEventListener("pointercancel", () => {
  brush = null;
  draw();
});

canvas.addEventListener("keydown", (event) => {
  const length = view.end - view.begin;
  const step = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
  if (step !== 0 && event.shiftKey) {
    look({ begin: view.begin + (step * length) / 5, end: view.end + (step * length) / 5 });
  } else if (step !== 0) {
    mark = Math.min(Math.max(mark + (step * length) / 100, view.begin), view.end);
    look(view);
  } else if (event.key === "+" || event.key === "=") {
    look(zoomed(view, mark, 0.5));
  } else if (event.key === "-") {
    look(zoomed(view, mark, 2));
  } else if (event.key === "Home") {
    if (runs.length > 0) showAll();
    else setLive(true);
  } else {
    return;
  }
  event.preventDefault();
});

byId("live").addEventListener("click", () => setLive(!live));
byId("in").addEventListener("click", () => look(zoomed(view, mark, 0.5)));
byId("out").addEventListener("click", () => look(zoomed(view, mark, 2)));
byId("window").addEventListener("change", () => setLive(true));
byId("save-picture").addEventListener("click", () => {
  if (history.now !== 0) download("pliant-gpus.svg", "image/svg+xml", picture(history, view, colour));
});
byId("event-filter").addEventListener("input", () => draw());
byId("detail-close").addEventListener("click", () => {
  select(null);
  byId("job-list").focus();
});
window.addEventListener("resize", draw);
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

const theme = byId("theme");
theme.addEventListener("change", () => {
  document.documentElement.dataset.theme = theme.value;
  draw();
});

if (runs.length === 0) {
  follow(history, () => (history.now || Date.now()) - WINDOW_FROM_SERVER, draw,
    (status) => (byId("connection").textContent = status));
} else {
  const choice = byId("run");
  choice.append(...runs.map(({ name }) => element("option", name)));
  byId("runs").hidden = runs.length === 1;
  choice.addEventListener("change", () => showRun(runs[choice.selectedIndex]));
  showRun(runs[0]);
}
