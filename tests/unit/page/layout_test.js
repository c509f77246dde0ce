import {
  COLOURS, bandAt, fillOf, gpuStep, jobList, lane, mostGpus, stack, timeMarks, visibleRows, zoomed,
} from "../../../operator/web/page/layout.js";
import { History } from "../../../operator/web/page/state.js";
import { equal, finish, test } from "./check.js";

function history(jobs, changes = []) {
  const made = new History();
  const frame = { job: {}, held: {}, node: { n: { gpus: 100, used: 0 } }, pool: { default: { yielded: 10 } } };
  let used = 20; // by others
  for (const [name, queue, gpus] of jobs) {
    frame.job[name] = { queue, phase: gpus > 0 ? "Running" : "Queued", priority: 5000, created: 1 };
    if (gpus > 0) frame.held[name] = { n: { gpus } };
    used += gpus;
  }
  frame.node.n.used = used;
  made.load({ replica: "r", from: 0, now: 1000, frame, changes });
  return made;
}

test("bands are grouped by queue, and their sum is the capacity", () => {
  const { bands, top } = stack(history([["b/x", "red", 5], ["a/y", "blue", 7], ["a/z", "red", 3]]), 0, 1000, 4, 10);
  equal(bands.map(({ kind, queue, label }) => [kind, queue, label]),
    [["job", "blue", "a/y"], ["job", "red", "a/z"], ["job", "red", "b/x"],
      ["foreign", "", "other workloads"], ["yielded", "", "yielded"], ["idle", "", "idle"]]);
  equal(bands.map(({ gpus }) => gpus[2]), [7, 3, 5, 20, 10, 55]);
  equal(bands.map(({ base }) => base[2]), [0, 7, 10, 15, 35, 45]);
  equal(top, 100);
});

test("small jobs are one band for each queue", () => {
  const many = Array.from({ length: 50 }, (_, i) => [`a/${String(i).padStart(2, "0")}`, i % 2 ? "odd" : "even", 1]);
  const { bands } = stack(history([...many, ["a/large", "odd", 8]]), 0, 1000, 2, 3);
  equal(bands.filter(({ kind }) => kind === "job").map(({ label }) => label), ["a/00", "a/01", "a/large"]);
  equal(bands.filter(({ kind }) => kind === "others").map(({ queue, label, gpus }) => [queue, label, gpus[0]]),
    [["even", "24 others", 24], ["odd", "24 others", 24]]);
});

test("a job keeps its fill while others come and go", () => {
  const fills = (jobs) => Object.fromEntries(
    stack(history(jobs), 0, 1000, 1, 10).bands.map(({ label, fill }) => [label, fill]));
  const alone = fills([["a/y", "q", 2]])["a/y"];
  equal(fills([["a/x", "q", 9], ["a/y", "q", 2], ["b/z", "other", 1]])["a/y"], alone);
  const many = fills(Array.from({ length: 10 }, (_, i) => [`a/${i}`, "q", 1]));
  equal(new Set(Object.values(many)).size > 5, true, "fills differ");
});

test("no band is negative, even while pods and nodes disagree", () => {
  const shrunk = history([["a/x", "q", 60]], [{ at: 500, node: "n", set: { gpus: 10, used: 40 } }]);
  const { bands } = stack(shrunk, 0, 1000, 4, 10);
  for (const band of bands) for (const gpus of band.gpus) equal(gpus >= 0, true, band.label);
  equal(bands.map(({ gpus }) => gpus[3]), [60, 0, 0, 0]);
});

test("the band at a point", () => {
  const { bands } = stack(history([["a/x", "q", 4], ["a/y", "q", 4]]), 0, 1000, 2, 10);
  equal([0, 3.9, 4, 8].map((gpus) => bandAt(bands, 0, gpus).label), ["a/x", "a/x", "a/y", "other workloads"]);
  equal(bandAt(bands, 0, 101), undefined);
});

