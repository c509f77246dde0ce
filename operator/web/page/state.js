// The history of the cluster, from the frames and changes that the operator sends. Pure: no page, no clock.

// A value over time: each holds from its time until the next one.
export class Track {
  times = [];
  values = [];

  // Times do not go backwards. A value of the same time replaces the one before.
  put(time, value) {
    const last = this.times.length - 1;
    if (last >= 0 && this.times[last] >= time) {
      this.values[last] = value;
    } else if (last < 0 || this.values[last] !== value) {
      this.times.push(time);
      this.values.push(value);
    }
  }

  // The index of the last value at or before `time`; -1 if there is none.
  index(time) {
    let low = 0;
    let high = this.times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.times[middle] <= time) low = middle + 1;
      else high = middle;
    }
    return low - 1;
  }

  at(time) {
    const index = this.index(time);
    return index < 0 ? undefined : this.values[index];
  }

  last() {
    return this.values[this.values.length - 1];
  }

  // The pieces of constant value within [begin, end): {from, to, value}.
  pieces(begin, end) {
    const found = [];
    for (let i = Math.max(this.index(begin), 0); i < this.times.length && this.times[i] < end; i++) {
      const from = Math.max(this.times[i], begin);
      const to = Math.min(i + 1 < this.times.length ? this.times[i + 1] : end, end);
      if (to > from) found.push({ from, to, value: this.values[i] });
    }
    return found;
  }

  // One value for each of `count` times from `begin` on, `step` apart, added to `sums`.
  addSamples(begin, step, count, sums) {
    let index = this.index(begin);
    for (let i = 0; i < count; i++) {
      const time = begin + i * step;
      while (index + 1 < this.times.length && this.times[index + 1] <= time) index++;
      if (index >= 0) sums[i] += this.values[index] || 0;
    }
  }
}

const KINDS = ["job", "held", "queue", "pool", "node"];
const MAX_EVENTS = 5000;
// Fields whose change is an event of the job.
const TOLD = new Set(["phase", "desired", "reason", "code"]);

class Subject {
  tracks = new Map(); // by field
  gone = false;

  constructor(kind, name) {
    this.kind = kind;
    this.name = name;
  }

  put(time, field, value) {
    let track = this.tracks.get(field);
    if (track === undefined) this.tracks.set(field, (track = new Track()));
    track.put(time, value);
  }

  end(time) {
    this.gone = true;
    for (const track of this.tracks.values()) track.put(time, undefined);
  }

  at(field, time) {
    return this.tracks.get(field)?.at(time);
  }

  now(field) {
    return this.tracks.get(field)?.last();
  }
}

export class History {
  constructor() {
    this.clear();
  }

  clear() {
    this.replica = "";
    this.begin = 0; // earlier times are not known
    this.origin = null; // times are shown as those since it; null: as those of the clock
    this.now = 0;
    this.changes = 0;
    this.subjects = new Map(KINDS.map((kind) => [kind, new Map()]));
    this.held = new Map(); // by job: {total: Track, nodes: Map of Track by node}
    this.capacity = new Track(); // GPUs of all nodes
    this.used = new Track(); // by pods of any kind
    this.yielded = new Track();
    this.sums = { capacity: 0, used: 0, yielded: 0 };
    this.events = []; // oldest first
  }

  // A document with a frame and the changes after it.
  load(document) {
    this.clear();
    this.replica = document.replica;
    this.begin = document.from;
    this.origin = document.origin ?? null;
    this.now = document.now;
    for (const [kind, named] of Object.entries(document.frame)) {
      for (const [name, values] of Object.entries(named)) {
        if (kind !== "held") this.set(document.from, kind, name, undefined, values);
        else
          for (const [node, amounts] of Object.entries(values))
            this.set(document.from, kind, name, node, amounts);
      }
    }
    this.events = []; // the frame is no news
    this.apply(document.changes);
  }

  apply(changes) {
    for (const change of changes) {
      const kind = KINDS.find((each) => change[each] !== undefined);
      if (kind === undefined) continue; // a newer operator knows more
      this.set(change.at, kind, change[kind], change.node, change.set);
      this.now = Math.max(this.now, change.at);
      this.changes++;
    }
  }

  // `values`: those that changed; null: it is gone.
  set(time, kind, name, node, values) {
    if (kind === "held") {
      this.hold(time, name, node, values === null ? 0 : values.gpus);
      return;
    }
    const named = this.subjects.get(kind);
    if (named === undefined) return;
    let subject = named.get(name);
    if (values === null) {
      if (subject === undefined) return;
      if (kind === "job") this.tell(time, name, { gone: true });
      this.count(time, subject, {});
      subject.end(time);
      return;
    }
    const isNew = subject === undefined || subject.gone;
    if (subject === undefined) named.set(name, (subject = new Subject(kind, name)));
    subject.gone = false;
    this.count(time, subject, values);
    if (kind === "job" && Object.keys(values).some((field) => TOLD.has(field)))
      this.tell(time, name, isNew ? { ...values, isNew } : values);
    for (const [field, value] of Object.entries(values)) subject.put(time, field, value ?? undefined);
  }

  hold(time, job, node, gpus) {
    let held = this.held.get(job);
    if (held === undefined) this.held.set(job, (held = { total: new Track(), nodes: new Map() }));
    let track = held.nodes.get(node);
    if (track === undefined) held.nodes.set(node, (track = new Track()));
    const total = (held.total.last() ?? 0) - (track.last() ?? 0) + gpus;
    track.put(time, gpus);
    held.total.put(time, total);
  }

  // Keeps the sums over all nodes and pools. `values` as in set; {} for a subject that is gone.
  count(time, subject, values) {
    const terms =
      subject.kind === "node" ? [["capacity", "gpus"], ["used", "used"]]
      : subject.kind === "pool" ? [["yielded", "yielded"]]
      : [];
    const gone = Object.keys(values).length === 0;
    for (const [sum, field] of terms) {
      if (!gone && values[field] === undefined) continue;
      this.sums[sum] += (values[field] ?? 0) - (subject.now(field) ?? 0);
      this[sum].put(time, this.sums[sum]);
    }
  }

  tell(time, job, values) {
    this.events.push({ time, job, ...values });
    if (this.events.length > 2 * MAX_EVENTS) this.events.splice(0, MAX_EVENTS);
  }

  all(kind) {
    return this.subjects.get(kind);
  }

  gpusOf(job, time) {
    return this.held.get(job)?.total.at(time) ?? 0;
  }

  // The nodes on which the job holds GPUs: [[node, gpus], …], by name.
  nodesOf(job, time) {
    const nodes = this.held.get(job)?.nodes ?? new Map();
    return [...nodes]
      .map(([node, track]) => [node, track.at(time) ?? 0])
      .filter(([, gpus]) => gpus > 0)
      .sort(([a], [b]) => (a < b ? -1 : 1));
  }
}

// One sentence for an event of a job.
export function sentence(event) {
  if (event.gone) return "deleted";
  const parts = [];
  if (event.isNew) parts.push("appeared");
  if (event.phase) parts.push(event.phase);
  if (event.desired !== undefined) parts.push(`desired learners: ${event.desired ?? 0}`);
  if (event.code) parts.push(event.code);
  if (event.reason) parts.push(event.reason);
  return parts.join(" · ");
}
