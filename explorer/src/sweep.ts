// A sweep: size against bus bandwidth (or time), an algorithm a line, the bound on top, what NCCL picks as a
// band, and measurements of nccl-tests that are dropped on the page as points.
import { isDark, series, setTheme, theme } from "./colour";
import { byId, el, rate, save, bytes, svg, time, percent } from "./dom";
import { rastered } from "./export";
import { drawFront, taskName, tasksOf, type FrontHead } from "./front";
import { table } from "./table";

type Point = [size: number, time_ps: number, busbw: number];
export interface SweepHead {
  kind: "sweep"; title: string; note: string | null;
  /** Bus bandwidth is this times algorithm bandwidth. */
  factor: number;
  lines: { name: string; points: Point[] }[];
  bound: Point[];
  nccl: { size: number; time_ps: number; busbw: number; pick: string }[];
  best: string[];
  /** Of a whole sweep: networks and tasks between which the page switches, and time against cost. */
  groups?: Group[]; front?: FrontHead | null;
}
interface Group { name: string; factor: number; lines: { name: string; points: Point[] }[]; bound: Point[]; best: string[] }
interface Measured { name: string; points: Point[] }
interface SweepState { y: "busbw" | "time"; scale: "log" | "linear"; hide: string[]; size: number; theme: string; group: number; task: number }

