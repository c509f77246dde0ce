// The parts of the page below the stack: jobs, one job, queues, events. Texts come from tenants:
// they are set as textContent only.

import { surfaceOf } from "./canvas.js";
import { drawCurve, drawLane } from "./draw.js";
import { jobList, lane, mostGpus, visibleRows } from "./layout.js";
import { sentence } from "./state.js";
import { dateAndTime, when } from "./times.js";

const ROW = 28; // pixels
const MAX_EVENT_ROWS = 300;

export const byId = (id) => document.getElementById(id);

export function element(tag, text = "", attributes = {}) {
  const made = document.createElement(tag);
  made.textContent = text;
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
}

const number = (value) => (value === undefined ? "–" : value.toLocaleString());

export const rowLabel = (row) => `${row.name}, queue ${row.queue}, ${row.phase}, ${row.gpus} GPUs`;

// The list of jobs, of which only the rows in sight are in the page.
export class JobPanel {
  rows = [];
  selected = null; // the name of the job whose details are shown
  active = 0; // the row on which the keys act

  constructor(onSelect) {
    this.onSelect = onSelect;
    this.list = byId("job-list");
    this.space = byId("job-space");
    this.filter = byId("job-filter");
    this.list.addEventListener("scroll", () => this.draw());
    this.filter.addEventListener("input", () => {
      this.active = 0;
      this.list.scrollTop = 0;
      this.update(this.history, this.view, this.mark);
    });
    this.list.addEventListener("keydown", (event) => this.onKey(event));
  }

  onKey(event) {
    const page = Math.max(Math.floor(this.list.clientHeight / ROW) - 1, 1);
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity };
    if (event.key === "Enter" || event.key === " ") {
      const row = this.rows[this.active];
      if (row) this.onSelect(row.name);
    } else if (steps[event.key] !== undefined) {
      this.active = Math.min(Math.max(this.active + steps[event.key], 0), Math.max(this.rows.length - 1, 0));
      const top = this.active * ROW;
      if (top < this.list.scrollTop) this.list.scrollTop = top;
      if (top + ROW > this.list.scrollTop + this.list.clientHeight)
        this.list.scrollTop = top + ROW - this.list.clientHeight;
      this.draw();
    } else {
      return;
    }
    event.preventDefault();
  }

  update(history, view, mark) {
    Object.assign(this, { history, view, mark });
    this.rows = jobList(history, mark, this.filter.value);
    this.active = Math.min(this.active, Math.max(this.rows.length - 1, 0));
    const count = this.rows.length;
    byId("job-count").textContent = `${count.toLocaleString()} ${count === 1 ? "job" : "jobs"} at the time mark`;
    this.draw();
  }

  draw() {
    this.space.style.height = `${this.rows.length * ROW}px`;
    const [first, last] = visibleRows(this.list.scrollTop, this.list.clientHeight, ROW, this.rows.length);
    const shown = this.rows.slice(first, last);
    const lanes = shown.map(({ name }) => lane(this.history, name, this.view.begin, this.view.end));
    const largest = mostGpus(this.rows, ...lanes);
    const made = shown.map((row, i) => this.rowOf(row, first + i));
    this.space.replaceChildren(...made);
    made.forEach((each, i) => {
      drawLane(surfaceOf(each.querySelector("canvas")), this.view, lanes[i], largest, this.history.begin);
    });
    const active = this.rows[this.active];
    if (active) this.list.setAttribute("aria-activedescendant", `job-row-${this.active}`);
    else this.list.removeAttribute("aria-activedescendant");
  }

  rowOf(row, index) {
    const made = element("div", "", {
      class: "row", id: `job-row-${index}`, role: "option", "aria-selected": String(row.name === this.selected),
      "aria-setsize": this.rows.length, "aria-posinset": index + 1,
      "aria-label": rowLabel(row),
    });
    made.style.top = `${index * ROW}px`;
    if (index === this.active) made.style.fontWeight = "600";
    made.append(
      element("span", row.name, { title: row.name }), element("span", row.phase),
      element("span", String(row.gpus), { class: "number" }), element("canvas", "", { "aria-hidden": "true" }));
    made.addEventListener("click", () => {
      this.active = index;
      this.onSelect(row.name);
    });
    return made;
  }
}

