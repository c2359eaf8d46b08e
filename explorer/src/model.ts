// What a page holds, as the views use it.
import { decode, type Column, type Columns, type Spec } from "./decode";

export interface NetworkHead {
  name: string; npus: number; devices: number; links: number;
  boxes: [x: number, y: number, width: number, height: number, label: string][];
  bundles: [box: number, label: string][];
  warning: string | null;
}

export interface SceneHead {
  title: string; network: number; algorithm: string; collective: string; size: number; topology: string; fidelity: string;
  time_ps: number; bound_ps: number; witness: string; sides: number[][];
  algbw: number; busbw: number; utilization: number;
  rows: number; chunks: number; bins: number; phase: number;
  demands: [reduced: number, holders: number[][] | null, wanted: number[][] | null][];
  participants: number[][];
  unit_ps: number; single: boolean;
}

export interface RunsHead {
  kind: "runs"; title: string; note: string | null;
  networks: NetworkHead[]; scenes: SceneHead[]; first: Spec[]; rest: Spec[];
  /** What transfers wait for, which no view needs: after the first `rest_bytes` bytes of the second stream. */
  late: Spec[]; rest_bytes: number;
}

const GRID = 1000;

/** A network with its picture, in units. */
export class Network {
  readonly names: string[];
  readonly x: Float64Array; readonly y: Float64Array;
  readonly src: Column; readonly dst: Column; readonly rate: Column;
  readonly bundle: Column; readonly lane: Column; readonly stub: Column;
  /** Both ends of each link's line and its bend: five numbers a link. */
  readonly ways: Float64Array;
  /** Relative width of each link: 1 to 2 by bandwidth. */
  readonly width: Float64Array;

  constructor(readonly head: NetworkHead, at: (name: string) => Column) {
    this.names = new TextDecoder().decode(at("names") as Uint8Array).split("\n");
    const scaled = (column: Column) => Float64Array.from(column, (value) => value / GRID);
    this.x = scaled(at("x"));
    this.y = scaled(at("y"));
    this.src = at("src"); this.dst = at("dst"); this.rate = at("rate");
    this.bundle = at("bundle"); this.lane = at("lane"); this.stub = at("stub");
    const [x0, y0, x1, y1, bend] = ["x0", "y0", "x1", "y1", "bend"].map(at) as [Column, Column, Column, Column, Column];
    const ways = this.ways = new Float64Array(head.links * 5);
    for (let l = 0; l < head.links; l++) {
      const a = this.src[l]!, b = this.stub[l] ? a : this.dst[l]!;
      ways[5 * l] = this.x[a]! + x0[l]! / GRID;
      ways[5 * l + 1] = this.y[a]! + y0[l]! / GRID;
      ways[5 * l + 2] = this.x[b]! + x1[l]! / GRID;
      ways[5 * l + 3] = this.y[b]! + y1[l]! / GRID;
      ways[5 * l + 4] = bend[l]! / GRID;
    }
    let least = Infinity;
    for (const each of this.rate) least = Math.min(least, each);
    this.width = Float64Array.from(this.rate, (each) => Math.min(2, 1 + 0.5 * Math.round(Math.log(each / least) / Math.log(4))));
  }

  link(l: number): string {
    return `${this.names[this.src[l]!]} → ${this.names[this.dst[l]!]}`;
  }
}

/** The transfers of a run, and in which order they are on links. */
export class Transfers {
  readonly rows: number;
  readonly start: Column; readonly length: Column; readonly chunk: Column; readonly count: Column;
  readonly op: Column; readonly src: Column; readonly dst: Column;
  readonly demand: Column; readonly size: Column;
  readonly stayTransfer: Column; readonly stayLink: Column; readonly stayStart: Column; readonly stayLength: Column;
  /** Stays of transfer i: `stayAt[i]` to before `stayAt[i + 1]`. */
  readonly stayAt: Int32Array;
  /** Stays of link l: `byLink[linkAt[l]]` to before `byLink[linkAt[l + 1]]`, in order of time. */
  readonly linkAt: Int32Array; readonly byLink: Int32Array;
  /** Bytes before each chunk. */
  readonly offsets: Float64Array;