test("a lane shows waiting, running and the end", () => {
  const changes = [
    { at: 200, job: "a/x", set: { phase: "Starting" } },
    { at: 300, held: "a/x", node: "n", set: { gpus: 2 } },
    { at: 400, job: "a/x", set: { phase: "Running" } },
    { at: 500, held: "a/x", node: "n", set: { gpus: 6 } },
    { at: 700, held: "a/x", node: "n", set: null },
    { at: 700, job: "a/x", set: { phase: "Succeeded" } },
    { at: 900, job: "a/x", set: null },
  ];
  equal(lane(history([["a/x", "q", 0]], changes), "a/x", 100, 1000), [
    { from: 100, to: 200, state: "waiting", gpus: 0 },
    { from: 200, to: 300, state: "starting", gpus: 0 },
    { from: 300, to: 500, state: "running", gpus: 2 },
    { from: 500, to: 700, state: "running", gpus: 6 },
    { from: 700, to: 900, state: "ended", gpus: 0 },
  ]);
  equal(lane(history([]), "nobody", 0, 10), []);
});

test("the list of jobs: who runs, who waits; by filter; at a time", () => {
  const changes = [{ at: 500, job: "a/late", set: { phase: "Queued", queue: "q", priority: 9000, created: 500 } }];
  const made = history([["a/small", "q", 1], ["a/wait", "q", 0], ["a/large", "red", 8]], changes);
  const names = (time, filter) => jobList(made, time, filter).map(({ name }) => name);
  equal(names(1000, ""), ["a/large", "a/small", "a/late", "a/wait"]);
  equal(names(499, ""), ["a/large", "a/small", "a/wait"]);
  equal(names(1000, " RED "), ["a/large"]);
  equal(names(1000, "queued"), ["a/late", "a/wait"]);
});

test("only rows in sight are in the page", () => {
  equal(visibleRows(0, 100, 10, 10000, 2), [0, 12]);
  equal(visibleRows(5000, 100, 10, 10000, 2), [498, 512]);
  equal(visibleRows(99900, 100, 10, 10000, 2), [9988, 10000]);
  equal(visibleRows(5000, 100, 10, 3, 2), [3, 3], "the list became shorter");
});

test("a stack of 1,000 running jobs among 10,000 takes less than a second", () => {
  const jobs = Array.from({ length: 10000 }, (_, i) => [`team-${i % 20}/job-${i}`, `q${i % 20}`, i < 1000 ? 1 : 0]);
  const changes = Array.from({ length: 20000 }, (_, i) =>
    ({ at: i / 20, held: `team-${i % 20}/job-${i % 1000}`, node: "n", set: { gpus: 1 + (i % 3) } }));
  const made = history(jobs, changes);
  const began = Date.now();
  stack(made, 0, 1000, 1000, 30);
  jobList(made, 1000, "");
  equal(Date.now() - began < 1000, true, `${Date.now() - began} ms`);
});

test("lanes are as thick as the most GPUs of any, also of jobs that have ended", () => {
  equal(mostGpus([{ gpus: 0 }, { gpus: 3 }], [{ gpus: 8 }, { gpus: 0 }], []), 8);
  equal(mostGpus([]), 1);
});

test("axes have round marks", () => {
  equal(timeMarks(0, 60000, 6), [0, 10000, 20000, 30000, 40000, 50000, 60000]);
  equal(timeMarks(1, 7200e3, 4).length, 4);
  equal([7, 60, 1000, 1].map((top) => gpuStep(top, 6)), [2, 10, 200, 1]);
});

test("colours and patterns together number 36", () => {
  const fills = new Set(Array.from({ length: 36 }, (_, i) => JSON.stringify(fillOf(i))));
  equal([fills.size, fillOf(7).colour, fillOf(7).pattern], [36, COLOURS[1], 1]);
});

test("a zoom keeps the time under the mark in its place", () => {
  equal(zoomed({ begin: 0, end: 100000 }, 25000, 0.5), { begin: 12500, end: 62500 });
  const smallest = zoomed({ begin: 0, end: 11000 }, 0, 0.01);
  equal(smallest.end - smallest.begin, 10000);
});

finish();
