// Where things are drawn: the stack of GPUs, the lanes of jobs, the list. Pure: no page, no clock.

import { SECOND } from "./times.js";

// The palette of Okabe and Ito, whose colours people with any colour vision tell apart. Patterns
// help those who see no colours.
export const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"];
// The lines of each pattern, in a tile of 8 by 8 pixels: [x1, y1, x2, y2].
const LINES = [[], [[0, 8, 8, 0]], [[4, 0, 4, 8]], [[0, 4, 8, 4]], [[0, 0, 8, 8]], [[0, 4, 8, 4], [4, 0, 4, 8]]];

export function fillOf(index) {
  const pattern = Math.floor(index / COLOURS.length) % LINES.length;
  return { colour: COLOURS[index % COLOURS.length], pattern, lines: LINES[pattern] };
}

// The number of a name's fill: it stays the same while other jobs come and go. FNV-1a.
export function fillNumber(name) {
  let hash = 0x811c9dc5;
  for (let i = 0; i < name.length; i++) hash = Math.imul(hash ^ name.charCodeAt(i), 0x01000193) >>> 0;
  return hash % (COLOURS.length * LINES.length);
}

// Jobs that held GPUs within [begin, end], with their GPUs at each of `count` moments.
function jobSamples(history, begin, end, count) {
  const step = (end - begin) / count;
  const jobs = [];
  for (const [job, held] of history.held) {
    const gpus = new Float64Array(count);
    held.total.addSamples(begin, step, count, gpus);
    const area = gpus.reduce((sum, each) => sum + each, 0);
    if (area === 0) continue;
    const queue = history.all("job").get(job)?.now("queue") ?? lastQueue(history, job) ?? "";
    jobs.push({ job, queue, gpus, area });
  }
  return jobs;
}

// The queue of a job that is gone.
function lastQueue(history, job) {
  const track = history.all("job").get(job)?.tracks.get("queue");
  return track?.values.findLast((queue) => queue !== undefined);
}

export const MAX_BANDS = 20; // jobs with a band of their own

const byName = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

// The bands of the stacked area, from below: jobs grouped by queue, then GPUs of other workloads,
// yielded ones, and idle ones. The `maxJobs` largest jobs have bands of their own; the others of a
// queue are one band. Each band: {kind, queue, label, jobs, gpus, base, fill}; `base` is the sum below.
export function stack(history, begin, end, count, maxJobs) {
  const jobs = jobSamples(history, begin, end, count);
  jobs.sort((a, b) => b.area - a.area || byName(a.job, b.job));
  const large = new Set(jobs.slice(0, maxJobs).map((each) => each.job));
  const queues = [...new Set(jobs.map((each) => each.queue))].sort(byName);
  const bands = [];
  for (const queue of queues) {
    const mine = jobs.filter((each) => each.queue === queue);
    for (const each of mine.filter(({ job }) => large.has(job)).sort((a, b) => byName(a.job, b.job)))
      bands.push({ kind: "job", queue, label: each.job, jobs: 1, gpus: each.gpus, fill: fillNumber(each.job) });
    const small = mine.filter(({ job }) => !large.has(job));
    if (small.length === 0) continue;
    const gpus = new Float64Array(count);
    for (const each of small) each.gpus.forEach((value, i) => (gpus[i] += value));
    const label = small.length === 1 ? "1 other" : `${small.length} others`;
    bands.push({ kind: "others", queue, label, jobs: small.length, gpus, fill: fillNumber(queue) });
  }
  const step = (end - begin) / count;
  const samples = (track) => {
    const gpus = new Float64Array(count);
    track.addSamples(begin, step, count, gpus);
    return gpus;
  };
  const held = new Float64Array(count);
  for (const band of bands) band.gpus.forEach((value, i) => (held[i] += value));
  const capacity = samples(history.capacity);
  const used = samples(history.used);
  const yielded = samples(history.yielded);
  // Pods may hold GPUs on a node whose own GPUs were just taken away: no band is negative.
  const foreign = used.map((value, i) => Math.max(value - held[i], 0));
  const free = capacity.map((value, i) => Math.max(value - held[i] - foreign[i], 0));
  const given = yielded.map((value, i) => Math.min(value, free[i]));
  const idle = free.map((value, i) => value - given[i]);
  bands.push({ kind: "foreign", queue: "", label: "other workloads", jobs: 0, gpus: foreign });
  bands.push({ kind: "yielded", queue: "", label: "yielded", jobs: 0, gpus: given });
  bands.push({ kind: "idle", queue: "", label: "idle", jobs: 0, gpus: idle });
  const base = new Float64Array(count);
  let top = 0;
  for (const band of bands) {
    band.base = base.slice();
    band.gpus.forEach((value, i) => (base[i] += value));
  }
  base.forEach((value) => (top = Math.max(top, value)));
  return { bands, top };
}

