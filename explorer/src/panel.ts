// The tables beside the pictures: what a link carries, what an NPU did, where a chunk went and its proof.
import { bytes, count, el, percent, rate, time } from "./dom";
import type { Scene } from "./model";
import { Proof } from "./proof";
import type { State } from "./state";
import { table, type Row } from "./table";

const LISTED = 5000;

export interface Choices {
  link(l: number): void;
  chunk(c: number): void;
  npu(d: number): void;
  run(i: number): void;
}

const chunks = (first: number, many: number) => many > 1 ? `${first}–${first + many - 1}` : String(first);

/** Where a transfer's bytes wait to be read, if they still do. */
function waiting(): HTMLElement {
  return el("p", { class: "note" }, "The transfers are still being read …");
}

function transferRow(scene: Scene, i: number, choices: Choices, at: number, begin?: number, end?: number): Row {
  const moved = scene.transfers!, unit = scene.head.unit_ps, { names } = scene.network;
  const start = begin ?? moved.start[i]! * unit, stop = end ?? (moved.start[i]! + moved.length[i]!) * unit;
  return {
    get cells() { return [names[moved.src[i]!]!, names[moved.dst[i]!]!, chunks(moved.chunk[i]!, moved.count[i]!), moved.op[i] ? "reduce" : "copy", bytes(moved.bytes(i)), time(start), time(stop)]; },
    keys: [names[moved.src[i]!]!, names[moved.dst[i]!]!, moved.chunk[i]!, moved.op[i]!, moved.bytes(i), start, stop],
    choose: () => choices.chunk(moved.chunk[i]!), chosen: start <= at && at < stop,
  };
}

const HEADS = ["from", "to", "chunk", "does", "size", "start", "end"];

export function transfersTable(scene: Scene, state: State, choices: Choices): HTMLElement {
  const moved = scene.transfers, { names } = scene.network;
  if (!moved) return waiting();
  const rows: Row[] = [], unit = scene.head.unit_ps;
  if (state.link >= 0) {
    const stays = moved.onLink(state.link);
    for (const s of stays.subarray(0, LISTED))
      rows.push(transferRow(scene, moved.stayTransfer[s]!, choices, state.t, moved.stayStart[s]! * unit, (moved.stayStart[s]! + moved.stayLength[s]!) * unit));
    return table(`${scene.network.link(state.link)} carries ${count(stays.length, "transfer")}, ${bytes(scene.bytes[state.link]!)} over ${rate(scene.network.rate[state.link]!)}`, HEADS, rows, stays.length);
  }
  let found = 0;
  for (let i = 0; i < moved.rows; i++) {
    if (state.npu >= 0 && moved.src[i] !== state.npu && moved.dst[i] !== state.npu) continue;
    if (found++ < LISTED) rows.push(transferRow(scene, i, choices, state.t));
  }
  return table(state.npu >= 0 ? `${names[state.npu]!} sends or receives ${count(found, "transfer")}` : `All transfers: ${found.toLocaleString("en")}`, HEADS, rows, found);
}

export function linksTable(scene: Scene, state: State, choices: Choices): HTMLElement {
  const bin = scene.bin(state.t), { head: { links } } = scene.network, rows: Row[] = [];
  for (let l = 0; l < links; l++) {
    const now = (scene.tone(l, bin) & 255) / 255, busy = scene.busy[l]! / (scene.head.time_ps || 1);
    const link = scene.network.link(l);
    rows.push({ get cells() { return [link, percent(now), percent(busy), bytes(scene.bytes[l]!), rate(scene.network.rate[l]!)]; },
      keys: [link, now, busy, scene.bytes[l]!, scene.network.rate[l]!], choose: () => choices.link(l), chosen: l === state.link });
  }
  return table(`Links: use at ${time(state.t)}, and in all`, ["link", "now", "busy", "bytes", "bandwidth"], rows);
}

export function npusTable(scene: Scene, state: State, choices: Choices): HTMLElement {
  const { src, dst, names, head: { npus, links } } = scene.network, bin = scene.bin(state.t);
  const sums = Array.from({ length: npus }, () => ({ now: 0, busy: 0, out: 0, into: 0, links: 0 }));
  for (let l = 0; l < links; l++) {
    const now = (scene.tone(l, bin) & 255) / 255, busy = scene.busy[l]! / (scene.head.time_ps || 1);
    for (const [d, way] of [[src[l]!, "out"], [dst[l]!, "into"]] as const) {
      const of = sums[d];
      if (!of) continue;
      of.now += now; of.busy += busy; of.links++; of[way] += scene.bytes[l]!;
    }
  }
  const rows = sums.map((of, d): Row => ({
    get cells() { return [names[d]!, percent(of.now / (of.links || 1)), percent(of.busy / (of.links || 1)), bytes(of.out), bytes(of.into)]; },
    keys: [d, of.now / (of.links || 1), of.busy / (of.links || 1), of.out, of.into], choose: () => choices.npu(d), chosen: d === state.npu,
  }));
  return table(`NPUs: share of their links that are busy at ${time(state.t)}, and in all`, ["NPU", "now", "busy", "sent", "received"], rows);
}

