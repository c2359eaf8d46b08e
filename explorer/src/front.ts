// Time against cost: all networks of a sweep as points, and what no other beats in both as a line.
import { series, theme } from "./colour";
import { el, bytes, svg, time } from "./dom";
import { table } from "./table";

/** Cost, time, task and what it is. */
export type Priced = [cost: number, time_ps: number, task: string, name: string];
export interface FrontHead { points: Priced[]; front: Priced[] }

const WIDTH = 920, HEIGHT = 360, LEFT = 66, RIGHT = 20, TOP = 14, BOTTOM = 42;

/** A task in words: one that is a size alone is written as such. */
export const taskName = (task: string) => /^\d+$/.test(task) ? bytes(Number(task)) : task || "all";

export function tasksOf(head: FrontHead): string[] {
  return [...new Set(head.front.map(([, , task]) => task))];
}

/** Draws one task. */
export function drawFront(head: FrontHead, task: string, into: HTMLElement, panel: HTMLElement): void {
  const own = (each: Priced) => each[2] === task, points = head.points.filter(own), front = head.front.filter(own), of = theme();
  const costs = [...points, ...front].map(([cost]) => cost), times = [...points, ...front].map(([, ps]) => Math.max(ps, 1));
  const [c0, c1] = [Math.min(...costs), Math.max(...costs)], [t0, t1] = [Math.min(...times) / 1.1, Math.max(...times) * 1.1];
  const x = (cost: number) => LEFT + (WIDTH - LEFT - RIGHT) * (c1 > c0 ? (cost - c0) / (c1 - c0) * 0.94 + 0.03 : 0.5);
  const y = (ps: number) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * Math.log(Math.max(ps, 1) / t0) / Math.log(t1 / t0);
  const chart = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": "Time against cost; the table beside has the front" });
  for (let i = 0; i <= 4; i++) {
    const cost = c0 + (c1 - c0) * i / 4, ps = t0 * (t1 / t0) ** (i / 4);
    if (c1 > c0 || i === 0) chart.append(svg("line", { x1: x(cost), x2: x(cost), y1: TOP, y2: HEIGHT - BOTTOM, class: "grid" }), svg("text", { x: x(cost), y: HEIGHT - BOTTOM + 17, "text-anchor": "middle" }, Number(cost.toPrecision(3)).toLocaleString("en")));
    chart.append(svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y(ps), y2: y(ps), class: "grid" }), svg("text", { x: LEFT - 6, y: y(ps) + 4, "text-anchor": "end" }, time(ps)));
  }
  chart.append(svg("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "cost"));
  for (const each of points) chart.append(svg("circle", { cx: x(each[0]), cy: y(each[1]), r: 3.5, fill: of.faint, opacity: 0.5, "data-point": each[3] }, svg("title", {}, `${each[3]}: ${each[0].toLocaleString("en")}, ${time(each[1])}`)));
  // A step: for any budget between two networks of the front, the cheaper of them is the quickest there is.
  const way = front.map((each, i) => i ? `H${x(each[0]).toFixed(1)}V${y(each[1]).toFixed(1)}` : `M${x(each[0]).toFixed(1)} ${y(each[1]).toFixed(1)}`).join("");
  chart.append(svg("path", { d: way, fill: "none", stroke: series(0), "stroke-width": 2, "data-line": "front" }));
  for (const each of front) chart.append(svg("circle", { cx: x(each[0]), cy: y(each[1]), r: 5, fill: series(0), "data-front": each[3] }, svg("title", {}, `${each[3]}: ${each[0].toLocaleString("en")}, ${time(each[1])}`)));
  into.replaceChildren(el("h2", {}, "Time against cost"), chart);
  panel.replaceChildren(table(`${taskName(task)}: what nothing else beats in both`, ["cost", "time", "what"], front.map((each) => ({ cells: [each[0].toLocaleString("en"), time(each[1]), each[3]], keys: [each[0], each[1], each[3]] }))));
}
