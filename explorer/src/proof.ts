// Who has contributed what by now: a chunk's run, replayed from its transfers alone.
import type { Scene } from "./model";

const BITS = 32;

export class Proof {
  readonly rows: number[];
  readonly participants: number[];
  /** Participants that hold the chunk, or a part of its sum, at the start. */
  readonly holders: number[];
  readonly wanted: number[];
  readonly isSum: boolean;
  readonly unit: number;
  private readonly rank = new Map<number, number>();
  private readonly words: number;
  /** Starts and ends of transfers, in order of time; what ends at a moment is there for what starts at it. */
  private readonly events: Int32Array;
  /** When each event is, by its number. */
  private readonly moments: Float64Array;

  constructor(private readonly scene: Scene, readonly chunk: number) {
    const moved = scene.transfers!;
    this.unit = scene.head.unit_ps;
    this.rows = moved.ofChunk(chunk);
    const listed = (spans: number[][]) => spans.flatMap(([a, b]) => Array.from({ length: b! - a! + 1 }, (_, i) => a! + i));
    const [reduced, holders, wanted] = scene.head.demands[moved.demand[chunk]!]!;
    this.participants = listed(scene.head.participants);
    this.holders = holders ? listed(holders) : this.participants;
    this.wanted = wanted ? listed(wanted) : this.participants;
    this.isSum = reduced === 1;
    this.participants.forEach((npu, i) => this.rank.set(npu, i));
    this.words = Math.ceil(this.participants.length / BITS);
    // Even: an end. Odd: a start. Ends come first, in the plan's order.
    const key = this.moments = new Float64Array(2 * this.rows.length), events = this.events = new Int32Array(key.length);
    this.rows.forEach((row, i) => {
      key[2 * i] = moved.start[row]! + moved.length[row]!;
      key[2 * i + 1] = moved.start[row]!;
      events[2 * i] = 2 * i;
      events[2 * i + 1] = 2 * i + 1;
    });
    events.sort((a, b) => key[a]! - key[b]! || (a & 1) - (b & 1) || a - b);
  }

  private known = { ps: NaN, held: new Map<number, Uint32Array>(), twice: new Set<number>() };
  /** What each device holds at a moment [ps]: sets of contributions, and what came twice. */
  at(ps: number): { held: Map<number, Uint32Array>; twice: Set<number> } {
    if (this.known.ps !== ps) this.known = { ps, ...this.replayed(ps) };
    return this.known;
  }

  private replayed(ps: number): { held: Map<number, Uint32Array>; twice: Set<number> } {
    const moved = this.scene.transfers!, { words, rows } = this;
    const held = new Map<number, Uint32Array>(), twice = new Set<number>();
    for (const npu of this.holders) {
      const own = new Uint32Array(words), rank = this.rank.get(npu)!;
      own[rank >> 5]! |= 1 << (rank & 31);
      held.set(npu, own);
    }
    // What is under way, and sets that nobody uses any more.
    const flying: (Uint32Array | undefined)[] = new Array(rows.length), free: Uint32Array[] = [], limit = ps / this.unit, { events, moments } = this;
    const copied = (from: Uint32Array | undefined) => {
      const made = free.pop() ?? new Uint32Array(words);
      if (from) made.set(from); else made.fill(0);
      return made;
    };
    for (let e = 0; e < events.length; e++) {
      const event = events[e]!, at = event >> 1, row = rows[at]!;
      if (moments[event]! > limit) break;
      if (event & 1) { flying[at] = copied(held.get(moved.src[row]!)); continue; }
      const came = flying[at] ?? copied(held.get(moved.src[row]!)), to = moved.dst[row]!, has = held.get(to);
      if (moved.op[row] === 1 && has) {
        let both = 0;
        for (let i = 0; i < words; i++) { both |= has[i]! & came[i]!; has[i]! |= came[i]!; }
        if (both) twice.add(to);
        free.push(came);
      } else {
        held.set(to, came);
        if (has) free.push(has);
      }
    }
    return { held, twice };
  }

  has(set: Uint32Array | undefined, npu: number): boolean {
    const rank = this.rank.get(npu);
    return set !== undefined && rank !== undefined && (set[rank >> 5]! >>> (rank & 31) & 1) === 1;
  }

  /** The first few contributions of a set. */
  first(set: Uint32Array | undefined, most: number): number[] {
    const found: number[] = [];
    if (set) for (let rank = 0; rank < this.participants.length && found.length < most; rank++) if (set[rank >> 5]! >>> (rank & 31) & 1) found.push(this.participants[rank]!);
    return found;
  }

  size(set: Uint32Array | undefined): number {
    if (!set) return 0;
    let sum = 0;
    for (let i = 0; i < set.length; i++) {
      let v = set[i]!;
      v -= v >>> 1 & 0x55555555;
      v = (v & 0x33333333) + (v >>> 2 & 0x33333333);
      sum += Math.imul((v + (v >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
    }
    return sum;
  }

  /** How many contributions make the chunk whole. */
  get needed(): number {
    return this.isSum ? this.holders.length : 1;
  }

  /** Whether, at the end, everybody who wants the chunk has each contribution exactly once. */
  holds(): boolean {
    const { held, twice } = this.replayed(Infinity);
    return twice.size === 0 && this.wanted.every((npu) => this.size(held.get(npu)) === this.needed);
  }
}