// The name of a band in a legend.
export function labelOf(band) {
  return band.kind === "others" && band.queue !== "" ? `${band.label} of ${band.queue}` : band.label;
}

// The band at a height in GPUs; undefined above the stack.
export function bandAt(bands, column, gpus) {
  return bands.find((band) => gpus >= band.base[column] && gpus < band.base[column] + band.gpus[column]);
}

const WAITING = new Set(["Queued", "Suspended", undefined]);
const ENDED = new Set(["Succeeded", "Failed"]);

export function stateOf(phase, gpus) {
  if (gpus > 0) return "running";
  if (ENDED.has(phase)) return "ended";
  return WAITING.has(phase) ? "waiting" : "starting";
}

// The most GPUs in any of the lists: jobs that have ended had some, too.
export function mostGpus(...lists) {
  return lists.flat().reduce((most, { gpus }) => Math.max(most, gpus), 1);
}

// The lane of one job: {from, to, state, gpus} in order of time.
export function lane(history, job, begin, end) {
  const subject = history.all("job").get(job);
  const held = history.held.get(job)?.total;
  const cuts = new Set([begin]);
  for (const track of [subject?.tracks.get("phase"), held])
    for (const piece of track?.pieces(begin, end) ?? []) cuts.add(piece.from);
  const times = [...cuts].sort((a, b) => a - b);
  const pieces = [];
  times.forEach((from, i) => {
    const phase = subject?.at("phase", from);
    const gpus = held?.at(from) ?? 0;
    if (phase === undefined && gpus === 0) return; // it does not exist
    const piece = { from, to: times[i + 1] ?? end, state: stateOf(phase, gpus), gpus };
    const last = pieces[pieces.length - 1];
    if (last && last.to === from && last.state === piece.state && last.gpus === gpus) last.to = piece.to;
    else pieces.push(piece);
  });
  return pieces;
}

const ORDER = { running: 0, starting: 1, waiting: 2, ended: 3 };

// The jobs of the list at `time`: those that hold GPUs first, the largest of them before the
// others; then those that wait, in the order of their priority and age. `filter` is a part of the
// name, the queue or the phase.
export function jobList(history, time, filter) {
  const wanted = filter.trim().toLowerCase();
  const rows = [];
  for (const [name, subject] of history.all("job")) {
    const phase = subject.at("phase", time);
    if (phase === undefined) continue;
    const queue = subject.at("queue", time) ?? "";
    const text = `${name} ${queue} ${phase}`.toLowerCase();
    if (wanted !== "" && !text.includes(wanted)) continue;
    const gpus = history.gpusOf(name, time);
    rows.push({
      name, queue, phase, gpus,
      state: stateOf(phase, gpus),
      priority: subject.at("priority", time) ?? 0,
      created: subject.at("created", time) ?? 0,
    });
  }
  return rows.sort((a, b) =>
    ORDER[a.state] - ORDER[b.state] || b.gpus - a.gpus || b.priority - a.priority ||
    a.created - b.created || byName(a.name, b.name));
}

// The rows of a long list that are to be in the page: [first, last).
export function visibleRows(scrolled, height, rowHeight, count, spare = 5) {
  const first = Math.max(Math.floor(scrolled / rowHeight) - spare, 0);
  const last = Math.min(Math.ceil((scrolled + height) / rowHeight) + spare, count);
  return [Math.min(first, last), last];
}

const STEPS = [1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600, 7200, 14400, 43200, 86400, 172800, 604800, 2592000]
  .map((seconds) => seconds * SECOND);

// Times with a mark on the axis: at most `most` of them, at round times since `origin`.
export function timeMarks(begin, end, most, origin = 0) {
  const step = STEPS.find((each) => (end - begin) / each <= most) ?? end - begin;
  const marks = [];
  for (let time = origin + Math.ceil((begin - origin) / step) * step; time <= end; time += step) marks.push(time);
  return marks;
}

// A round number of GPUs between marks.
export function gpuStep(top, most) {
  for (let unit = 1; ; unit *= 10)
    for (const factor of [1, 2, 5]) if (top / (unit * factor) <= most) return unit * factor;
}

// The window after a zoom by `factor` around `centre`, at least ten seconds long.
export function zoomed({ begin, end }, centre, factor) {
  const length = Math.max((end - begin) * factor, 10 * SECOND);
  const part = (centre - begin) / (end - begin);
  return { begin: centre - part * length, end: centre + (1 - part) * length };
}
