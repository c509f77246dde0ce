import { timeMarks } from "../../../operator/web/page/layout.js";
import { dateAndTime, markLabel, when } from "../../../operator/web/page/times.js";
import { equal, finish, test } from "./check.js";

const HOUR = 3600e3;

test("times since an origin are hours, minutes and seconds", () => {
  equal([0, 59400, 3661000, 360000e3, -1000].map((time) => when(time + 5e11, 5e11)),
    ["0:00:00", "0:00:59", "1:01:01", "100:00:00", "-0:00:01"]);
  equal(dateAndTime(61000, 1000), "0:01:00");
});

test("marks since an origin have the unit of the axis", () => {
  const labels = (end, most) => timeMarks(7, 7 + end, most, 7).map((time) => markLabel(time, end, 7));
  equal(labels(60e3, 4), ["0 s", "30 s", "60 s"]);
  equal(labels(HOUR, 4), ["0 min", "30 min", "60 min"]);
  equal(labels(9 * HOUR, 5), ["0 h", "2 h", "4 h", "6 h", "8 h"]);
  equal(labels(5 * HOUR, 12), ["0 h", "0.5 h", "1 h", "1.5 h", "2 h", "2.5 h", "3 h", "3.5 h", "4 h", "4.5 h", "5 h"]);
  equal(labels(72 * HOUR, 4), ["0 h", "24 h", "48 h", "72 h"]);
  equal(labels(100 * 24 * HOUR, 4), ["0 d", "30 d", "60 d", "90 d"]);
});

test("without an origin they are those of the clock", () => {
  const noon = new Date(2027, 0, 15, 12, 30, 5).getTime();
  equal(/^12:30:05/.test(when(noon)), true, when(noon));
  equal(/12.30/.test(markLabel(noon, HOUR)), true, markLabel(noon, HOUR));
});

finish();
