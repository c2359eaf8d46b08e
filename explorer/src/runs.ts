// Runs of plans: one, or several beside one another on one clock.
import { colours, css, setTheme, theme } from "./colour";
import { byId, bytes, count, el, percent, rate, save, time } from "./dom";
import { composed, openPerfetto, perfetto, png } from "./export";
import { addTransfers, firstOf, type RunsHead, type Scene } from "./model";
import { NetworkView } from "./network";
import { chunkTable, linksTable, npusTable, runsTable, transfersTable, type Choices } from "./panel";
import { Proof } from "./proof";
import { fromHash, toHash, type State } from "./state";
import { Strip } from "./strip";
import { decode, type Columns } from "./decode";
import { addIndex, type Part } from "./transfers";

declare const WORKER_SOURCE: string;
const SECONDS = 12;
const TABS = [["runs", "Runs"], ["transfers", "Transfers"], ["links", "Links"], ["npus", "NPUs"], ["chunk", "Chunk"]] as const;

/** Starts to read the transfers beside the page; null where workers are not allowed. */
function begin(head: RunsHead, text: string): Worker | null {
  try {
    const worker = new Worker(URL.createObjectURL(new Blob([WORKER_SOURCE], { type: "text/javascript" })));
    worker.postMessage({ text, specs: head.rest, to: head.rest_bytes });
    return worker;
  } catch {
    return null;
  }
}

export class Runs {
  readonly state: State = fromHash(location.hash);
  readonly total: number;
  private readonly views: NetworkView[] = []; private readonly strips: Strip[] = [];
  private proof: Proof | null = null;
  private playing = 0; private last = 0;
  private readonly choices: Choices = {
    link: (l) => this.set({ link: l, chunk: -1, npu: -1, tab: "transfers" }),
    chunk: (c) => this.set({ chunk: c, link: -1, npu: -1, tab: "chunk" }),
    npu: (d) => this.set({ npu: d, link: -1, chunk: -1, tab: "transfers" }),
    run: (i) => this.set({ run: i }),
  };

