// Spans on lanes: training iterations with what they wait for, and jobs that share a fabric; several of them
// below one another on one clock, with the fabric's load beside.
import { isDark, series, setTheme, theme } from "./colour";
import { decode, type Column, type Spec } from "./decode";
import { byId, el, percent, save, sized, svg, time } from "./dom";
import { rastered } from "./export";
import { Network, Scene, type NetworkHead, type SceneHead } from "./model";
import { NetworkView } from "./network";
import { table, type Row } from "./table";

interface RunHead {
  title: string; time_ps: number; facts: string[];
  /** Group and name of each lane. */
  lanes: [group: string, name: string][];
  kinds: string[]; names: string[];
  bars: [kind: string, ps: number][];
  tables: { caption: string; heads: string[]; rows: (string | number)[][] }[];
  network: number;
  /** Whether there are columns of flows and their paths. */
  flows: boolean;
  /** Lanes whose rates are drawn, in the order of the column; empty without any. */
  rates: number[];
}
export interface LanesHead {
  kind: "lanes"; title: string; note: string | null; runs: RunHead[]; networks: NetworkHead[]; first: Spec[];
}

const LANE = 19, GUTTER = 150, FOOT = 18, LISTED = 3000;

interface Columns { lane: Column; start: Column; length: Column; name: Column; kind: Column; exposed: Column; rate_t?: Column; rate_lane?: Column; rate?: Column }

/** Which flow was on which path when. */
interface Flows { job: Column; src: Column; dst: Column; stayFlow: Column; stayPath: Column; start: Column; length: Column; pathAt: Column; pathLink: Column }

export class Lanes {
  readonly state = { t: 0, w: null as [number, number] | null, run: 0, span: -1, theme: "auto", fabric: "flows" };
  readonly total: number;
  private readonly canvases: HTMLCanvasElement[] = []; private readonly cursors: HTMLElement[] = [];
  private readonly views: NetworkView[] = []; private readonly flows: (Flows | null)[];
  /** Spans of each lane of each run, in order of starts. */
  private readonly byLane: Int32Array[][];

