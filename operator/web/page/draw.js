// Draws on surfaces what layout.js has laid out. A surface: {context, width, height, colour, pattern}, of
// canvas.js or svg.js. `colour(name)` is one of the page's style; `pattern(fill)` is a fill of the context.

import { fillOf, gpuStep, timeMarks } from "./layout.js";
import { markLabel } from "./times.js";

export const LEFT = 48; // pixels of the axis of GPUs
export const BOTTOM = 22; // pixels of the axis of time

// The fill of a number: one of six colours with one of six patterns.
function bandFill(surface, index) {
  const fill = fillOf(index);
  return fill.pattern === 0 ? fill.colour : surface.pattern(fill);
}

export function fillOfBand(surface, band) {
  return band.kind === "job" || band.kind === "others" ? bandFill(surface, band.fill) : surface.colour(band.kind);
}

// Shades the times before the history begins: they are not known.
function drawUnknown({ context, colour }, view, x, height, begin, label = true) {
  const right = Math.min(x(begin), x(view.end));
  if (right <= x(view.begin)) return;
  context.fillStyle = colour("unknown");
  context.fillRect(x(view.begin), 0, right - x(view.begin), height);
  if (!label) return;
  context.fillStyle = colour("quiet");
  context.textAlign = "right";
  if (right - x(view.begin) > 90) context.fillText("not recorded", right - 6, 16);
}

// `sight`: {bands, top}, one sample per pixel. `mark`: the time of the time mark, or null. `brush`: two
// positions in pixels, or null.
export function drawStack(surface, view, sight, history, mark, brush) {
  const { context, width, height, colour } = surface;
  const bottom = height - BOTTOM;
  const top = Math.max(sight.top, 1);
  const x = (time) => LEFT + ((time - view.begin) / (view.end - view.begin)) * (width - LEFT);
  const y = (gpus) => bottom - (gpus / top) * (bottom - 8);
  const count = sight.bands[0]?.gpus.length ?? 0;
  const columnWidth = (width - LEFT) / Math.max(count, 1);
  sight.bands.forEach((band) => {
    context.fillStyle = fillOfBand(surface, band);
    context.beginPath();
    for (let i = 0; i < count; ) {
      let end = i + 1;
      while (end < count && band.gpus[end] === band.gpus[i] && band.base[end] === band.base[i]) end++;
      if (band.gpus[i] > 0) {
        const high = y(band.base[i] + band.gpus[i]);
        context.rect(LEFT + i * columnWidth, high, (end - i) * columnWidth + 0.5, y(band.base[i]) - high);
      }
      i = end;
    }
    context.fill();
  });
  drawUnknown(surface, view, x, bottom, history.begin);
  context.strokeStyle = colour("line");
  context.fillStyle = colour("quiet");
  context.lineWidth = 1;
  context.textAlign = "right";
  context.textBaseline = "middle";
  const step = gpuStep(top, 6);
  for (let gpus = 0; gpus <= top; gpus += step) {
    context.beginPath();
    context.moveTo(LEFT - 4, y(gpus));
    context.lineTo(LEFT, y(gpus));
    context.stroke();
    context.fillText(String(gpus), LEFT - 8, Math.max(y(gpus), 8));
  }
  for (const time of timeMarks(view.begin, view.end, width / 110, history.origin ?? 0)) {
    context.beginPath();
    context.moveTo(x(time), bottom);
    context.lineTo(x(time), bottom + 4);
    context.stroke();
    const isLast = x(time) > width - 45; // its label must not leave the picture
    context.textAlign = isLast ? "right" : "center";
    context.fillText(markLabel(time, view.end - view.begin, history.origin), isLast ? width - 2 : x(time), bottom + 13);
  }
  if (mark !== null && mark >= view.begin && mark <= view.end) {
    context.strokeStyle = colour("text");
    context.setLineDash([4, 3]);
    context.beginPath();
    context.moveTo(x(mark), 0);
    context.lineTo(x(mark), bottom);
    context.stroke();
    context.setLineDash([]);
  }
  if (brush !== null) {
    context.globalAlpha = 0.25;
    context.fillStyle = colour("focus");
    context.fillRect(Math.min(...brush), 0, Math.abs(brush[1] - brush[0]), bottom);
    context.globalAlpha = 1;
  }
}

// A lane's thickness is its GPUs, relative to those of the largest job in view.
export function drawLane(surface, view, pieces, largest, begin) {
  const { context, width, height, colour } = surface;
  const x = (time) => ((time - view.begin) / (view.end - view.begin)) * width;
  drawUnknown(surface, view, x, height, begin, false);
  for (const piece of pieces) {
    const thick = piece.gpus > 0 ? Math.max((piece.gpus / Math.max(largest, 1)) * height, 3) : 2;
    context.fillStyle = colour(piece.state);
    context.fillRect(x(piece.from), (height - thick) / 2, Math.max(x(piece.to) - x(piece.from), 1), thick);
  }
}

// A curve of the values of a track; `guide`: a second track as a dashed line of steps, or null.
export function drawCurve({ context, width, height, colour }, view, track, guide = null) {
  const pieces = (track?.pieces(view.begin, view.end) ?? []).filter(({ value }) => Number.isFinite(value));
  const lines = (guide?.pieces(view.begin, view.end) ?? []).filter(({ value }) => Number.isFinite(value));
  if (pieces.length === 0 && lines.length === 0) return;
  const all = [...pieces, ...lines].map(({ value }) => value);
  const low = guide !== null ? 0 : Math.min(...all);
  const high = Math.max(...all);
  const x = (time) => ((time - view.begin) / (view.end - view.begin)) * width;
  const y = (value) => height - 4 - ((value - low) / Math.max(high - low, 1e-12)) * (height - 8);
  const draw = (steps, style, dash) => {
    context.strokeStyle = style;
    context.setLineDash(dash);
    context.beginPath();
    steps.forEach(({ from, to, value }, i) => {
      if (i === 0) context.moveTo(x(from), y(value));
      else context.lineTo(x(from), y(value));
      context.lineTo(x(to), y(value));
    });
    context.stroke();
  };
  context.lineWidth = 1.5;
  draw(lines, colour("quiet"), [4, 3]);
  draw(pieces, colour("running"), []);
  if (guide !== null) return;
  context.setLineDash([]);
  context.fillStyle = colour("quiet");
  context.textAlign = "left";
  context.textBaseline = "top";
  context.fillText(high.toPrecision(4), 4, 2);
  context.textBaseline = "bottom";
  if (high !== low) context.fillText(low.toPrecision(4), 4, height - 2);
}