  private constructor(readonly head: RunsHead, readonly scenes: Scene[]) {
    this.total = Math.max(...scenes.map((each) => each.head.time_ps), ...scenes.map((each) => each.head.bound_ps), 1);
    this.check();
    this.build();
    this.proof = null;
    window.addEventListener("hashchange", () => { Object.assign(this.state, fromHash(location.hash)); this.check(); this.proof = null; this.all(); });
    let queued = 0;
    window.addEventListener("resize", () => { cancelAnimationFrame(queued); queued = requestAnimationFrame(() => this.all()); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.all());
    window.addEventListener("keydown", (event) => this.key(event));
    this.all();
  }

  static async open(head: RunsHead, first: string, rest: string): Promise<Runs> {
    const reader = head.rest.length ? begin(head, rest) : null;
    const scenes = await firstOf(head, first);
    const runs = new Runs(head, scenes);
    if (head.rest.length) void runs.load(rest, reader);
    else (window as unknown as { loaded: boolean }).loaded = true;
    return runs;
  }

  /** What each transfer waits for, read when asked. */
  late: () => Promise<Columns> = () => Promise.resolve({});

  get scene(): Scene {
    return this.scenes[this.state.run]!;
  }

  /** Takes the transfers that a worker reads beside the page, or reads them in it where workers are not allowed. */
  private async load(text: string, reader: Worker | null): Promise<void> {
    const parts = this.scenes.map(({ index, head, network: { head: { links }, src, dst } }): Part => ({ prefix: `s${index}.`, rows: head.rows, single: head.single, links, src, dst }));
    let columns: Columns;
    try {
      columns = await new Promise((resolve, reject) => {
        if (!reader) throw new Error("there is no worker");
        reader.onmessage = (event: MessageEvent<{ columns: Columns; error?: string }>) => event.data.error ? reject(new Error(event.data.error)) : resolve(event.data.columns);
        reader.onerror = () => reject(new Error("the worker failed"));
        reader.postMessage({ parts });
      });
    } catch {
      columns = await decode(text, this.head.rest, 0, this.head.rest_bytes);
      for (const part of parts) addIndex(columns, part);
    }
    reader?.terminate();
    this.late = () => decode(text, this.head.late, this.head.rest_bytes);
    addTransfers(this.scenes, columns);
    this.check();
    this.picked();
    if (this.state.w) this.drawStrips();
    performance.mark("loaded");
    (window as unknown as { loaded: boolean }).loaded = true;
  }

  /** Brings a state that an address gave within what there is. */
  private check(): void {
    const state = this.state;
    if (state.run >= this.scenes.length) state.run = 0;
    const { head, network } = this.scene;
    if (state.link >= network.head.links) state.link = -1;
    if (state.npu >= network.head.devices) state.npu = -1;
    if (state.chunk >= head.chunks) state.chunk = -1;
    state.t = Math.min(state.t, this.total);
    if (state.w && state.w[0] >= this.total) state.w = null;
    setTheme(state.theme);
  }

  set(change: Partial<State>): void {
    const before = { ...this.state };
    Object.assign(this.state, change);
    this.check();
    const changed = (...names: (keyof State)[]) => names.some((name) => before[name] !== this.state[name]);
    if (changed("theme", "paint", "v")) this.all();
    else {
      if (changed("w", "strip")) this.drawStrips();
      const picked = changed("link", "chunk", "npu", "run", "cut", "tab", "strip", "speed");
      if (picked) this.picked();
      this.frame(!picked);
    }
    clearTimeout(this.saving);
    // Browsers complain of an address that changes with every frame.
    if (changed("t") && !changed("w", "v", "link", "chunk", "npu", "run", "tab")) this.saving = setTimeout(() => this.remember(), 100);
    else this.remember();
  }
  private saving = 0;

  private remember(): void {
    history.replaceState(null, "", toHash(this.state));
  }

  private build(): void {
    const app = byId("app"), { scenes } = this;
    document.title = this.head.title;
    const facts = (scene: Scene) => {
      const { head } = scene;
      return el("p", { class: "facts" }, el("b", {}, time(head.time_ps)), ` for ${bytes(head.size)}, busbw ${rate(head.busbw)}; bound ${time(head.bound_ps)}, gap ${percent(head.time_ps / (head.bound_ps || 1) - 1)}; ${count(head.rows, "transfer")}, links used ${percent(head.utilization)}`);
    };
    const column = (scene: Scene) => {
      const net = el("div", { class: "net" }), strip = el("div", { class: "strip" });
      const box = el("section", { class: "scene", "aria-label": scene.head.title }, scenes.length > 1 ? el("h2", {}, scene.head.title) : null, facts(scene), net, strip);
      if (scene.network.head.warning) box.append(el("p", { class: "note" }, scene.network.head.warning));
      const view = new NetworkView(scene, net), own = new Strip(scene, strip, "links", this.total);
      this.views.push(view); this.strips.push(own);
      this.onNet(view, net); this.onStrip(own, strip);
      return box;
    };
    const press = (id: string, label: string, title: string, click: () => void) => el("button", { id, title, click }, label);
    const pick = (id: string, options: [string, string][], change: (value: string) => void, label: string) => el("label", {}, label, el("select", { id, change: (event: Event) => change((event.target as HTMLSelectElement).value) }, ...options.map(([value, text]) => el("option", { value }, text))));
    app.replaceChildren(
      el("header", {}, el("h1", {}, this.head.title), el("span", { class: "facts", id: "witness" })),
      el("div", { class: "bar" },
        press("play", "Play", "Space", () => this.play()),
        el("input", { type: "range", id: "time", min: 0, max: 1000, value: 0, step: "any", "aria-label": "time", input: (event: Event) => this.set({ t: Number((event.target as HTMLInputElement).value) / 1000 * this.total }) }),
        el("output", { id: "now", "aria-live": "off" }),
        pick("speed", [["0.25", "¼ ×"], ["1", "1 ×"], ["4", "4 ×"]], (value) => this.set({ speed: Number(value) }), "speed"),
        scenes.length > 1 ? pick("run", scenes.map((each, i) => [String(i), each.head.title]), (value) => this.set({ run: Number(value), link: -1, npu: -1, chunk: -1 }), "run") : null,
        el("label", {}, "chunk", el("input", { type: "number", id: "chunk", min: 0, max: this.scene.head.chunks - 1, change: (event: Event) => {
          const text = (event.target as HTMLInputElement).value;
          this.set({ chunk: text === "" ? -1 : Math.max(0, Math.floor(Number(text))), link: -1, npu: -1, tab: "chunk" });
        } })),
        pick("strip", [["links", "links"], ["npus", "NPUs"]], (value) => this.set({ strip: value }), "rows"),
        pick("paint", [["use", "use now"], ["load", "load in all"]], (value) => this.set({ paint: value }), "colour"),
        el("span", { class: "group" },
          press("cut", "Bound's cut", "c", () => this.set({ cut: !this.state.cut })),
          press("out", "Whole network", "0", () => this.set({ v: null })),
          press("whole", "All of the time", "w", () => this.set({ w: null }))),
        el("span", { class: "group" },
          press("png", "PNG", "Save the picture as PNG", () => void this.savePng()),
          press("svg", "SVG", "Save the picture as SVG", () => this.saveSvg()),
          press("perfetto", "Spans", "Save what each link carries when, for ui.perfetto.dev", () => this.savePerfetto()),
          press("open", "Open in Perfetto", "Open ui.perfetto.dev with what each link carries when; needs a network", () => { if (this.scene.transfers) openPerfetto(this.scene.head.title, perfetto(this.scene)); }),
          pick("theme", [["auto", "auto"], ["light", "light"], ["dark", "dark"]], (value) => this.set({ theme: value }), ""),
          press("help", "?", "Keys", () => byId<HTMLDialogElement>("keys").showModal()))),
      el("main", {},
        el("div", {}, el("div", { class: "scenes" }, ...scenes.map(column)), this.legend(),
          this.head.note ? el("p", { class: "note" }, this.head.note) : null),
        el("aside", {}, el("div", { role: "tablist", "aria-label": "Tables" }, ...TABS.map(([name, label]) => el("button", { role: "tab", id: `tab-${name}`, click: () => this.set({ tab: name }) }, label))), el("div", { id: "panel", role: "tabpanel", tabindex: 0 }))),
      el("div", { id: "hover", hidden: true }), this.keys());
  }

  private legend(): HTMLElement {
    return el("div", { class: "legend", id: "legend" });
  }

  private fillLegend(): void {
    const table = colours(), bar = (phase: number) => `background:linear-gradient(90deg,${[1, 128, 255].map((use) => css(table[phase * 256 + use]!)).join(",")})`;
    const item = (style: string, text: string) => { const i = el("i"); i.setAttribute("style", style); return el("span", {}, i, text); };
    byId("legend").replaceChildren(
      item(`background:${css(table[0]!)}`, "idle"), item(bar(15), this.state.paint === "load" ? "bytes over bandwidth, to the most of a link" : "sums, by use"),
      ...(this.state.paint === "load" ? [] : [item(bar(0), "copies, by use")]),
      item("height:0;border-top:2px dashed", "bound"), item(`height:0;border-top:2px dashed ${theme().cut}`, "its cut"), item(`height:0;border-top:3px solid ${theme().mark}`, "chosen; now"));
  }

  private keys(): HTMLElement {
    const rows: [string, string][] = [["Space", "play or pause"], ["← →", "a step in time; with Shift ten"], ["Home End", "first and last moment"], ["n p", "next and previous link"], ["[ ]", "previous and next chunk"], ["c", "the bound's cut"], ["+ − 0", "closer, farther, the whole network"], ["w", "all of the time"], ["Esc", "nothing chosen"]];
    const dialog = el("dialog", { id: "keys" }, el("h2", {}, "Keys"), el("table", {}, ...rows.map(([key, does]) => el("tr", {}, el("td", {}, el("kbd", {}, key)), el("td", {}, does)))),
      el("p", { class: "note" }, "Drag along a strip to see a part of the time. Wheel or drag in the network to move it; a double click shows a box alone."), el("button", { click: () => dialog.close() }, "Close"));
    return dialog;
  }

  private onNet(view: NetworkView, net: HTMLElement): void {
    let drag: { x: number; y: number; moved: boolean } | null = null;
    const at = (event: MouseEvent): [number, number] => { const box = net.getBoundingClientRect(); return [event.clientX - box.left - 1, event.clientY - box.top - 1]; };
    net.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.set({ v: view.zoomed(Math.exp(-event.deltaY / 400), ...at(event)) });
    }, { passive: false });
    net.addEventListener("pointerdown", (event) => { drag = { x: event.clientX, y: event.clientY, moved: false }; });
    net.addEventListener("pointermove", (event) => {
      if (drag && event.buttons === 1 && (drag.moved || Math.hypot(event.clientX - drag.x, event.clientY - drag.y) > 4)) {
        this.set({ v: view.moved(event.clientX - drag.x, event.clientY - drag.y) });
        drag = { x: event.clientX, y: event.clientY, moved: true };
        this.hover(null);
        return;
      }
      this.hover(view, event, ...at(event));
    });
    net.addEventListener("pointerleave", () => { drag = null; this.hover(null); });
    net.addEventListener("click", (event) => {
      const moved = drag?.moved;
      drag = null;
      if (moved) return;
      const [x, y] = at(event), run = view.scene.index, device = view.device(x, y);
      if (device >= 0) { this.set({ run, npu: device, link: -1, chunk: -1, tab: "transfers" }); return; }
      const near = view.near(x, y), link = near[0] ?? -1;
      // A second click where lines cross takes the next of them.
      const next = near.length > 1 && link === this.state.link ? near[1]! : link;
      this.set({ run, link: next, npu: -1, chunk: -1, tab: next >= 0 ? "transfers" : this.state.tab });
    });
    net.addEventListener("dblclick", (event) => { const box = view.box(...at(event)); if (box) this.set({ v: box }); });
  }

  private onStrip(strip: Strip, box: HTMLElement): void {
    let from = -1;
    const brush = box.appendChild(el("i", { class: "brush", hidden: true }));
    const x = (event: PointerEvent) => event.clientX - box.getBoundingClientRect().left;
    box.addEventListener("pointerdown", (event) => { from = x(event); box.setPointerCapture(event.pointerId); });
    box.addEventListener("pointermove", (event) => {
      const now = x(event);
      if (from >= 0 && Math.abs(now - from) > 5) {
        brush.hidden = false;
        brush.style.transform = `translateX(${Math.min(from, now)}px)`;
        brush.style.width = `${Math.abs(now - from)}px`;
        return;
      }
      this.set({ t: strip.moment(now) });
    });
    box.addEventListener("pointerup", (event) => {
      const now = x(event), start = from;
      from = -1;
      brush.hidden = true;
      if (Math.abs(now - start) > 5) { this.set({ w: [strip.moment(Math.min(start, now)), strip.moment(Math.max(start, now))] }); return; }
      const item = strip.item(event.clientY - box.getBoundingClientRect().top), run = strip.scene.index;
      if (strip.what === "links") this.set({ run, link: item, npu: -1, chunk: -1, tab: "transfers" });
      else this.set({ run, npu: item, link: -1, chunk: -1, tab: "transfers" });
    });
  }

  private hover(view: NetworkView | null, event?: MouseEvent, x = 0, y = 0): void {
    const card = byId("hover");
    card.hidden = true;
    if (!view || !event) return;
    const { scene } = view, device = view.device(x, y), lines: string[] = [];
    if (device >= 0) lines.push(scene.network.names[device]!);
    const near = device >= 0 ? [] : view.near(x, y);
    for (const l of near.slice(0, 4)) {
      const tone = scene.tone(l, scene.bin(this.state.t));
      lines.push(`${view.detailed ? scene.network.link(l) : scene.network.head.bundles[scene.network.bundle[l]!]![1]}: ${percent((tone & 255) / 255)} busy now${view.detailed ? `, ${bytes(scene.bytes[l]!)} in all` : " (its first link)"}`);
      const now = view.detailed && near.length === 1 ? this.flying(scene, l) : null;
      if (now) lines.push(now);
    }
    if (near.length > 4) lines.push(`and ${near.length - 4} more here`);
    if (!lines.length) return;
    card.textContent = lines.join("\n");
    card.hidden = false;
    card.style.left = `${Math.min(event.clientX + 14, innerWidth - card.offsetWidth - 8)}px`;
    card.style.top = `${Math.min(event.clientY + 14, innerHeight - card.offsetHeight - 8)}px`;
  }

  /** What is on a link now, exactly. */
  private flying(scene: Scene, l: number): string | null {
    const moved = scene.transfers, unit = scene.head.unit_ps, t = this.state.t / unit;
    if (!moved) return null;
    const s = moved.onLink(l).find((each) => moved.stayStart[each]! <= t && t < moved.stayStart[each]! + moved.stayLength[each]!);
    if (s === undefined) return "idle at this moment";
    const i = moved.stayTransfer[s]!;
    return `${moved.op[i] ? "reduce" : "copy"} of chunk ${moved.chunk[i]}${moved.count[i]! > 1 ? ` to ${moved.chunk[i]! + moved.count[i]! - 1}` : ""}, ${bytes(moved.bytes(i))}`;
  }

  /** Everything anew: sizes, colours, places. */
  all(): void {
    this.views.forEach((view) => { view.arrange(this.scenes.length > 1 && view.scene.index !== this.state.run && this.views[0]!.scene.network !== view.scene.network ? null : this.state.v); view.byLoad(this.state.paint === "load"); });
    this.fillLegend();
    this.drawStrips();
    this.picked();
    this.frame(false);
  }

  private drawStrips(): void {
    for (const strip of this.strips) { strip.what = this.state.strip === "npus" ? "npus" : "links"; strip.draw(this.state.w); strip.moveCursor(this.state.t); }
  }

  /** What is chosen: marks, tables, fields. */
  private picked(): void {
    const { state, scene } = this;
    if (state.chunk >= 0 && scene.transfers) { if (this.proof?.chunk !== state.chunk || this.proofRun !== state.run) { this.proof = new Proof(scene, state.chunk); this.proofRun = state.run; } }
    else this.proof = null;
    const value = (id: string, text: string) => { const input = document.getElementById(id) as HTMLInputElement | null; if (input && document.activeElement !== input) input.value = text; };
    value("chunk", state.chunk < 0 ? "" : String(state.chunk));
    value("strip", state.strip); value("paint", state.paint); value("theme", state.theme); value("speed", String(state.speed)); value("run", String(state.run));
    byId("cut").setAttribute("aria-pressed", String(state.cut));
    byId("witness").textContent = `Bound ${time(scene.head.bound_ps)}: ${scene.head.witness}`;
    this.marks();
    this.panel();
  }
  private proofRun = 0;

  private marks(): void {
    const { state } = this;
    for (const view of this.views) {
      const { scene } = view, isOwn = scene.index === state.run, links = new Set<number>(), devices: number[] = [];
      let shares: Map<number, number> | null = null;
      if (isOwn && state.link >= 0) links.add(state.link);
      if (isOwn && state.npu >= 0) devices.push(state.npu);
      if (isOwn && this.proof && scene.transfers) {
        for (const link of this.treeLinks(scene, this.proof.rows)) links.add(link);
        const { held } = this.proof.at(state.t);
        shares = new Map(this.proof.participants.map((npu) => [npu, this.proof!.size(held.get(npu)) / this.proof!.needed]));
      }
      view.mark(links, devices, state.cut && !this.proof ? this.cutOf(scene) : null, shares);
    }
  }

  private tree: { key: string; links: number[] } = { key: "", links: [] };
  private treeLinks(scene: Scene, rows: number[]): number[] {
    const key = `${scene.index}.${this.state.chunk}`;
    if (this.tree.key !== key) {
      const moved = scene.transfers!, found = new Set<number>();
      for (const row of rows) for (let s = moved.stayAt[row]!; s < moved.stayAt[row + 1]!; s++) found.add(moved.stayLink[s]!);
      this.tree = { key, links: [...found] };
    }
    return this.tree.links;
  }

  private readonly cuts = new Map<number, { links: number[]; devices: number[] } | null>();
  /** The devices on one side of the bound's cut, and the links that cross it. */
  private cutOf(scene: Scene): { links: number[]; devices: number[] } | null {
    const known = this.cuts.get(scene.index);
    if (known !== undefined) return known;
    const { sides } = scene.head, { src, dst, head } = scene.network;
    let found: { links: number[]; devices: number[] } | null = null;
    if (sides.length) {
      const part = new Int32Array(head.devices).fill(-1);
      sides.forEach((side, i) => side.forEach((d) => { part[d] = i; }));
      const links: number[] = [];
      for (let l = 0; l < head.links; l++) if (part[src[l]!] !== part[dst[l]!]) links.push(l);
      // Where every NPU is a part of its own, every link crosses: the rings around NPUs say it all.
      const alone = sides.every((side) => side.length === 1);
      found = { links: links.length <= 4000 && !(alone && sides.length > 1) ? links : [], devices: alone || sides.length === 1 ? sides.flat() : [] };
    }
    this.cuts.set(scene.index, found);
    return found;
  }

  private panel(): void {
    const { state, scene, choices } = this, tab = state.tab || (state.chunk >= 0 ? "chunk" : state.link >= 0 || state.npu >= 0 ? "transfers" : "runs");
    for (const [name] of TABS) byId(`tab-${name}`).setAttribute("aria-selected", String(name === tab));
    const none = !this.head.rest.length && (tab === "transfers" || tab === "chunk");
    byId("panel").replaceChildren(none ? el("p", { class: "note" }, this.head.note ?? "") : tab === "runs" ? runsTable(this.scenes, state, choices) : tab === "links" ? linksTable(scene, state, choices)
      : tab === "npus" ? npusTable(scene, state, choices) : tab === "chunk" ? chunkTable(scene, this.proof, state, choices) : transfersTable(scene, state, choices));
    this.panelTime = performance.now();
  }
  private panelTime = 0;
  private later = 0;

  /** What changes with the moment: colours of links, cursors, and tables that say "now". */
  frame(marks = true): void {
    const { state } = this;
    for (const view of this.views) view.draw(state.t);
    for (const strip of this.strips) strip.moveCursor(state.t);
    byId<HTMLInputElement>("time").value = String(state.t / this.total * 1000);
    byId("now").textContent = time(state.t);
    if (this.proof && marks) this.marks();
    clearTimeout(this.later);
    if (["links", "npus", "chunk"].includes(state.tab)) this.later = setTimeout(() => this.panel(), performance.now() - this.panelTime > 400 ? 120 : 300);
  }

  play(): void {
    const button = byId("play");
    if (this.playing) { cancelAnimationFrame(this.playing); this.playing = 0; button.textContent = "Play"; this.remember(); return; }
    button.textContent = "Pause";
    if (this.state.t >= (this.state.w?.[1] ?? this.total)) this.state.t = this.state.w?.[0] ?? 0;
    this.last = performance.now();
    const step = (now: number) => {
      const [from, to] = this.state.w ?? [0, this.total];
      this.state.t += (now - this.last) / 1000 / SECONDS * this.state.speed * (to - from);
      this.last = now;
      if (this.state.t >= to) { this.state.t = to; this.frame(); this.play(); return; }
      this.frame();
      this.playing = requestAnimationFrame(step);
    };
    this.playing = requestAnimationFrame(step);
  }

  private key(event: KeyboardEvent): void {
    const target = event.target as HTMLElement;
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName) && event.key !== "Escape" || target.tagName === "BUTTON" && event.key === " ") return;
    const { state, scene } = this, step = this.total / scene.head.bins * (event.shiftKey ? 10 : 1);
    const links = scene.network.head.links, last = scene.head.chunks;
    const bounded = (t: number) => Math.max(0, Math.min(this.total, t));
    const actions: Record<string, () => void> = {
      " ": () => this.play(), ArrowRight: () => this.set({ t: bounded(state.t + step) }), ArrowLeft: () => this.set({ t: bounded(state.t - step) }),
      Home: () => this.set({ t: 0 }), End: () => this.set({ t: this.total }),
      n: () => this.choices.link((state.link + 1) % links), p: () => this.choices.link((Math.max(state.link, 0) + links - 1) % links),
      "]": () => this.choices.chunk((state.chunk + 1) % last), "[": () => this.choices.chunk((Math.max(state.chunk, 0) + last - 1) % last),
      c: () => this.set({ cut: !state.cut }), w: () => this.set({ w: null }), "0": () => this.set({ v: null }),
      "+": () => this.zoom(1.3), "-": () => this.zoom(1 / 1.3), "?": () => byId<HTMLDialogElement>("keys").showModal(),
      Escape: () => { (document.activeElement as HTMLElement | null)?.blur(); this.set({ link: -1, chunk: -1, npu: -1 }); },
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  }

  private zoom(factor: number): void {
    const view = this.views[this.state.run]!, box = view.holder.getBoundingClientRect();
    this.set({ v: view.zoomed(factor, box.width / 2, box.height / 2) });
  }

  private async savePng(): Promise<void> {
    save("hocket.png", await png(this.views, this.strips, this.scenes.map((each) => each.head.title), this.state.t));
  }

  private saveSvg(): void {
    save("hocket.svg", new Blob([composed(this.views, this.strips, this.scenes.map((each) => each.head.title), this.state.t)], { type: "image/svg+xml" }));
  }

  private savePerfetto(): void {
    if (this.scene.transfers) save("hocket.json", new Blob(perfetto(this.scene), { type: "application/json" }));
  }

  /** For tests: what the page shows, by numbers. */
  inspect() {
    return { views: this.views, strips: this.strips, scenes: this.scenes, proof: () => this.proof };
  }
}
