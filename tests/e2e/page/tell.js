// Reads documents of the timeline, and tells for each what the page would show: its lanes at the end, and the stack
// after each change. The page's own scripts decide.

import { readFileSync } from "node:fs";

import { jobList, stack } from "../../../operator/web/page/layout.js";
import { rowLabel, valuesOf } from "../../../operator/web/page/panels.js";
import { History } from "../../../operator/web/page/state.js";

const MAX_BANDS = 20;

function tell(document) {
  const history = new History();
  history.load(document);
  const lanes = jobList(history, history.now, "").map((row) => ({
    name: row.name, state: row.state, phase: row.phase, gpus: row.gpus, label: rowLabel(row),
    reason: valuesOf(history, row.name, history.now).Reason,
  }));
  const times = [...new Set([document.from, ...document.changes.map((change) => change.at)])].sort((a, b) => a - b);
  const stacks = times.map((at) => {
    const { bands, top } = stack(history, at, at + 1, 1, MAX_BANDS);
    return { at, top, bands: bands.map(({ kind, queue, label, gpus }) => ({ kind, queue, label, gpus: gpus[0] })) };
  });
  return { lanes, stacks };
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(tell)));
