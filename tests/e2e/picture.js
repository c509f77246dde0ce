// Draws a timeline document as an SVG, with the page's own scripts:
//   node tests/e2e/picture.js DOCUMENT.json > PICTURE.svg
// The file "-" is standard input.

import { readFileSync } from "node:fs";

import { picture } from "../../operator/web/page/picture.js";
import { History } from "../../operator/web/page/state.js";

const STYLE = new URL("../../operator/web/page/style.css", import.meta.url);

// The colours of the light theme: the first rule of the style.
function lightColours() {
  const rule = /:root \{([^}]*)\}/.exec(readFileSync(STYLE, "utf8"))[1];
  const found = new Map([...rule.matchAll(/--(\w+): (#\w+);/g)].map(([, name, value]) => [name, value]));
  return (name) => found.get(name);
}

function main(file) {
  const history = new History();
  history.load(JSON.parse(readFileSync(file === "-" ? 0 : file, "utf8")));
  const view = { begin: history.begin, end: Math.max(history.now, history.begin + 1000) };
  process.stdout.write(picture(history, view, lightColours()));
}

if (process.argv.length !== 3) {
  console.error("usage: node tests/e2e/picture.js DOCUMENT.json");
  process.exitCode = 2;
} else {
  try {
    main(process.argv[2]);
  } catch (error) {
    console.error(`picture.js: ${process.argv[2]} is no timeline document: ${error.message}`);
    process.exitCode = 1;
  }
}
