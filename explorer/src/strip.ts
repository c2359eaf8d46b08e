// Use over time: a row for each link or each NPU. Drawn once for a window of time, by the most of what
// falls together, never by its mean: a mean hides that a link idles. Only the cursor moves with the time.
import { colours, theme } from "./colour";
import { sized, time } from "./dom";
import type { Scene } from "./model";

const GUTTER = 64;
const FOOT = 18;

export class Strip {
  readonly canvas: HTMLCanvasElement; readonly cursor: HTMLElement; readonly bound: HTMLElement;
  private width = 0; private height = 0;
  /** What is in each row: links in the order of their bundles, or NPUs. */
  private order: Int32Array;
  private rows = 0;

  constructor(readonly scene: Scene, readonly holder: HTMLElement, public what: "links" | "npus", readonly total: number) {
    this.canvas = holder.appendChild(document.createElement("canvas"));
    this.canvas.setAttribute("role", "img");
    this.bound = holder.appendChild(document.createElement("i"));
    this.bound.className = "bound";
    this.bound.title = `No plan is faster than the bound: ${time(scene.head.bound_ps)}`;
    this.cursor = holder.appendChild(document.createElement("i"));
    this.cursor.className = "cursor";
    const { bundle, head } = scene.network;
    this.order = Int32Array.from({ length: head.links }, (_, l) => l).sort((a, b) => bundle[a]! - bundle[b]! || a - b);
  }

  /** The window of time that is shown [ps]. */
  private window: [number, number] = [0, 1];

  private plotWidth(): number {
    return Math.max(1, this.width - GUTTER - 2);
  }

  draw(window: [number, number] | null): void {
    this.window = window ?? [0, this.total || 1];
    const { g, width, height, ratio } = sized(this.canvas), of = theme(), table = colours();
    this.width = width; this.height = height;
    const { head } = this.scene.network;
    this.rows = this.what === "links" ? head.links : head.npus;
    this.canvas.setAttribute("aria-label", `Use over time, a row for each ${this.what === "links" ? "link" : "NPU"} of ${this.scene.head.title}`);
    const wide = Math.max(1, Math.round(this.plotWidth() * ratio)), high = Math.max(1, Math.round((height - FOOT) * ratio));
    const tones = this.what === "links" ? this.linkTones(wide, high) : this.npuTones(wide, high);
    const image = g.createImageData(wide, high), words = new Uint32Array(image.data.buffer);
    const gap = high / this.rows >= 5 * ratio;
    for (let y = 0; y < high; y++) {
      const isGap = gap && Math.floor(y * this.rows / high) !== Math.floor((y + ratio) * this.rows / high);
      for (let x = 0; x < wide; x++) { const tone = tones[y * wide + x]!; words[y * wide + x] = isGap || tone === NOTHING ? 0 : table[tone]!; }
    }
    g.putImageData(image, Math.round(GUTTER * ratio), 0);
    g.font = "10px system-ui, sans-serif"; g.fillStyle = of.faint; g.textBaseline = "middle";
    const row = (height - FOOT) / this.rows, each = Math.max(1, Math.ceil(11 / row));
    g.textAlign = "right";
    if (each <= Math.max(1, this.rows / 3)) for (let i = 0; i < this.rows; i += each) g.fillText(this.label(i), GUTTER - 4, (i + 0.5) * row, GUTTER - 6);
    else g.fillText(`${this.rows} ${this.what}`, GUTTER - 4, (height - FOOT) / 2);
    g.textAlign = "center"; g.textBaseline = "alphabetic";
    for (let i = 0; i <= 4; i++) {
      const x = GUTTER + this.plotWidth() * i / 4;
      g.textAlign = i === 0 ? "left" : i === 4 ? "right" : "center";
      g.fillText(time(this.window[0] + (this.window[1] - this.window[0]) * i / 4), x, height - 5);
      g.fillRect(Math.min(x, width - 1), height - FOOT, 1, 3);
    }
    this.place(this.bound, this.scene.head.bound_ps);
  }