export function runsTable(scenes: Scene[], state: State, choices: Choices): HTMLElement {
  const best = Math.min(...scenes.map((each) => each.head.time_ps));
  const rows = scenes.map(({ head, index }): Row => ({
    cells: [head.title, time(head.time_ps), head.time_ps === best ? "quickest" : `+${percent(head.time_ps / best - 1)}`, time(head.bound_ps), percent(head.time_ps / (head.bound_ps || 1) - 1), rate(head.busbw), percent(head.utilization)],
    keys: [head.title, head.time_ps, head.time_ps, head.bound_ps, head.time_ps / (head.bound_ps || 1), head.busbw, head.utilization],
    choose: () => choices.run(index), chosen: scenes.length > 1 && index === state.run,
  }));
  const box = el("div", {}, table("Runs", ["run", "time", "against", "bound", "gap", "busbw", "links used"], rows));
  for (const { head } of scenes) box.append(el("p", { class: "note" }, `${head.title}: no plan is quicker than ${time(head.bound_ps)}, since ${head.witness}.`));
  return box;
}

/** A chunk's tree: how it went, and who has what by now. */
export function chunkTable(scene: Scene, proof: Proof | null, state: State, choices: Choices): HTMLElement {
  if (!scene.transfers) return waiting();
  if (!proof) return el("p", { class: "note" }, "Choose a chunk: in the field above, or by a row of a link's transfers.");
  const { names } = scene.network, { held, twice } = proof.at(state.t), box = el("div");
  const done = proof.wanted.filter((npu) => proof.size(held.get(npu)) === proof.needed).length;
  const holds = holding(scene, proof);
  box.append(el("p", {}, `Chunk ${proof.chunk}, ${bytes(scene.transfers.size[proof.chunk]!)}: by ${time(state.t)}, ${done} of ${proof.wanted.length} have ${proof.isSum ? `the sum of all ${proof.needed} contributions` : "it"}.`));
  box.append(el("p", { class: holds ? "ok" : "bad" }, holds
    ? `✓ At the end everyone who wants it has ${proof.isSum ? "each contribution exactly once" : "it"}.`
    : "✗ By these transfers, someone lacks a contribution or has one twice."));
  if (proof.participants.length <= 64 && proof.isSum) box.append(matrix(scene, proof, held));
  const rows = [...new Set([...proof.wanted, ...held.keys()])].map((d): Row => {
    const size = proof.size(held.get(d));
    const who = () => size === proof.participants.length ? "all" : proof.first(held.get(d), 8).map((npu) => names[npu]!).join(", ") + (size > 8 ? ", …" : "");
    return { get cells() { return [names[d]!, `${size} of ${proof.needed}${twice.has(d) ? ", one twice" : ""}`, who()]; }, keys: [d, size, size], choose: () => choices.npu(d) };
  });
  const tree = proof.rows.map((i) => transferRow(scene, i, choices, state.t));
  box.append(table("Who has which contributions by now", ["device", "has", "of"], rows), table(`Its tree: ${count(tree.length, "transfer")}`, HEADS, tree.slice(0, LISTED), tree.length));
  return box;
}

const judged = new WeakMap<Proof, boolean>();
/** Whether the proof holds, found out once. */
function holding(scene: Scene, proof: Proof): boolean {
  if (!judged.has(proof) && scene.transfers) judged.set(proof, proof.holds());
  return judged.get(proof) ?? false;
}

function matrix(scene: Scene, proof: Proof, held: Map<number, Uint32Array>): HTMLElement {
  const n = proof.participants.length, side = Math.max(4, Math.min(14, Math.floor(280 / n)));
  const canvas = el("canvas", { width: n * side, height: n * side, role: "img", "aria-label": "Contributions (columns) that each participant (rows) has by now; the table below has them too" });
  const g = canvas.getContext("2d")!, style = getComputedStyle(document.documentElement);
  proof.participants.forEach((row, y) => proof.participants.forEach((column, x) => {
    g.fillStyle = proof.has(held.get(row), column) ? style.getPropertyValue("--mark") : style.getPropertyValue("--line");
    g.fillRect(x * side, y * side, side - 1, side - 1);
  }));
  return el("div", { class: "proof" }, canvas, el("span", { class: "note" }, `Row: who has it (${scene.network.names[proof.participants[0]!]} on top); column: whose contribution.`));
}
