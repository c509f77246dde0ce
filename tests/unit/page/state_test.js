import { History, Track, sentence } from "../../../operator/web/page/state.js";
import { equal, finish, test } from "./check.js";

const frame = {
  replica: "op-0_1f", sequence: 3, from: 1000, begin: 1000, now: 5000,
  frame: {
    job: { "a/one": { queue: "q", phase: "Running" }, "a/two": { queue: "q", phase: "Queued" } },
    held: { "a/one": { "gpu-1": { gpus: 4 }, "gpu-2": { gpus: 2 } } },
    node: { "gpu-1": { gpus: 8, used: 5 }, "gpu-2": { gpus: 8, used: 2 } },
    pool: { "default": {} },
  },
  changes: [
    { at: 2000, held: "a/one", node: "gpu-2", set: null },
    { at: 2000, node: "gpu-2", set: { used: null } },
    { at: 3000, job: "a/two", set: { phase: "Starting", desired: 2 } },
    { at: 3500, held: "a/two", node: "gpu-2", set: { gpus: 2 } },
    { at: 4000, job: "a/one", set: null },
    { at: 4500, node: "gpu-1", set: null },
    { at: 4600, pool: "default", set: { yielded: 3 } },
  ],
};

function loaded() {
  const history = new History();
  history.load(frame);
  return history;
}

test("a track has the value of the last time that is not later", () => {
  const track = new Track();
  track.put(10, 1);
  track.put(20, 1);
  track.put(30, 2);
  track.put(30, 3);
  equal(track.times, [10, 30]);
  equal([track.at(9), track.at(10), track.at(29), track.at(30), track.at(99)], [undefined, 1, 1, 3, 3]);
  equal(track.pieces(0, 40), [{ from: 10, to: 30, value: 1 }, { from: 30, to: 40, value: 3 }]);
  equal(track.pieces(15, 20), [{ from: 15, to: 20, value: 1 }]);
  equal(track.pieces(0, 10), []);
  const sums = new Float64Array(5);
  track.addSamples(0, 10, 5, sums);
  equal(sums, [0, 1, 1, 3, 3]);
});

test("a frame and its changes give every moment after it", () => {
  const history = loaded();
  equal([history.replica, history.begin, history.now], ["op-0_1f", 1000, 5000]);
  equal([1000, 2000, 3499, 3500].map((t) => history.gpusOf("a/one", t)), [6, 4, 4, 4]);
  equal(history.gpusOf("a/two", 3500), 2);
  equal(history.nodesOf("a/one", 1500), [["gpu-1", 4], ["gpu-2", 2]]);
  equal(history.nodesOf("a/one", 2500), [["gpu-1", 4]]);
  equal(history.all("job").get("a/two").at("phase", 2999), "Queued");
  equal(history.all("job").get("a/two").at("phase", 3000), "Starting");
  equal(history.all("job").get("a/one").at("phase", 3999), "Running");
  equal(history.all("job").get("a/one").at("phase", 4000), undefined);
});

test("sums over nodes and pools follow each of them", () => {
  const history = loaded();
  equal([1000, 4499, 4500].map((t) => history.capacity.at(t)), [16, 16, 8]);
  equal([1000, 2000, 4500].map((t) => history.used.at(t)), [7, 5, 0]);
  equal([4599, 4600].map((t) => history.yielded.at(t) ?? 0), [0, 3]);
  history.apply([{ at: 6000, node: "gpu-1", set: { gpus: 4, used: 1 } }]);
  equal([history.capacity.at(6000), history.used.at(6000), history.now], [12, 1, 6000]);
});

test("a frame replaces what was known", () => {
  const history = loaded();
  history.load({ ...frame, replica: "op-1_2e", frame: {}, changes: [] });
  equal([history.replica, history.all("job").size, history.gpusOf("a/one", 9000)], ["op-1_2e", 0, 0]);
  equal(history.capacity.at(9000), undefined);
});

test("events are what changed about a job, and a frame is none", () => {
  const history = loaded();
  equal(history.events.map((event) => [event.time, event.job, sentence(event)]),
    [[3000, "a/two", "Starting · desired learners: 2"], [4000, "a/one", "deleted"]]);
  history.apply([{ at: 7000, job: "a/one", set: { phase: "Queued", reason: "<b>it waits</b>" } },
    { at: 8000, job: "a/one", set: { loss: 0.5 } }]);
  equal(sentence(history.events[2]), "appeared · Queued · <b>it waits</b>");
  equal(history.events.length, 3, "statistics are no events");
});

test("memory of events is bounded", () => {
  const history = loaded();
  for (let i = 0; i < 30000; i++) history.apply([{ at: 9000 + i, job: "a/two", set: { reason: `${i}` } }]);
  equal(history.events.length <= 10000, true);
  equal(history.events[history.events.length - 1].reason, "29999");
});

test("names that objects have by themselves are names like others", () => {
  const history = loaded();
  history.apply(JSON.parse('[{"at":6000,"job":"__proto__","set":{"phase":"Queued"}},' +
    '{"at":6000,"held":"constructor","node":"toString","set":{"gpus":1}},{"at":6000,"comet":"x","set":{}}]'));
  equal(history.all("job").get("__proto__").at("phase", 6000), "Queued");
  equal(history.nodesOf("constructor", 6000), [["toString", 1]]);
  const other = new History();
  other.load(JSON.parse('{"replica":"r","from":1,"now":1,"changes":[],"frame":{"job":{"__proto__":{"phase":"Queued"}}}}'));
  equal(other.all("job").get("__proto__")?.at("phase", 1), "Queued");
});

finish();