  private label(row: number): string {
    const { names, src, dst } = this.scene.network;
    if (this.what === "npus") return names[row]!;
    const l = this.order[row]!;
    return `${names[src[l]!]}→${names[dst[l]!]}`;
  }

  private place(line: HTMLElement, ps: number): void {
    const share = (ps - this.window[0]) / (this.window[1] - this.window[0]);
    line.hidden = share < 0 || share > 1;
    line.style.transform = `translateX(${GUTTER + share * this.plotWidth()}px)`;
  }

  moveCursor(ps: number): void {
    this.place(this.cursor, ps);
  }

  moment(px: number): number {
    const share = Math.max(0, Math.min(1, (px - GUTTER) / this.plotWidth()));
    return this.window[0] + share * (this.window[1] - this.window[0]);
  }

  /** The link or NPU of a row of pixels. */
  item(py: number): number {
    const row = Math.max(0, Math.min(this.rows - 1, Math.floor(py / (this.height - FOOT) * this.rows)));
    return this.what === "links" ? this.order[row]! : row;
  }

  /** First and last bin of each column of pixels; -1 behind the end of the run. */
  private columns(wide: number): [Int32Array, Int32Array] {
    const { bins, time_ps } = this.scene.head, [w0, w1] = this.window;
    const first = new Int32Array(wide), last = new Int32Array(wide);
    for (let x = 0; x < wide; x++) {
      const a = w0 + (w1 - w0) * x / wide, b = w0 + (w1 - w0) * (x + 1) / wide;
      if (a >= time_ps) { first[x] = last[x] = -1; continue; }
      first[x] = Math.floor(a / time_ps * bins);
      last[x] = Math.max(first[x]!, Math.min(bins - 1, Math.ceil(b / time_ps * bins) - 1));
    }
    return [first, last];
  }

  private linkTones(wide: number, high: number): Uint16Array {
    const exact = this.exact(wide);
    if (exact) return this.merged(wide, high, exact.use, exact.phase);
    const { heat, phases, head } = this.scene, { bins } = head, rows = this.rows;
    const out = new Uint16Array(wide * high), [first, last] = this.columns(wide);
    const most = new Uint8Array(bins), whose = new Int32Array(bins);
    for (let y = 0; y < high; y++) {
      const a = Math.floor(y * rows / high), b = Math.max(a + 1, Math.floor((y + 1) * rows / high));
      if (y && b === a + 1 && Math.floor((y - 1) * rows / high) === a && Math.floor(y * rows / high) === a) {
        out.copyWithin(y * wide, (y - 1) * wide, y * wide);
        continue;
      }
      // The most of each bin first, in the order in which bins lie in memory; then that of each column.
      most.fill(0);
      for (let row = a; row < b; row++) {
        const base = this.order[row]! * bins;
        for (let i = 0; i < bins; i++) if (heat[base + i]! > most[i]!) { most[i] = heat[base + i]!; whose[i] = base + i; }
      }
      for (let x = 0; x < wide; x++) {
        if (first[x]! < 0) { out[y * wide + x] = NOTHING; continue; }
        let at = first[x]!;
        for (let i = at + 1; i <= last[x]!; i++) if (most[i]! > most[at]!) at = i;
        out[y * wide + x] = most[at] ? (phases ? phases[whose[at]!]! : head.phase) * 256 + most[at]! : 0;
      }
    }
    return out;
  }

  /** The most of what shares a row of pixels, of columns that are a pixel wide. */
  private merged(wide: number, high: number, use: Uint8Array, phase: Uint8Array): Uint16Array {
    const out = new Uint16Array(wide * high), rows = this.rows, [first] = this.columns(wide);
    for (let y = 0; y < high; y++) {
      const a = Math.floor(y * rows / high), b = Math.max(a + 1, Math.floor((y + 1) * rows / high));
      for (let row = a; row < b; row++) {
        const base = this.order[row]! * wide;
        for (let x = 0; x < wide; x++) if (use[base + x]! > (out[y * wide + x]! & 255)) out[y * wide + x] = phase[base + x]! << 8 | use[base + x]!;
      }
      for (let x = 0; x < wide; x++) if (first[x]! < 0) out[y * wide + x] = NOTHING;
    }
    return out;
  }

