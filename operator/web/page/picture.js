// The stack of GPUs as a picture of its own, with its legend: an SVG. Pure.

import { BOTTOM, LEFT, drawStack, fillOfBand } from "./draw.js";
import { MAX_BANDS, labelOf, stack } from "./layout.js";
import { svgSurface, svgText } from "./svg.js";
import { when } from "./times.js";

const WIDTH = 960; // pixels
const HEIGHT = 320; // of the stack
const MARGIN = 8;
const LEGEND_ROW = 20;
const SAMPLE = 22; // of a colour in the legend
const LETTER = 7.2; // about as wide as a letter is
const MAX_LETTERS = 60; // of a label

const cut = (text) => ([...text].length > MAX_LETTERS ? `${[...text].slice(0, MAX_LETTERS - 1).join("")}…` : text);

const HEADING = "GPUs of";

// The legend's items with their places: {band, text, x, y}, from `top` on, behind a heading.
function legendOf(bands, top) {
  let x = LEFT + (HEADING.length + 1) * LETTER;
  let y = top;
  return bands.filter((band) => Math.max(...band.gpus) > 0).map((band) => {
    const text = cut(labelOf(band));
    const width = SAMPLE + 6 + [...text].length * LETTER + 14;
    if (x > LEFT && x + width > WIDTH - MARGIN) {
      x = LEFT;
      y += LEGEND_ROW;
    }
    const item = { band, text, x, y };
    x += width;
    return item;
  });
}

function frame(context, colour, ...box) {
  context.strokeStyle = colour("line");
  context.lineWidth = 1;
  context.beginPath();
  context.rect(...box);
  context.stroke();
}

// `view` as of the page; `colour(name)` as of a surface.
export function picture(history, view, colour) {
  const columns = WIDTH - MARGIN - LEFT;
  const sight = stack(history, view.begin, view.end, columns, MAX_BANDS);
  const items = legendOf(sight.bands, HEIGHT + MARGIN);
  const bottom = (items[items.length - 1]?.y ?? HEIGHT) + LEGEND_ROW + MARGIN;
  const surface = svgSurface(WIDTH, bottom, colour);
  const { context } = surface;
  context.fillStyle = colour("page");
  context.fillRect(0, 0, WIDTH, bottom);
  drawStack({ ...surface, width: WIDTH - MARGIN, height: HEIGHT }, view, sight, history, null, null);
  frame(context, colour, LEFT, 0, WIDTH - MARGIN - LEFT, HEIGHT - BOTTOM);
  context.textAlign = "left";
  context.textBaseline = "middle";
  context.fillStyle = colour("quiet");
  context.fillText(HEADING, LEFT, HEIGHT + MARGIN + 6);
  for (const { band, text, x, y } of items) {
    context.fillStyle = fillOfBand(surface, band);
    context.fillRect(x, y, SAMPLE, 12);
    frame(context, colour, x, y, SAMPLE, 12);
    context.fillStyle = colour("text");
    context.fillText(text, x + SAMPLE + 6, y + 6);
  }
  const [from, to] = [view.begin, view.end].map((time) => when(time, history.origin));
  return svgText(surface, `GPUs over time from ${from} to ${to}: ${items.map(({ text }) => text).join(", ")}`);
}
