// A surface of draw.js that records an SVG: what draw.js uses of a canvas's context, and no more. Pure.

const ANCHORS = { left: "start", center: "middle", right: "end" };
const SHIFTS = { alphabetic: 0, middle: 0.35, top: 0.8, bottom: -0.2 }; // of the font's size

// XML has no other control characters, and no half of a pair of surrogates.
const NO_CHARACTER = /[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu;
const ENTITIES = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

export function escaped(text) {
  return String(text).replace(NO_CHARACTER, "\ufffd").replace(/[&<>"']/g, (each) => ENTITIES[each]);
}

const short = (value) => String(Number(value.toFixed(2)));

export class SvgContext {
  fillStyle = "#000000";
  strokeStyle = "#000000";
  lineWidth = 1;
  globalAlpha = 1;
  textAlign = "left";
  textBaseline = "alphabetic";
  fontSize = 12; // pixels
  elements = [];
  path = "";
  dash = [];

  setLineDash(lengths) {
    this.dash = lengths;
  }

  beginPath() {
    this.path = "";
  }

  moveTo(x, y) {
    this.path += `M${short(x)} ${short(y)}`;
  }

  lineTo(x, y) {
    this.path += `L${short(x)} ${short(y)}`;
  }

  rect(x, y, width, height) {
    this.path += `M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}z`;
  }

  fill() {
    if (this.path !== "") this.put(`<path d="${this.path}" fill="${escaped(this.fillStyle)}"`);
  }

  stroke() {
    const dash = this.dash.length > 0 ? ` stroke-dasharray="${this.dash.map(short).join(" ")}"` : "";
    if (this.path === "") return;
    this.put(`<path d="${this.path}" fill="none" stroke="${escaped(this.strokeStyle)}" stroke-width="${short(this.lineWidth)}"${dash}`);
  }

  fillRect(x, y, width, height) {
    const box = `x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"`;
    this.put(`<rect ${box} fill="${escaped(this.fillStyle)}"`);
  }

  fillText(text, x, y) {
    const baseline = y + SHIFTS[this.textBaseline] * this.fontSize;
    const place = `x="${short(x)}" y="${short(baseline)}" text-anchor="${ANCHORS[this.textAlign]}"`;
    this.put(`<text ${place} font-size="${this.fontSize}" fill="${escaped(this.fillStyle)}"`, escaped(text));
  }

  // `start`: a tag that is still open.
  put(start, content = "") {
    const alpha = this.globalAlpha < 1 ? ` opacity="${short(this.globalAlpha)}"` : "";
    const name = /^<(\w+)/.exec(start)[1];
    this.elements.push(content === "" ? `${start}${alpha}/>` : `${start}${alpha}>${content}</${name}>`);
  }
}

// `colour(name)` as of a canvas's surface.
export function svgSurface(width, height, colour) {
  const context = new SvgContext();
  const patterns = new Map(); // by id
  const pattern = ({ colour: base, pattern: index, lines }) => {
    const id = `pattern-${index}-${base.replace(/\W/g, "")}`;
    const path = lines.map(([x1, y1, x2, y2]) => `M${x1} ${y1}L${x2} ${y2}`).join("");
    patterns.set(id,
      `<pattern id="${id}" width="8" height="8" patternUnits="userSpaceOnUse"><rect width="8" height="8" fill="${escaped(base)}"/>` +
      `<path d="${path}" stroke="#ffffff" stroke-opacity="0.75" stroke-width="1.5"/></pattern>`);
    return `url(#${id})`;
  };
  return { context, width, height, colour, pattern, patterns };
}

// A file of its own. `title` is what screen readers read.
export function svgText({ context, width, height, patterns }, title) {
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${short(width)} ${short(height)}" width="${short(width)}" ` +
      `height="${short(height)}" font-family="system-ui, sans-serif" role="img" aria-label="${escaped(title)}">`,
    `<title>${escaped(title)}</title>`,
    `<defs>${[...patterns.values()].join("\n")}</defs>`,
    ...context.elements,
    "</svg>",
    "",
  ].join("\n");
}