  /** Counts stays again, to the pixel, where a window is finer than the page's bins. */
  private exact(wide: number): { use: Uint8Array; phase: Uint8Array } | null {
    const moved = this.scene.transfers, [w0, w1] = this.window, { time_ps, bins, unit_ps } = this.scene.head;
    const { links } = this.scene.network.head;
    if (!moved || (w1 - w0) / wide >= time_ps / bins || links * wide > 24e6) return null;
    const use = new Float32Array(links * wide), sums = new Float32Array(links * wide);
    const scale = unit_ps * wide / (w1 - w0), shift = w0 * wide / (w1 - w0);
    const { stayLink, stayStart, stayLength, stayTransfer, op } = moved;
    const low = w0 / unit_ps, high = w1 / unit_ps;
    for (let s = 0; s < stayLink.length; s++) {
      const begin = stayStart[s]!;
      if (begin >= high || begin + stayLength[s]! <= low) continue;
      const a = Math.max(0, begin * scale - shift), b = Math.min(wide, (begin + stayLength[s]!) * scale - shift);
      if (a >= b) continue;
      const base = stayLink[s]! * wide, sum = op[stayTransfer[s]!] === 1;
      for (let x = Math.floor(a); x < b; x++) {
        const part = Math.min(b, x + 1) - Math.max(a, x);
        use[base + x]! += part;
        if (sum) sums[base + x]! += part;
      }
    }
    const used = new Uint8Array(use.length), phase = new Uint8Array(use.length);
    for (let i = 0; i < use.length; i++) {
      const each = use[i]!;
      if (each <= 0) continue;
      used[i] = Math.min(255, Math.ceil(255 * each - 1e-3));
      phase[i] = Math.round(15 * Math.min(1, sums[i]! / each));
    }
    return { use: used, phase };
  }

  private npuTones(wide: number, high: number): Uint16Array {
    const { network: { src, dst, head: { npus, links } }, head } = this.scene, { bins } = head;
    const out = new Uint16Array(wide * high), [first, last] = this.columns(wide);
    // The share of an NPU's links that are busy, and their phase.
    const use = new Float32Array(npus * bins), phase = new Float32Array(npus * bins), degree = new Int32Array(npus);
    for (let l = 0; l < links; l++)
      for (const d of [src[l]!, dst[l]!]) {
        if (d >= npus) continue;
        degree[d]!++;
        for (let b = 0; b < bins; b++) {
          const tone = this.scene.tone(l, b), u = tone & 255;
          use[d * bins + b]! += u;
          phase[d * bins + b]! += u * (tone >> 8);
        }
      }
    const rows = npus;
    for (let y = 0; y < high; y++) {
      const a = Math.floor(y * rows / high), b = Math.max(a + 1, Math.floor((y + 1) * rows / high));
      for (let x = 0; x < wide; x++) {
        if (first[x]! < 0) { out[y * wide + x] = NOTHING; continue; }
        let most = 0, tone = 0;
        for (let d = a; d < b; d++)
          for (let i = d * bins + first[x]!; i <= d * bins + last[x]!; i++) {
            const share = use[i]! / Math.max(1, degree[d]!);
            if (share > most) { most = share; tone = Math.round(phase[i]! / use[i]!) * 256 + Math.ceil(share); }
          }
        out[y * wide + x] = tone;
      }
    }
    return out;
  }

  toSvg(): string {
    return `<image width="${this.width}" height="${this.height}" href="${this.canvas.toDataURL("image/png")}"/>`;
  }
}

const NOTHING = 0xffff;
