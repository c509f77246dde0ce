// A canvas as a surface of draw.js: its context in the page's pixels, the page's colours, and patterns.

export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

const tiles = new Map(); // by colour and pattern

function tileOf({ colour: base, pattern, lines }) {
  const key = `${base} ${pattern}`;
  if (!tiles.has(key)) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const on = tile.getContext("2d");
    on.fillStyle = base;
    on.fillRect(0, 0, 8, 8);
    on.strokeStyle = "rgba(255, 255, 255, 0.75)";
    on.lineWidth = 1.5;
    for (const [x1, y1, x2, y2] of lines) {
      on.beginPath();
      on.moveTo(x1, y1);
      on.lineTo(x2, y2);
      on.stroke();
    }
    tiles.set(key, tile);
  }
  return tiles.get(key);
}

// The canvas is emptied, and becomes as sharp as the screen.
export function surfaceOf(canvas) {
  const ratio = window.devicePixelRatio || 1;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.font = "12px system-ui, sans-serif";
  const pattern = (fill) => context.createPattern(tileOf(fill), "repeat");
  return { context, width, height, colour, pattern };
}
