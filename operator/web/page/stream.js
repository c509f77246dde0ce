// Follows the operator's timeline, and comes back when the connection breaks.

const RETRY = 5000; // milliseconds
// A browser keeps every change that it gets. After this many it begins again with the window only.
const MAX_CHANGES = 300000;

// `from()`: the earliest time that is of interest, in milliseconds. `onChange` is called after the
// history has changed, `onStatus` with a sentence.
export function follow(history, from, onChange, onStatus) {
  let source = null;
  let timer = 0;

  const begin = () => {
    clearTimeout(timer);
    source?.close();
    source = new EventSource(`/timeline/stream?from=${Math.floor(from())}`);
    const on = (event, take) =>
      source.addEventListener(event, (message) => {
        take(JSON.parse(message.data));
        onStatus(`live, replica ${message.lastEventId.split("/")[0]}`);
        onChange();
      });
    on("frame", (document) => history.load(document));
    on("changes", (changes) => {
      history.apply(changes);
      if (history.changes > MAX_CHANGES) begin();
    });
    on("now", (now) => {
      history.now = Math.max(history.now, now);
    });
    source.onerror = () => {
      onStatus("the operator does not answer: trying again");
      // The browser comes back by itself, except after a refusal.
      if (source.readyState !== EventSource.CLOSED) return;
      clearTimeout(timer);
      timer = setTimeout(begin, RETRY);
    };
  };
  begin();
  return begin;
}