  private constructor(readonly head: LanesHead, readonly columns: Columns[], networks: Network[], at: (name: string) => Column | undefined) {
    this.total = Math.max(1, ...head.runs.map((run) => run.time_ps));
    this.byLane = columns.map((of, i) => {
      const lanes: number[][] = head.runs[i]!.lanes.map(() => []);
      for (let s = 0; s < of.lane.length; s++) lanes[of.lane[s]!]!.push(s);
      return lanes.map((list) => Int32Array.from(list.sort((a, b) => of.start[a]! - of.start[b]! || a - b)));
    });
    this.flows = head.runs.map((run, i) => {
      const of = (name: string) => at(`r${i}.${name}`)!;
      return run.flows ? { job: of("flow_job"), src: of("flow_src"), dst: of("flow_dst"), stayFlow: of("stay_flow"), stayPath: of("stay_path"), start: of("stay_start"), length: of("stay_length"), pathAt: of("path_at"), pathLink: of("path_link") } : null;
    });
    document.title = head.title;
    this.read();
    this.build(networks, at);
    this.draw();
    window.addEventListener("hashchange", () => { this.read(); this.draw(); });
    window.addEventListener("resize", () => this.draw());
    window.addEventListener("keydown", (event) => this.key(event));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  static async open(head: LanesHead, first: string): Promise<Lanes> {
    const all = await decode(first, head.first), at = (prefix: string) => (name: string) => all[prefix + name]!;
    const columns = head.runs.map((_, i) => {
      const of = at(`r${i}.`);
      return { lane: of("lane"), start: of("start"), length: of("length"), name: of("name"), kind: of("kind"), exposed: of("exposed"), rate_t: of("rate_t"), rate_lane: of("rate_lane"), rate: of("rate") };
    });
    return new Lanes(head, columns, head.networks.map((each, i) => new Network(each, at(`n${i}.`))), (name) => all[name]);
  }

  private read(): void {
    const given = new URLSearchParams(location.hash.slice(1)), { state } = this, number = (name: string) => Number(given.get(name) ?? "0");
    state.t = Math.max(0, Math.min(this.total, number("t") || 0));
    const w = (given.get("w") ?? "").split(",").map(Number);
    state.w = w.length === 2 && w[0]! >= 0 && w[0]! < w[1]! && w[0]! < this.total ? [w[0]!, Math.min(w[1]!, this.total)] : null;
    const run = number("run"), span = given.has("span") ? number("span") : -1;
    state.run = Number.isInteger(run) && run >= 0 && run < this.head.runs.length ? run : 0;
    state.span = Number.isInteger(span) && span >= 0 && span < this.columns[state.run]!.lane.length ? span : -1;
    state.theme = given.get("theme") ?? "auto";
    state.fabric = given.get("fabric") === "load" ? "load" : "flows";
  }

  set(change: Partial<Lanes["state"]>): void {
    const { state } = this, before = { ...state };
    Object.assign(state, change);
    state.t = Math.max(0, Math.min(this.total, state.t));
    const parts = [`t=${Math.round(state.t)}`];
    if (state.w) parts.push(`w=${state.w.map(Math.round).join(",")}`);
    if (state.run) parts.push(`run=${state.run}`);
    if (state.span >= 0) parts.push(`span=${state.span}`);
    if (state.fabric !== "flows") parts.push("fabric=load");
    if (state.theme !== "auto") parts.push(`theme=${state.theme}`);
    history.replaceState(null, "", "#" + parts.join("&"));
    if (before.w !== state.w || before.theme !== state.theme || before.span !== state.span || before.run !== state.run || before.fabric !== state.fabric) this.draw();
    else this.cursor();
  }

  private window(): [number, number] { return this.state.w ?? [0, this.total]; }

  private build(networks: Network[], at: (name: string) => Column | undefined): void {
    const { head } = this;
    const section = (run: RunHead, i: number) => {
      const canvas = el("canvas", { role: "img", "aria-label": `${run.title}: spans on ${run.lanes.length} lanes; the table below has them`, tabindex: 0 }), cursor = el("i", { class: "cursor" }), brush = el("i", { class: "brush", hidden: true });
      canvas.style.height = `${run.lanes.length * LANE + FOOT}px`;
      const box = el("div", { class: "lanes" }, canvas, cursor, brush);
      this.canvases.push(canvas); this.cursors.push(cursor);
      this.listen(i, canvas, box, brush);
      const net = run.network >= 0 ? el("div", { class: "net" }) : null;
      if (net) {
        const bytesOf = at(`r${i}.bytes`)!, zero = new Uint8Array(bytesOf.length);
        const scene = new Scene(i, { title: run.title, time_ps: run.time_ps, bins: 1, phase: 0, sides: [] } as unknown as SceneHead, networks[run.network]!, (name) => name === "heat" ? zero : name === "bytes" || name === "busy" ? bytesOf : undefined);
        this.views.push(new NetworkView(scene, net));
      }
      return el("section", { class: "scene", "aria-label": run.title }, el("h2", {}, run.title), ...run.facts.map((fact) => el("p", { class: "facts" }, fact)), box, net, net ? el("p", { class: "note" }, run.flows ? "The fabric at the time under the cursor: a ribbon is a flow in the colour of its job; a number says how many share a link." : "The fabric: the darker a link, the longer it was busy with the bytes that it carried. Packets take all paths in turn, or there are too many paths, so that flows are not drawn.") : null);
    };
    const kinds = [...new Set(head.runs.flatMap((run) => run.kinds))];
    byId("app").replaceChildren(
      el("header", {}, el("h1", {}, head.title)),
      el("div", { class: "bar" }, el("output", { id: "now" }),
        this.flows.some(Boolean) ? el("label", {}, "fabric", el("select", { id: "fabric", change: (event: Event) => this.set({ fabric: (event.target as HTMLSelectElement).value }) }, el("option", { value: "flows" }, "flows now"), el("option", { value: "load" }, "bytes in all"))) : null,
        el("button", { id: "whole", title: "w", click: () => this.set({ w: null }) }, "All of the time"),
        el("button", { id: "png", click: () => void rastered(this.toSvg()).then((blob) => save("hocket.png", blob)) }, "PNG"),
        el("button", { id: "svg", click: () => save("hocket.svg", new Blob([this.toSvg()], { type: "image/svg+xml" })) }, "SVG"),
        el("select", { id: "theme", "aria-label": "colours", change: (event: Event) => this.set({ theme: (event.target as HTMLSelectElement).value }) }, ...["auto", "light", "dark"].map((word) => el("option", { value: word }, word)))),
      el("div", { class: "chart", id: "bars" }), el("div", { class: "legend", id: "legend" }),
      ...(this.flows.some(Boolean) ? [el("div", { class: "legend", id: "jobs" })] : []),
      ...(head.networks.length ? [el("div", { class: "scenes" }, ...head.runs.map(section))] : head.runs.map(section)), ...(head.note ? [el("p", { class: "note" }, head.note)] : []),
      el("div", { id: "hover", hidden: true }), el("div", { id: "panel" }),
      ...head.runs.flatMap((run) => run.tables.map((each) => table(head.runs.length > 1 ? `${run.title}: ${each.caption}` : each.caption, each.heads, each.rows.map((cells) => ({ cells }))))));
    this.legendKinds = kinds;
  }
  private legendKinds: string[] = [];

  colour(run: number, kind: number): string {
    return series(this.legendKinds.indexOf(this.head.runs[run]!.kinds[kind]!));
  }

  private listen(i: number, canvas: HTMLCanvasElement, box: HTMLElement, brush: HTMLElement): void {
    let from = -1;
    const x = (event: PointerEvent) => event.clientX - box.getBoundingClientRect().left - 1, y = (event: PointerEvent) => event.clientY - box.getBoundingClientRect().top - 1;
    canvas.addEventListener("pointerdown", (event) => { from = x(event); canvas.setPointerCapture(event.pointerId); });
    canvas.addEventListener("pointermove", (event) => {
      const now = x(event), card = byId("hover");
      if (from >= 0 && Math.abs(now - from) > 5) {
        card.hidden = true; brush.hidden = false;
        brush.style.transform = `translateX(${Math.min(from, now)}px)`; brush.style.width = `${Math.abs(now - from)}px`;
        return;
      }
      this.set({ t: this.moment(canvas, now) });
      const span = this.hit(i, now, y(event), canvas);
      card.hidden = span < 0;
      if (span < 0) return;
      card.textContent = this.about(i, span);
      card.style.left = `${Math.min(event.clientX + 14, innerWidth - 340)}px`; card.style.top = `${Math.min(event.clientY + 14, innerHeight - 90)}px`;
    });
    canvas.addEventListener("pointerleave", () => { byId("hover").hidden = true; });
    canvas.addEventListener("pointerup", (event) => {
      const now = x(event), start = from;
      from = -1; brush.hidden = true;
      if (Math.abs(now - start) > 5) { const [a, b] = [this.moment(canvas, Math.min(start, now)), this.moment(canvas, Math.max(start, now))]; if (b > a) this.set({ w: [a, b] }); }
      else this.set({ run: i, span: this.hit(i, now, y(event), canvas) });
    });
  }

  private about(run: number, span: number): string {
    const of = this.columns[run]!, head = this.head.runs[run]!, lane = head.lanes[of.lane[span]!]!;
    const exposed = of.exposed[span]!;
    return `${head.names[of.name[span]!]!} (${head.kinds[of.kind[span]!]!})\n${lane.join(", ")}\n${time(of.start[span]!)} to ${time(of.start[span]! + of.length[span]!)}, ${time(of.length[span]!)}${exposed ? `\nwaited for: ${time(exposed)}` : ""}`;
  }

  private moment(canvas: HTMLCanvasElement, px: number): number {
    const [a, b] = this.window(), wide = canvas.clientWidth - GUTTER - 2;
    return a + (b - a) * Math.max(0, Math.min(1, (px - GUTTER) / wide));
  }

  hit(run: number, px: number, py: number, canvas = this.canvases[run]!): number {
    const lane = Math.floor(py / LANE), list = this.byLane[run]![lane];
    if (!list || px < GUTTER) return -1;
    const t = this.moment(canvas, px), of = this.columns[run]!, [a, b] = this.window(), slack = 2 * (b - a) / canvas.clientWidth;
    let found = -1;
    for (const s of list) { if (of.start[s]! - slack > t) break; if (of.start[s]! + of.length[s]! + slack >= t) found = s; }
    return found;
  }

  draw(): void {
    setTheme(this.state.theme);
    byId<HTMLSelectElement>("theme").value = ["light", "dark"].includes(this.state.theme) ? this.state.theme : "auto";
    this.head.runs.forEach((_, i) => this.lanes(i));
    for (const view of this.views) { view.arrange(null); view.byLoad(this.state.fabric === "load" || !this.flows[view.scene.index]); view.draw(0); view.mark([], [], null, null); }
    const of = theme(), fabric = document.getElementById("fabric") as HTMLSelectElement | null, jobs = document.getElementById("jobs");
    if (fabric) fabric.value = this.state.fabric;
    if (jobs) jobs.replaceChildren(...this.jobs().map((job, i) => { const mark = el("i"); mark.setAttribute("style", `background:${series(i)}`); return el("span", {}, mark, job); }));
    byId("legend").replaceChildren(...this.legendKinds.map((kind, i) => { const mark = el("i"); mark.setAttribute("style", `background:${series(i)}`); return el("span", {}, mark, kind); }),
      ...(this.columns.some((each) => each.exposed.some((value) => value > 0)) ? [(() => { const mark = el("i"); mark.setAttribute("style", `background:${of.mark}`); return el("span", {}, mark, "waited for (exposed)"); })()] : []));
    this.bars();
    this.panel();
    this.cursor();
  }

  private lanes(i: number): void {
    const canvas = this.canvases[i]!, { g, width } = sized(canvas), of = theme(), run = this.head.runs[i]!, columns = this.columns[i]!, [w0, w1] = this.window();
    const wide = width - GUTTER - 2, scale = wide / (w1 - w0);
    g.font = "11px system-ui, sans-serif"; g.textBaseline = "middle";
    let group = "";
    run.lanes.forEach(([of_, name], lane) => {
      const y = lane * LANE;
      if (of_ !== group) { g.fillStyle = of.box; g.fillRect(0, y, width, 1); g.fillStyle = of.ink; g.fillText(of_, 4, y + LANE / 2, GUTTER - 70); group = of_; }
      g.fillStyle = of.faint; g.textAlign = "right"; g.fillText(name, GUTTER - 6, y + LANE / 2, 76); g.textAlign = "left";
      let last = -1;
      for (const s of this.byLane[i]![lane]!) {
        const a = (columns.start[s]! - w0) * scale, b = (columns.start[s]! + columns.length[s]! - w0) * scale;
        if (b < 0) continue;
        if (a > wide) break;
        if (b <= last + 0.4 && s !== this.state.span) continue;
        const left = Math.max(0, a), right = Math.min(wide, Math.max(b, a + 1));
        last = right;
        g.fillStyle = this.colour(i, columns.kind[s]!);
        g.fillRect(GUTTER + left, y + 2, right - left, LANE - 4);
        const exposed = columns.exposed[s]! * scale;
        // What is less than half a pixel would look longer than it is.
        if (exposed >= 0.5) { g.fillStyle = of.mark; const from = Math.max(left, right - exposed); g.fillRect(GUTTER + from, y + LANE - 6, right - from, 4); }
        if (right - left > 44) { g.fillStyle = isDark() ? "#14171b" : "#ffffff"; g.fillText(run.names[columns.name[s]!]!, GUTTER + left + 3, y + LANE / 2, right - left - 5); }
        if (s === this.state.span && i === this.state.run) { g.strokeStyle = of.mark; g.lineWidth = 2; g.strokeRect(GUTTER + left, y + 1, right - left, LANE - 2); }
      }
    });
    this.rates(i, g, wide, scale);
    g.fillStyle = of.faint; g.textBaseline = "alphabetic";
    const foot = run.lanes.length * LANE;
    for (let k = 0; k <= 4; k++) { g.textAlign = k === 0 ? "left" : k === 4 ? "right" : "center"; g.fillText(time(w0 + (w1 - w0) * k / 4), GUTTER + wide * k / 4, foot + 13); }
    g.textAlign = "left";
  }

  /** What each job sends over time, as an area on its lane. */
  private rates(i: number, g: CanvasRenderingContext2D, wide: number, scale: number): void {
    const { rate_t, rate_lane, rate: values } = this.columns[i]!, [w0] = this.window(), run = this.head.runs[i]!;
    if (!rate_t || !rate_lane || !values || !run.rates.length) return;
    let most = 1;
    for (const value of values) most = Math.max(most, value);
    const now = new Map<number, [number, number]>();
    const area = (lane: number, from: number, to: number, value: number) => {
      const left = Math.max(0, (from - w0) * scale), right = Math.min(wide, (to - w0) * scale), high = (LANE - 3) * value / most;
      if (right > left && high > 0) g.fillRect(GUTTER + left, (lane + 1) * LANE - 1 - high, Math.max(0.7, right - left), high);
    };
    g.fillStyle = series(5);
    for (let k = 0; k < rate_t.length; k++) {
      const lane = run.rates[rate_lane[k]!]!, [since, value] = now.get(lane) ?? [0, 0];
      area(lane, since, rate_t[k]!, value);
      now.set(lane, [rate_t[k]!, values[k]!]);
    }
    for (const [lane, [since, value]] of now) area(lane, since, run.time_ps, value);
  }

  private bars(): void {
    const runs = this.head.runs.filter((run) => run.bars.length), of = theme();
    if (!runs.length) return;
    const most = Math.max(...runs.map((run) => run.bars.reduce((sum, [, ps]) => sum + ps, 0)), 1), kinds = [...new Set(runs.flatMap((run) => run.bars.map(([kind]) => kind)))];
    const chart = svg("svg", { viewBox: `0 0 1000 ${runs.length * 40 + 4}`, role: "img", "aria-label": "Where the time of an iteration goes", style: "max-height:220px" });
    runs.forEach((run, i) => {
      let x = 0;
      chart.append(svg("text", { x: 0, y: i * 40 + 12 }, `${run.title}: ${time(run.bars.reduce((sum, [, ps]) => sum + ps, 0))} an iteration`));
      for (const [kind, ps] of run.bars) {
        const width = 1000 * ps / most, fill = kind.startsWith("waits") ? of.mark : series(kinds.indexOf(kind));
        if (width > 0) chart.append(svg("rect", { x, y: i * 40 + 17, width, height: 19, fill, opacity: kind.startsWith("waits") ? 1 - 0.13 * kinds.indexOf(kind) % 0.5 : 1, "data-bar": kind }, svg("title", {}, `${kind}: ${time(ps)}`)));
        if (width > 70) chart.append(svg("text", { x: x + 5, y: i * 40 + 31, style: `fill:${isDark() ? "#14171b" : "#fff"}` }, `${kind} ${percent(ps / (run.bars.reduce((sum, [, each]) => sum + each, 0) || 1))}`));
        x += width;
      }
    });
    byId("bars").replaceChildren(chart);
  }

  private panel(): void {
    const { run, span } = this.state, of = this.columns[run]!, head = this.head.runs[run]!, [w0, w1] = this.window();
    const lane = span >= 0 ? of.lane[span]! : -1, rows: Row[] = [];
    let found = 0;
    for (let s = 0; s < of.lane.length; s++) {
      if (lane >= 0 && of.lane[s] !== lane || of.start[s]! > w1 || of.start[s]! + of.length[s]! < w0) continue;
      if (found++ >= LISTED) continue;
      rows.push({ cells: [head.lanes[of.lane[s]!]!.join(", "), head.names[of.name[s]!]!, head.kinds[of.kind[s]!]!, time(of.start[s]!), time(of.length[s]!), of.exposed[s]! ? time(of.exposed[s]!) : "–"],
        keys: [of.lane[s]!, head.names[of.name[s]!]!, of.kind[s]!, of.start[s]!, of.length[s]!, of.exposed[s]!], choose: () => this.set({ run, span: s }), chosen: s === span });
    }
    byId("panel").replaceChildren(found ? table(`${head.title}: ${lane >= 0 ? head.lanes[lane]!.join(", ") : "all lanes"}, ${found.toLocaleString("en")} spans`, ["lane", "what", "kind", "start", "takes", "waited for"], rows, found) : "");
  }

  private cursor(): void {
    const [a, b] = this.window(), share = (this.state.t - a) / (b - a);
    this.cursors.forEach((line, i) => {
      line.hidden = share < 0 || share > 1;
      line.style.transform = `translateX(${GUTTER + share * (this.canvases[i]!.clientWidth - GUTTER - 2)}px)`;
    });
    byId("now").textContent = time(this.state.t);
    if (this.state.fabric === "flows") for (const view of this.views) if (this.flows[view.scene.index]) view.ribbons(this.onLinks(view.scene.index));
  }

  /** Jobs by number, which all runs share. */
  private jobs(): string[] {
    return [...new Set(this.head.runs[0]!.lanes.map(([job]) => job))].filter((name) => name !== "controller" && name !== "fabric");
  }

  /** The colours of the flows on each link at this moment. */
  onLinks(run: number): Map<number, string[]> {
    const of = this.flows[run], found = new Map<number, string[]>(), { t } = this.state;
    if (!of) return found;
    for (let s = 0; s < of.start.length; s++) {
      if (of.start[s]! > t) break;
      if (of.start[s]! + of.length[s]! <= t) continue;
      const colour = series(of.job[of.stayFlow[s]!]!), path = of.stayPath[s]!;
      for (let p = of.pathAt[path]!; p < of.pathAt[path + 1]!; p++) {
        const link = of.pathLink[p]!, list = found.get(link);
        if (list) list.push(colour); else found.set(link, [colour]);
      }
    }
    return found;
  }

  private key(event: KeyboardEvent): void {
    if (/^(INPUT|SELECT)$/.test((event.target as HTMLElement).tagName) || event.ctrlKey || event.metaKey) return;
    const [a, b] = this.window(), step = (b - a) / 200 * (event.shiftKey ? 10 : 1);
    const actions: Record<string, () => void> = {
      ArrowRight: () => this.set({ t: this.state.t + step }), ArrowLeft: () => this.set({ t: this.state.t - step }), Home: () => this.set({ t: a }), End: () => this.set({ t: b }),
      w: () => this.set({ w: null }), Escape: () => this.set({ span: -1 }),
      "+": () => { const half = (b - a) / 4, t = Math.max(a, Math.min(b, this.state.t)); this.set({ w: [Math.max(0, t - half), Math.min(this.total, t + half)] }); },
      "-": () => { const w: [number, number] = [Math.max(0, a - (b - a) / 2), Math.min(this.total, b + (b - a) / 2)]; this.set({ w: w[0] === 0 && w[1] === this.total ? null : w }); },
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  private toSvg(): string {
    let y = 0, widest = 0;
    const parts: string[] = [], of = theme();
    this.canvases.forEach((canvas, i) => {
      const title = this.head.runs[i]!.title.replace(/[&<>]/g, (c) => `&#${c.charCodeAt(0)};`);
      parts.push(`<text x="4" y="${y + 14}" font-size="13" fill="${of.ink}">${title}</text><image y="${y + 20}" width="${canvas.clientWidth}" height="${canvas.clientHeight}" href="${canvas.toDataURL("image/png")}"/>`);
      y += canvas.clientHeight + 28;
      widest = Math.max(widest, canvas.clientWidth);
    });
    for (const view of this.views) { const { body, width, height } = view.toSvg(0); parts.push(`<svg y="${y}" width="${width}" height="${height}">${body}</svg>`); y += height + 8; }
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${widest}" height="${y}" font-family="system-ui, sans-serif"><rect width="100%" height="100%" fill="${of.paper}"/>${parts.join("\n")}</svg>`;
  }
}
