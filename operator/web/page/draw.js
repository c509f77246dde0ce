// Draws on canvases what layout.js has laid out.

import { fillOf, gpuStep, timeMarks } from "./layout.js";

export const LEFT = 48; // pixels of the axis of GPUs
export const BOTTOM = 22; // pixels of the axis of time

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

// A context in the page's pixels, with the canvas as sharp as the screen.
export function prepared(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.font = "12px system-ui, sans-serif";
  return { context, width, height };
}

const LINES = [[], [[0, 8, 8, 0]], [[4, 0, 4, 8]], [[0, 4, 8, 4]], [[0, 0, 8, 8]], [[0, 4, 8, 4], [4, 0, 4, 8]]];
const patterns = new Map();

// The fill of a number: one of six colours with one of six patterns.
export function bandFill(context, index) {
  const { colour: base, pattern } = fillOf(index);
  if (pattern === 0) return base;
  const key = `${base} ${pattern}`;
  if (!patterns.has(key)) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const on = tile.getContext("2d");
    on.fillStyle = base;
    on.fillRect(0, 0, 8, 8);
    on.strokeStyle = "rgba(255, 255, 255, 0.75)";
    on.lineWidth = 1.5;
    for (const [x1, y1, x2, y2] of LINES[pattern]) {
      on.beginPath();
      on.moveTo(x1, y1);
      on.lineTo(x2, y2);
      on.stroke();
    }
    patterns.set(key, tile);
  }
  return context.createPattern(patterns.get(key), "repeat");
}

export function fillOfBand(context, band) {
  return band.kind === "job" || band.kind === "others" ? bandFill(context, band.fill) : colour(band.kind);
}

function clock(time, length) {
  const options = length > 86400e3
    ? { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" }
    : { hour: "2-digit", minute: "2-digit", ...(length < 600e3 && { second: "2-digit" }) };
  return new Intl.DateTimeFormat(undefined, options).format(time);
}

// Shades the times before the history begins: they are not known.
function drawUnknown(context, view, x, height, begin, label = true) {
  const right = Math.min(x(begin), x(view.end));
  if (right <= x(view.begin)) return;
  context.fillStyle = colour("unknown");
  context.fillRect(x(view.begin), 0, right - x(view.begin), height);
  if (!label) return;
  context.fillStyle = colour("quiet");
  context.textAlign = "right";
  if (right - x(view.begin) > 90) context.fillText("not recorded", right - 6, 16);
}

// `sight`: {bands, top}, one sample per pixel. `mark`: the time of the time mark. `brush`: two
// positions in pixels, or null.
export function drawStack(canvas, view, sight, history, mark, brush) {
  const { context, width, height } = prepared(canvas);
  const bottom = height - BOTTOM;
  const top = Math.max(sight.top, 1);
  const x = (time) => LEFT + ((time - view.begin) / (view.end - view.begin)) * (width - LEFT);
  const y = (gpus) => bottom - (gpus / top) * (bottom - 8);
  const count = sight.bands[0]?.gpus.length ?? 0;
  const columnWidth = (width - LEFT) / Math.max(count, 1);
  sight.bands.forEach((band) => {
    context.fillStyle = fillOfBand(context, band);
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
  drawUnknown(context, view, x, bottom, history.begin);
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
  context.textAlign = "center";
  for (const time of timeMarks(view.begin, view.end, width / 110)) {
    context.beginPath();
    context.moveTo(x(time), bottom);
    context.lineTo(x(time), bottom + 4);
    context.stroke();
    context.fillText(clock(time, view.end - view.begin), Math.min(x(time), width - 24), bottom + 13);
  }
  if (mark >= view.begin && mark <= view.end) {
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
export function drawLane(canvas, view, pieces, largest, begin) {
  const { context, width, height } = prepared(canvas);
  const x = (time) => ((time - view.begin) / (view.end - view.begin)) * width;
  drawUnknown(context, view, x, height, begin, false);
  for (const piece of pieces) {
    const thick = piece.gpus > 0 ? Math.max((piece.gpus / Math.max(largest, 1)) * height, 3) : 2;
    context.fillStyle = colour(piece.state);
    context.fillRect(x(piece.from), (height - thick) / 2, Math.max(x(piece.to) - x(piece.from), 1), thick);
  }
}

// A curve of the values of a track; `guide`: a second track as a dashed line of steps, or null.
export function drawCurve(canvas, view, track, guide = null) {
  const { context, width, height } = prepared(canvas);
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