// One job at a time, in words.
export function valuesOf(history, job, time) {
  const subject = history.all("job").get(job);
  const at = (field) => subject?.at(field, time);
  const steps = at("step") === undefined ? "–" : `${number(at("step"))} of ${number(at("totalSteps"))}`;
  const nodes = history.nodesOf(job, time).map(([node, gpus]) => `${node}: ${gpus}`).join(", ");
  return {
    Phase: at("phase") ?? "it does not exist",
    Reason: [at("code"), at("reason")].filter(Boolean).join(": ") || "–",
    "Waiting since": at("waitingSince") ? dateAndTime(at("waitingSince"), history.origin) : "–",
    GPUs: `${history.gpusOf(job, time)} (${number(at("minGpus"))} to ${number(at("maxGpus"))}), ` +
      `its part of the queue's share: ${number(at("entitled") ?? 0)}`,
    Learners: `${number(at("learners") ?? 0)}, desired ${number(at("desired") ?? 0)}, ` +
      `could use ${number(at("demandLearners") ?? 0)}`,
    "Limited by": at("limitedBy") ?? "–",
    Nodes: nodes || "–",
    Steps: steps,
    Loss: number(at("loss")),
    "Last evaluation": `loss ${number(at("testLoss"))}, accuracy ${number(at("accuracy"))}`,
    "Estimated start": at("start") ? dateAndTime(at("start"), history.origin) : "–",
    End: at("end") ? dateAndTime(at("end"), history.origin) : "–",
    Resizes: `${at("resizes") ?? 0}, restarts ${at("restarts") ?? 0}`,
  };
}

// Shows one job: what holds now, and what held at the time mark.
export function drawDetail(history, view, mark, live, job) {
  const section = byId("detail");
  section.hidden = job === null;
  if (job === null) return;
  const subject = history.all("job").get(job);
  byId("detail-title").textContent = `${job}, queue ${subject?.at("queue", mark) ?? "–"}`;
  const now = valuesOf(history, job, history.now);
  const then = valuesOf(history, job, mark);
  const terms = [];
  for (const [name, value] of Object.entries(now)) {
    terms.push(element("dt", name), element("dd", value));
    if (!live && then[name] !== value)
      terms.push(element("dt", `at ${when(mark, history.origin)}`), element("dd", then[name]));
  }
  byId("detail-values").replaceChildren(...terms);
  for (const [field, title] of [
    ["loss", "Loss"], ["accuracy", "Accuracy on the test data"], ["speed", "Samples per second"]]) {
    const canvas = byId(field);
    const track = subject?.tracks.get(field);
    drawCurve(surfaceOf(canvas), view, track);
    canvas.setAttribute("aria-label", `${title} over the window; at the time mark ${number(track?.at(mark))}`);
  }
  const mine = history.events.filter((event) => event.job === job).slice(-MAX_EVENT_ROWS).reverse();
  byId("detail-events").replaceChildren(...mine.map((event) => eventRow(event, "", history.origin)));
}

function eventRow(event, job, origin) {
  const row = element("li");
  const clock = origin === null ? { datetime: new Date(event.time).toISOString() } : {};
  row.append(element("time", when(event.time, origin), clock),
    `${job}${job && ": "}${sentence(event)}`);
  return row;
}

export function drawEvents(history, view) {
  const wanted = byId("event-filter").value.trim().toLowerCase();
  const rows = [];
  for (let i = history.events.length - 1; i >= 0 && rows.length < MAX_EVENT_ROWS; i--) {
    const event = history.events[i];
    if (event.time > view.end) continue;
    if (event.time < view.begin) break;
    if (`${event.job} ${sentence(event)}`.toLowerCase().includes(wanted)) rows.push(eventRow(event, event.job, history.origin));
  }
  if (rows.length === 0) rows.push(element("li", "no events in the window"));
  byId("events").replaceChildren(...rows);
}

export function drawQueues(history, view, mark) {
  const rows = [];
  const curves = [];
  for (const [name, queue] of [...history.all("queue")].sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (queue.at("pool", mark) === undefined) continue;
    const row = element("tr");
    row.append(element("th", name, { scope: "row" }));
    for (const field of ["guaranteed", "entitled", "allocated", "borrowed", "lent", "demand", "waiting"])
      row.append(element("td", String(queue.at(field, mark) ?? 0), { class: "number" }));
    const canvas = element("canvas", "", { "aria-hidden": "true" });
    const cell = element("td");
    cell.append(canvas);
    row.append(cell);
    rows.push(row);
    curves.push([canvas, queue]);
  }
  if (rows.length === 0) {
    const row = element("tr");
    const why = mark < history.begin ? "not recorded" : "no queues at the time mark: all jobs share by the built-in one";
    row.append(element("td", why, { colspan: 9 }));
    rows.push(row);
  }
  byId("queues").tBodies[0].replaceChildren(...rows);
  for (const [canvas, queue] of curves)
    drawCurve(surfaceOf(canvas), view, queue.tracks.get("allocated"), queue.tracks.get("guaranteed"));
}
