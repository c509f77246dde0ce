// The few functions that the tests need: they run under Node.js and under QuickJS.

let failures = 0;
let count = 0;

const shown = (value) => JSON.stringify(value, (_, each) => (ArrayBuffer.isView(each) ? [...each] : each));

export function test(name, run) {
  count++;
  try {
    run();
  } catch (error) {
    failures++;
    console.log(`FAILED: ${name}: ${error.message}\n${error.stack}`);
  }
}

export function equal(got, want, what = "") {
  if (shown(got) !== shown(want)) throw new Error(`${what} got ${shown(got)}, want ${shown(want)}`);
}

// Call it at the end: an uncaught error ends both engines with a failure.
export function finish() {
  console.log(`${count - failures} of ${count} tests passed`);
  if (failures > 0 || count === 0) throw new Error(`${failures} tests failed`);
}