  constructor(scene: SceneHead, at: (name: string) => Column) {
    this.rows = scene.rows;
    this.start = at("start"); this.length = at("length"); this.chunk = at("chunk"); this.count = at("count");
    this.op = at("op"); this.demand = at("demand"); this.size = at("size");
    this.src = at("src"); this.dst = at("dst");
    this.stayTransfer = at("stay_transfer"); this.stayLink = at("stay_link"); this.stayStart = at("stay_start"); this.stayLength = at("stay_length");
    this.stayAt = at("stay_at") as Int32Array; this.linkAt = at("link_at") as Int32Array; this.byLink = at("by_link") as Int32Array;
    const offsets = this.offsets = new Float64Array(this.size.length + 1);
    for (let c = 0; c < this.size.length; c++) offsets[c + 1] = offsets[c]! + this.size[c]!;
  }

  /** Stays on a link, sorted by start; sorted once, when first asked for. */
  onLink(l: number): Int32Array {
    const part = this.byLink.subarray(this.linkAt[l]!, this.linkAt[l + 1]!);
    for (let i = 1; i < part.length; i++)
      if (this.stayStart[part[i - 1]!]! > this.stayStart[part[i]!]!) return part.sort((a, b) => this.stayStart[a]! - this.stayStart[b]! || a - b);
    return part;
  }

  /** Transfers that carry a chunk, in the plan's order. */
  ofChunk(chunk: number): number[] {
    const found: number[] = [], first = this.chunk as Int32Array, count = this.count as Int32Array;
    for (let i = 0; i < first.length; i++) { const on = chunk - first[i]!; if (on >= 0 && on < count[i]!) found.push(i); }
    return found;
  }

  bytes(i: number): number {
    return this.offsets[this.chunk[i]! + this.count[i]!]! - this.offsets[this.chunk[i]!]!;
  }
}

/** A run: its use over time, and its transfers once they are read. */
export class Scene {
  readonly heat: Uint8Array; readonly phases: Uint8Array | null; readonly busy: Column; readonly bytes: Column;
  transfers: Transfers | null = null;

  constructor(readonly index: number, readonly head: SceneHead, readonly network: Network, at: (name: string) => Column | undefined) {
    this.heat = at("heat") as Uint8Array;
    this.phases = (at("phases") as Uint8Array | undefined) ?? null;
    this.busy = at("busy")!;
    this.bytes = at("bytes")!;
  }

  /** Bin of a moment [ps]; -1 once the run is over. */
  bin(ps: number): number {
    const { time_ps, bins } = this.head;
    return time_ps > 0 && ps < time_ps ? Math.min(bins - 1, Math.floor(ps / time_ps * bins)) : -1;
  }

  private tones = new Uint16Array(0);
  private tonesOf = -2;
  /** Places in the table of colours of all links in a bin. */
  tonesAt(bin: number): Uint16Array {
    if (this.tonesOf === bin) return this.tones;
    const { head: { bins, phase }, heat, phases } = this, { links } = this.network.head;
    if (this.tones.length !== links) this.tones = new Uint16Array(links);
    const tones = this.tones;
    this.tonesOf = bin;
    if (bin < 0) return tones.fill(0);
    if (phases) for (let l = 0, at = bin; l < links; l++, at += bins) tones[l] = phases[at]! << 8 | heat[at]!;
    else for (let l = 0, at = bin; l < links; l++, at += bins) tones[l] = phase << 8 | heat[at]!;
    return tones;
  }

  /** Place in the table of colours of a link in a bin. */
  tone(l: number, bin: number): number {
    if (bin < 0) return 0;
    const at = l * this.head.bins + bin;
    return (this.phases ? this.phases[at]! : this.head.phase) * 256 + this.heat[at]!;
  }
}

const prefixed = (columns: Columns, prefix: string) => (name: string) => columns[prefix + name]!;

export async function firstOf(head: RunsHead, text: string): Promise<Scene[]> {
  const columns = await decode(text, head.first);
  const networks = head.networks.map((each, i) => new Network(each, prefixed(columns, `n${i}.`)));
  return head.scenes.map((each, i) => new Scene(i, each, networks[each.network]!, prefixed(columns, `s${i}.`)));
}

export function addTransfers(scenes: Scene[], columns: Columns): void {
  for (const scene of scenes) scene.transfers = new Transfers(scene.head, prefixed(columns, `s${scene.index}.`));
}