/** What is read of a log, and how many times were left out: of wrong results, and of processes that ran alone. */
interface Tests { outOf: Point[]; inPlace: Point[]; wrong: number; alone: number }
const HEAD = /\bsize\s+count\s+type\b.*/, ROW = /(?<![\w.,+-])\d+\s+\d+\s+[A-Za-z]\w*\s+\S.*/;
const COLOUR = /\x1b\[[0-9;]*m/g, LIBRARY = /\bNCCL (INFO|WARN|TRACE)\b/, COMMENT = /#\s*$/, ONCE = /#\s+in-place\s*$/;
const USUAL = "size count type redop root time algbw busbw #wrong time algbw busbw #wrong".split(" ");

/** Reads a log of nccl-tests or rccl-tests, behind any prefix: each line from its end, as columns before the times may be empty. */
export function readTests(text: string): Tests {
  const found: Tests = { outOf: [], inPlace: [], wrong: 0, alone: 0 };
  let columns = USUAL, isOnce = false, wasOnce = false;
  for (const coloured of text.split(/\r?\n/)) {
    const line = coloured.replace(COLOUR, ""), head = HEAD.exec(line), row = ROW.exec(line);
    wasOnce ||= ONCE.test(line);
    if (head) { columns = head[0].trim().split(/\s+/); isOnce = wasOnce; wasOnce = false; continue; }
    if (!row || LIBRARY.test(line) || COMMENT.test(line.slice(0, row.index)) || !columns.includes("time")) continue;
    const words = row[0].trim().split(/\s+/), size = Number(words[0]), stamp = columns.at(-1) === "timestamp" ? 1 : 0;
    const names = columns.slice(columns.indexOf("time"), columns.length - stamp), end = words.length - 2 * stamp;
    const times = words.slice(end - names.length, end).map(Number);
    if (end < 3 + names.length) continue;
    let isFirst = !isOnce;
    for (let at = names.indexOf("time"); at >= 0; at = names.indexOf("time", at + 1), isFirst = false) {
      const [us, algbw, busbw, wrong] = times.slice(at, at + 4);
      if (!(us! > 0) || !Number.isFinite(us!) || !Number.isFinite(busbw!)) continue;
      if (names[at + 3] === "#wrong" && wrong! > 0) found.wrong += 1;
      else if (algbw! > 0.1 && busbw === 0) found.alone += 1;
      else found[isFirst ? "outOf" : "inPlace"].push([size, us! * 1e6, busbw! * 1e9]);
    }
  }
  return found;
}

const WIDTH = 920, HEIGHT = 470, LEFT = 66, RIGHT = 150, TOP = 14, BOTTOM = 42;

export class Sweep {
  readonly state: SweepState = { y: "busbw", scale: "log", hide: [], size: 0, theme: "auto", group: 0, task: 0 };
  readonly measured: Measured[] = [];
  sizes: number[] = [];
  private readonly tasks: string[];
  private x!: (size: number) => number; private y!: (value: number) => number;

  constructor(public head: SweepHead) {
    this.tasks = head.front ? tasksOf(head.front) : [];
    document.title = head.title;
    this.read();
    this.build();
    this.draw();
    window.addEventListener("hashchange", () => { this.read(); this.draw(); });
    window.addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  private read(): void {
    const given = new URLSearchParams(location.hash.slice(1)), { state } = this;
    const within = (name: string, count: number) => { const number = Number(given.get(name)); return Number.isInteger(number) && number > 0 && number < count ? number : 0; };
    state.group = within("group", this.head.groups?.length ?? 0);
    state.task = within("task", this.tasks.length);
    this.choose();
    state.y = given.get("y") === "time" ? "time" : "busbw";
    state.scale = given.get("scale") === "linear" ? "linear" : "log";
    state.hide = (given.get("hide") ?? "").split(",").filter((name) => this.head.lines.some((line) => line.name === name));
    state.theme = given.get("theme") ?? "auto";
    const size = Number(given.get("size"));
    state.size = this.sizes.includes(size) ? size : this.sizes[0] ?? 0;
  }

  /** Takes the lines of the group that is chosen. */
  private choose(): void {
    const group = this.head.groups?.[this.state.group];
    if (group) this.head = { ...this.head, factor: group.factor, lines: group.lines, bound: group.bound, best: group.best };
    this.sizes = [...new Set(this.head.bound.map(([size]) => size))].sort((a, b) => a - b);
  }

  set(change: Partial<SweepState>): void {
    const before = this.state.group;
    Object.assign(this.state, change);
    if (this.state.group !== before) {
      this.choose();
      if (!this.sizes.includes(this.state.size)) this.state.size = this.sizes[0] ?? 0;
    }
    const { y, scale, hide, size, theme: word } = this.state, parts = [`size=${size}`];
    if (y !== "busbw") parts.push(`y=${y}`);
    if (scale !== "log") parts.push(`scale=${scale}`);
    if (hide.length) parts.push(`hide=${hide.join(",")}`);
    if (word !== "auto") parts.push(`theme=${word}`);
    if (this.state.group) parts.push(`group=${this.state.group}`);
    if (this.state.task) parts.push(`task=${this.state.task}`);
    history.replaceState(null, "", "#" + parts.join("&"));
    this.draw();
  }

  private build(): void {
    const pick = (id: string, options: string[][], change: (value: string) => void) => el("select", { id, change: (event: Event) => change((event.target as HTMLSelectElement).value) }, ...options.map(([value, text]) => el("option", { value: value! }, text!)));
    byId("app").replaceChildren(
      el("header", {}, el("h1", {}, this.head.title)),
      el("div", { class: "bar" },
        (this.head.groups?.length ?? 0) > 1 ? el("label", {}, "network and task", pick("group", this.head.groups!.map((each, i) => [String(i), each.name]), (value) => this.set({ group: Number(value) }))) : null,
        pick("y", [["busbw", "bus bandwidth"], ["time", "time"]], (value) => this.set({ y: value as "busbw" })),
        pick("scale", [["log", "logarithmic"], ["linear", "linear"]], (value) => this.set({ scale: value as "log" })),
        el("label", {}, "measured", el("input", { type: "file", id: "file", multiple: true, title: "Logs of nccl-tests", change: (event: Event) => void this.take((event.target as HTMLInputElement).files) })),
        el("button", { id: "svg", click: () => save("hocket.svg", new Blob([this.toSvg()], { type: "image/svg+xml" })) }, "SVG"),
        el("button", { id: "png", click: () => void rastered(this.toSvg()).then((blob) => save("hocket.png", blob)) }, "PNG"),
        pick("theme", [["auto", "auto"], ["light", "light"], ["dark", "dark"]], (value) => this.set({ theme: value }))),
      el("p", { class: "note" }, "Drop logs of nccl-tests on the page, or paste one, to see what was measured beside this."),
      el("main", {}, el("div", { class: "chart", id: "chart" }), el("aside", {}, el("div", { id: "panel" }))),
      ...(this.head.front ? [el("div", { class: "bar" }, el("label", {}, "task", pick("task", this.tasks.map((each, i) => [String(i), taskName(each)]), (value) => this.set({ task: Number(value) })))),
        el("div", { class: "two" }, el("div", { class: "chart", id: "front" }), el("div", { id: "priced" }))] : []),
      el("p", { class: "note", id: "said", "aria-live": "polite" }, this.head.note));
    const body = document.body;
    body.addEventListener("dragover", (event) => { event.preventDefault(); body.classList.add("drop"); });
    body.addEventListener("dragleave", () => body.classList.remove("drop"));
    body.addEventListener("drop", (event) => {
      event.preventDefault();
      body.classList.remove("drop");
      const text = event.dataTransfer?.getData("text/plain");
      if (event.dataTransfer?.files.length) void this.take(event.dataTransfer.files);
      else if (text) this.add("dropped", text);
    });
    window.addEventListener("paste", (event) => {
      const text = (event as ClipboardEvent).clipboardData?.getData("text/plain");
      if (text) this.add("pasted", text);
    });
  }

  private async take(files: FileList | null): Promise<void> {
    for (const file of files ?? []) this.add(file.name, await file.text());
  }

  /** Adds what a log has measured; says so where there is nothing in it. */
  add(name: string, text: string): void {
    const { outOf, inPlace, wrong, alone } = readTests(text);
    const left = [alone ? `; ${alone} left out with a busbw of 0: build nccl-tests with MPI=1, so that processes join` : "", wrong ? `; ${wrong} left out with wrong results` : ""].join("");
    if (!outOf.length && !inPlace.length) { byId("said").textContent = left ? `${name}${left}.` : `${name} has no line of nccl-tests: a size, a count, and times and rates behind them.`; return; }
    byId("said").textContent = `${name}: ${outOf.length} sizes out of place, ${inPlace.length} in place${left}.`;
    this.measured.push({ name: `${name}, out of place`, points: outOf });
    if (inPlace.length) this.measured.push({ name: `${name}, in place`, points: inPlace });
    this.draw();
  }

  private value([, ps, busbw]: Point): number {
    return this.state.y === "time" ? ps : busbw;
  }

  draw(): void {
    const { head, state } = this;
    setTheme(state.theme);
    const of = theme();
    for (const id of ["y", "scale", "theme"] as const) byId<HTMLSelectElement>(id).value = state[id];
    for (const id of ["group", "task"] as const) { const select = document.getElementById(id) as HTMLSelectElement | null; if (select) select.value = String(state[id]); }
    this.priced();
    if (!this.sizes.length) { byId("chart").replaceChildren(); return; }
    const shown = head.lines.filter((line) => !state.hide.includes(line.name));
    const points = [...shown.flatMap((line) => line.points), ...head.bound, ...head.nccl.map((each): Point => [each.size, each.time_ps, each.busbw]), ...this.measured.flatMap((each) => each.points)];
    const values = points.map((point) => this.value(point)).filter((value) => value > 0 && Number.isFinite(value)), sizes = points.map(([size]) => size);
    const [s0, s1] = [Math.log2(Math.max(1, Math.min(...sizes))), Math.log2(Math.max(2, ...sizes))];
    this.x = (size) => LEFT + (WIDTH - LEFT - RIGHT) * (s1 > s0 ? (Math.log2(Math.max(1, size)) - s0) / (s1 - s0) : 0.5);
    const isLog = state.scale === "log", top = Math.max(...values) * (isLog ? 1.3 : 1.05), low = isLog ? Math.min(...values) / 1.3 : 0;
    const of_ = (value: number) => isLog ? Math.log(Math.max(value, low / 2)) : value;
    this.y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (of_(value) - of_(isLog ? low : 0)) / (of_(top) - of_(isLog ? low : 0)));
    const chart = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", tabindex: 0, "aria-label": `${head.title}; the table beside it has the numbers` });
    this.axes(chart, isLog, low, top, s0, s1);
    this.band(chart);
    const path = (list: Point[]) => [...list].sort((a, b) => a[0] - b[0]).map((point, i) => `${i ? "L" : "M"}${this.x(point[0]).toFixed(1)} ${this.y(this.value(point)).toFixed(1)}`).join("");
    const ends: { y: number; text: string; colour: string }[] = [];
    head.lines.forEach((line, i) => {
      if (state.hide.includes(line.name) || !line.points.length) return;
      const colour = series(i);
      chart.append(svg("path", { d: path(line.points), fill: "none", stroke: colour, "stroke-width": 2, "stroke-dasharray": DASHES[Math.floor(i / 8) % DASHES.length]!, "data-line": line.name }));
      for (const point of line.points) chart.append(svg("circle", { cx: this.x(point[0]), cy: this.y(this.value(point)), r: 3, fill: colour }, svg("title", {}, `${line.name}, ${bytes(point[0])}: ${rate(point[2])}, ${time(point[1])}`)));
      const last = line.points.reduce((a, b) => b[0] > a[0] ? b : a);
      ends.push({ y: this.y(this.value(last)), text: line.name, colour });
    });
    chart.append(svg("path", { d: path(head.bound), fill: "none", stroke: of.ink, "stroke-width": 2.5, "stroke-dasharray": "7 4", "data-line": "bound" }));
    const last = head.bound.at(-1);
    if (last) ends.push({ y: this.y(this.value(last)), text: "bound", colour: of.ink });
    this.measured.forEach((each, i) => {
      for (const point of each.points) {
        const [x, y] = [this.x(point[0]), this.y(this.value(point))], mark = { fill: i % 2 ? "none" : of.mark, stroke: of.mark, "stroke-width": 1.5, "data-measured": i };
        chart.append(svg("rect", { x: x - 4, y: y - 4, width: 8, height: 8, transform: i % 2 ? `rotate(45 ${x} ${y})` : "", ...mark }, svg("title", {}, `${each.name}, ${bytes(point[0])}: ${rate(point[2])}, ${time(point[1])}`)));
      }
      const end = each.points.reduce((a, b) => b[0] > a[0] ? b : a, each.points[0]!);
      if (end) ends.push({ y: this.y(this.value(end)), text: each.name, colour: of.mark });
    });
    ends.sort((a, b) => a.y - b.y);
    ends.reduce((above, each) => { each.y = Math.max(each.y, above + 13); return each.y; }, -Infinity);
    for (const { y, text, colour } of ends) chart.append(svg("text", { x: WIDTH - RIGHT + 10, y: y + 4, style: `fill:${colour}` }, text));
    chart.append(svg("line", { x1: this.x(state.size), x2: this.x(state.size), y1: TOP, y2: HEIGHT - BOTTOM, stroke: of.mark, id: "at" }));
    chart.addEventListener("click", (event) => {
      const box = chart.getBoundingClientRect(), at = ((event as MouseEvent).clientX - box.left) / box.width * WIDTH;
      this.set({ size: this.sizes.reduce((a, b) => Math.abs(this.x(b) - at) < Math.abs(this.x(a) - at) ? b : a) });
    });
    byId("chart").replaceChildren(chart);
    this.table();
  }

  private priced(): void {
    if (this.head.front) drawFront(this.head.front, this.tasks[this.state.task]!, byId("front"), byId("priced"));
  }

  private axes(chart: SVGElement, isLog: boolean, low: number, top: number, s0: number, s1: number): void {
    const step = Math.max(1, Math.ceil((s1 - s0) / 10));
    for (let s = Math.ceil(s0); s <= s1; s += step) {
      const x = this.x(2 ** s);
      chart.append(svg("line", { x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM, class: "grid" }), svg("text", { x, y: HEIGHT - BOTTOM + 17, "text-anchor": "middle" }, bytes(2 ** s)));
    }
    const ticks: number[] = [];
    if (isLog) for (let power = Math.floor(Math.log10(low)); power <= Math.log10(top); power++) for (const lead of Math.log10(top / low) < 1.2 ? [1, 2, 3, 5, 7] : Math.log10(top / low) < 3 ? [1, 3] : [1]) ticks.push(lead * 10 ** power);
    else { const unit = 10 ** Math.floor(Math.log10(top / 4)); const each = [1, 2, 5, 10].map((lead) => lead * unit).find((value) => top / value <= 7)!; for (let value = 0; value <= top; value += each) ticks.push(value); }
    for (const value of ticks) {
      if (value < low || value > top) continue;
      const y = this.y(value);
      chart.append(svg("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y, class: "grid" }), svg("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, this.state.y === "time" ? time(value).replace(/\.0+ /, " ") : rate(value)));
    }
    chart.append(svg("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 6, "text-anchor": "middle" }, "size"));
  }

  /** What NCCL picks and predicts: a band, coloured anew where the pick changes. */
  private band(chart: SVGElement): void {
    const { nccl } = this.head, picks = [...new Set(nccl.map((each) => each.pick))];
    nccl.forEach((each, i) => {
      const left = i ? (this.x(nccl[i - 1]!.size) + this.x(each.size)) / 2 : this.x(each.size), right = i + 1 < nccl.length ? (this.x(nccl[i + 1]!.size) + this.x(each.size)) / 2 : this.x(each.size);
      chart.append(svg("rect", { x: left, y: HEIGHT - BOTTOM - 9, width: Math.max(2, right - left), height: 9, fill: series(picks.indexOf(each.pick) + 2), opacity: 0.55, "data-pick": each.pick }, svg("title", {}, `NCCL picks ${each.pick} at ${bytes(each.size)}, and predicts ${rate(each.busbw)}`)));
      if (!i || nccl[i - 1]!.pick !== each.pick) chart.append(svg("text", { x: left + 2, y: HEIGHT - BOTTOM - 12, style: "font-size:10px" }, `NCCL: ${each.pick}`));
    });
    if (nccl.length > 1) chart.append(svg("path", { d: nccl.map((each, i) => `${i ? "L" : "M"}${this.x(each.size).toFixed(1)} ${this.y(this.value([each.size, each.time_ps, each.busbw])).toFixed(1)}`).join(""), fill: "none", stroke: theme().faint, "stroke-width": 1.5, "stroke-dasharray": "2 3", "data-line": "nccl" }));
  }

  private table(): void {
    const { head, state } = this, at = state.size, bound = head.bound.find(([size]) => size === at);
    const rows: { cells: (string | number)[]; keys: (string | number)[]; choose?: () => void; chosen?: boolean }[] = [];
    const add = (name: string, point: Point | undefined, choose?: () => void, hidden = false) => {
      if (point) rows.push({ cells: [(hidden ? "○ " : choose ? "● " : "") + name, rate(point[2]), time(point[1]), bound ? percent(point[1] / bound[1] - 1) : "–"], keys: [name, point[2], point[1], point[1]], choose, chosen: head.best.includes(name) && head.best[this.sizes.indexOf(at)] === name });
    };
    add("bound", bound);
    for (const line of head.lines) {
      const hidden = state.hide.includes(line.name);
      add(line.name, line.points.find(([size]) => size === at), () => this.set({ hide: hidden ? state.hide.filter((name) => name !== line.name) : [...state.hide, line.name] }), hidden);
    }
    const pick = head.nccl.find((each) => each.size === at);
    if (pick) add(`NCCL: ${pick.pick}`, [at, pick.time_ps, pick.busbw]);
    for (const each of this.measured) add(each.name, each.points.find(([size]) => size === at));
    byId("panel").replaceChildren(table(`At ${bytes(at)} (a click on an algorithm shows or hides it)`, ["what", "busbw", "time", "over bound"], rows));
  }

  private key(event: KeyboardEvent): void {
    if (/^(INPUT|SELECT)$/.test((event.target as HTMLElement).tagName)) return;
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (!step) return;
    event.preventDefault();
    this.set({ size: this.sizes[Math.max(0, Math.min(this.sizes.length - 1, this.sizes.indexOf(this.state.size) + step))]! });
  }

  private toSvg(): string {
    const of = theme(), chart = byId("chart").firstElementChild!.cloneNode(true) as SVGElement;
    chart.setAttribute("xmlns", "http://www.w3.org/2000/svg");
    chart.setAttribute("width", String(WIDTH)); chart.setAttribute("height", String(HEIGHT));
    chart.prepend(svg("style", {}, `text{fill:${of.ink};font:12px system-ui,sans-serif}.grid{stroke:${isDark() ? "#343c46" : "#d3d9e0"}}`), svg("rect", { width: WIDTH, height: HEIGHT, fill: of.paper }));
    return new XMLSerializer().serializeToString(chart);
  }
}

const DASHES = ["none", "6 3", "2 3", "8 3 2 3"];
