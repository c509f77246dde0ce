// Times as people read them: those of a clock, or, in a document with an origin, the time since it. Pure.

export const SECOND = 1000; // milliseconds
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

// "1:02:03": hours, minutes and seconds since the origin.
function sinceOrigin(milliseconds) {
  const seconds = Math.round(Math.abs(milliseconds) / SECOND);
  const two = (value) => String(value).padStart(2, "0");
  const sign = milliseconds < 0 && seconds > 0 ? "-" : "";
  return `${sign}${Math.floor(seconds / 3600)}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`;
}

// `origin`: null for a time of the clock.
export function when(time, origin = null) {
  return origin === null ? new Date(time).toLocaleTimeString(undefined, { hourCycle: "h23" }) : sinceOrigin(time - origin);
}

export function dateAndTime(time, origin = null) {
  return origin === null ? new Date(time).toLocaleString(undefined, { hourCycle: "h23" }) : sinceOrigin(time - origin);
}

const UNITS = [[3 * DAY, DAY, "d"], [3 * HOUR, HOUR, "h"], [10 * MINUTE, MINUTE, "min"], [0, SECOND, "s"]];

// The label of a mark on an axis of this length.
export function markLabel(time, length, origin = null) {
  if (origin !== null) {
    const [, unit, name] = UNITS.find(([least]) => length > least) ?? UNITS[UNITS.length - 1];
    return `${Number(((time - origin) / unit).toFixed(2))} ${name}`;
  }
  const options = length > DAY
    ? { month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" }
    : { hour: "2-digit", minute: "2-digit", ...(length < 10 * MINUTE && { second: "2-digit" }) };
  return new Intl.DateTimeFormat(undefined, { ...options, hourCycle: "h23" }).format(time);
}
