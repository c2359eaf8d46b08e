// The network: links as lines by its structure, coloured by their use at the moment under the cursor.
//
// Few links are stroked; many are written pixel by pixel from a map of which link owns which pixel, which
// costs the same at any number of links. Where there is no room for links, boxes show bundles of them.
import { colours, css, theme } from "./colour";
import { sized } from "./dom";
import type { Scene } from "./model";

const STROKED = 420;
const LEAST_UNIT = 13;
const MOST_LINKS = 30_000;
const BENT = 8;


export class NetworkView {
  readonly base: HTMLCanvasElement; readonly marks: HTMLCanvasElement;
  /** Pixels of a unit, and where the origin is. */
  private k = 1; private left = 0; private top = 0;
  private width = 0; private height = 0; private ratio = 1;
  /** Whether single links are drawn, or bundles. */
  detailed = true;
  /** Points of each link's line in pixels, from `from[l]` on; -1 where it is out of sight. */
  private points = new Float32Array(0); private from = new Int32Array(0);
  private owner = new Int32Array(0);
  private pixels = new Int32Array(0); private owners = new Int32Array(0);
  private image: ImageData | null = null; private words = new Uint32Array(0);
  private tones = new Uint32Array(0);
  private bundles: { x: number; y: number; width: number; height: number; links: number[]; label: string; box: number }[] = [];
  private load: Uint8Array | null = null;
  private fixed: HTMLCanvasElement = document.createElement("canvas");

  constructor(readonly scene: Scene, readonly holder: HTMLElement) {
    this.base = holder.appendChild(document.createElement("canvas"));
    this.marks = holder.appendChild(document.createElement("canvas"));
    // Pixels that are written by hand are best kept where they are written.
    this.base.getContext("2d", { willReadFrequently: scene.network.head.links > STROKED, alpha: false });
    this.base.setAttribute("role", "img");
    this.base.setAttribute("aria-label", `Network ${scene.network.head.name}; links coloured by use at the cursor's time. The tab Links has it as a table.`);
    this.marks.className = "marks";
    this.marks.setAttribute("aria-hidden", "true");
  }

  /** What can be seen at least: all boxes and devices. */
  extent(): [number, number, number, number] {
    const { head, x, y } = this.scene.network;
    let [x0, y0, x1, y1] = [Infinity, Infinity, -Infinity, -Infinity];
    for (const [bx, by, w, h] of head.boxes) {
      x0 = Math.min(x0, bx); y0 = Math.min(y0, by); x1 = Math.max(x1, bx + w); y1 = Math.max(y1, by + h);
    }
    for (let d = 0; d < x.length; d++) {
      x0 = Math.min(x0, x[d]! - 0.6); x1 = Math.max(x1, x[d]! + 0.6);
      y0 = Math.min(y0, y[d]! - 0.6); y1 = Math.max(y1, y[d]! + 0.6);
    }
    return [x0, y0, x1, y1];
  }

  /** Lays everything out in pixels; `view` is the middle and the height of what is shown, in units. */
  arrange(view: [number, number, number] | null): void {
    const { width, height, ratio } = sized(this.base);
    this.width = width; this.height = height; this.ratio = ratio;
    const [x0, y0, x1, y1] = this.extent();
    if (view) {
      this.k = height / view[2];
      this.left = width / 2 - view[0] * this.k;
      this.top = height / 2 - view[1] * this.k;
    } else {
      this.k = Math.min(110, (width - 8) / (x1 - x0), (height - 8) / (y1 - y0));
      this.left = width / 2 - (x0 + x1) / 2 * this.k;
      this.top = height / 2 - (y0 + y1) / 2 * this.k;
    }
    const { head } = this.scene.network;
    this.detailed = (this.k >= LEAST_UNIT || head.links <= STROKED) && (head.links <= MOST_LINKS || this.k >= 2 * LEAST_UNIT || view !== null);
    this.bundles = [];
    if (this.detailed) this.trace();
    else this.bundle();
    this.tones = new Uint32Array(head.links);
    this.drawFixed();
    if (this.isRaster) this.rasterize();
    else { this.image = null; this.pixels = new Int32Array(0); if (this.detailed) this.rasterize(); }
  }

  get view(): [number, number, number] {
    return [(this.width / 2 - this.left) / this.k, (this.height / 2 - this.top) / this.k, this.height / this.k];
  }

  get isRaster(): boolean {
    return this.detailed && this.scene.network.head.links > STROKED;
  }

  private get radius(): number {
    return Math.max(2, Math.min(10, 0.16 * this.k));
  }

  private lineWidth(l: number): number {
    const { width, head } = this.scene.network, crowd = Math.max(1, head.links / head.devices / 8);
    return Math.max(this.k < 20 ? 1.6 : 1.3, Math.min(5, 0.085 * this.k) / crowd) * (this.k < 20 || crowd > 1 ? 1 : width[l]!);
  }

  /** Computes every link's line: from edge to edge of its devices, aside by its lane, bent where it must be. */
  private trace(): void {
    const { head, ways, lane, stub } = this.scene.network;
    this.from = new Int32Array(head.links + 1);
    const points: number[] = [];
    const radius = this.radius;
    for (let l = 0; l < head.links; l++) {
      this.from[l] = points.length;
      let ax = ways[5 * l]! * this.k + this.left, ay = ways[5 * l + 1]! * this.k + this.top;
      let bx = ways[5 * l + 2]! * this.k + this.left, by = ways[5 * l + 3]! * this.k + this.top;
      const bend = ways[5 * l + 4]! * this.k;
      const reach = Math.abs(bend) + 12;
      if (Math.max(ax, bx) < -reach || Math.min(ax, bx) > this.width + reach || Math.max(ay, by) < -reach || Math.min(ay, by) > this.height + reach) continue;
      const length = Math.hypot(bx - ax, by - ay) || 1, ux = (bx - ax) / length, uy = (by - ay) / length;
      const w = this.lineWidth(l), n = lane[l]!;
      // The first lane of a stub is its middle; all others lie to the right of where they lead.
      const aside = n === 0 ? 0 : (n - 0.38) * w * 1.15;
      const trim = stub[l] ? 0 : Math.min(radius + 1, 0.3 * length);
      ax += ux * trim - uy * aside; ay += uy * trim + ux * aside;
      bx -= ux * trim + uy * aside; by -= uy * trim - ux * aside;
      if (!bend) { points.push(ax, ay, bx, by); continue; }
      const mx = (ax + bx) / 2 - uy * bend * 2, my = (ay + by) / 2 + ux * bend * 2;
      for (let i = 0; i <= BENT; i++) {
        const s = i / BENT, r = 1 - s;
        points.push(r * r * ax + 2 * r * s * mx + s * s * bx, r * r * ay + 2 * r * s * my + s * s * by);
      }
    }
    this.from[head.links] = points.length;
    this.points = Float32Array.from(points);
  }

  /** Writes which link owns which pixel; later links lie on top. */
  private rasterize(): void {
    const { ratio } = this, w = this.base.width, h = this.base.height;
    const owner = this.owner = new Int32Array(w * h).fill(-1);
    const { links } = this.scene.network.head;
    for (let l = 0; l < links; l++) {
      const half = this.lineWidth(l) * ratio / 2;
      for (let p = this.from[l]!; p + 3 < this.from[l + 1]!; p += 2)
        segment(owner, w, h, l, this.points[p]! * ratio, this.points[p + 1]! * ratio, this.points[p + 2]! * ratio, this.points[p + 3]! * ratio, half);
    }
    if (!this.isRaster) return;
    const pixels: number[] = [], owners: number[] = [];
    for (let i = 0; i < owner.length; i++) if (owner[i]! >= 0) { pixels.push(i); owners.push(owner[i]!); }
    this.pixels = Int32Array.from(pixels);
    this.owners = Int32Array.from(owners);
    // Boxes and devices lie under the links, and are drawn once.
    const g = this.fixed.getContext("2d", { willReadFrequently: true })!;
    this.image = g.getImageData(0, 0, w, h);
    this.words = new Uint32Array(this.image.data.buffer);
  }

  /** How many pixels each link owns; for tests. */
  owned(): Int32Array {
    const sums = new Int32Array(this.scene.network.head.links);
    for (const l of this.owner) if (l >= 0) sums[l]!++;
    return sums;
  }

  private drawFixed(): void {
    const canvas = this.fixed, of = theme(), { head } = this.scene.network;
    canvas.width = this.base.width; canvas.height = this.base.height;
    const g = canvas.getContext("2d", { willReadFrequently: true })!;
    g.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    g.fillStyle = of.paper; g.fillRect(0, 0, this.width, this.height);
    g.font = "11px system-ui, sans-serif"; g.textBaseline = "alphabetic";
    for (const [box, [bx, by, bw, bh, label]] of head.boxes.entries()) {
      const left = bx * this.k + this.left, top = by * this.k + this.top, wide = bw * this.k, high = bh * this.k;
      if (left > this.width || top > this.height || left + wide < 0 || top + high < 0) continue;
      g.fillStyle = of.box;
      g.beginPath(); g.roundRect(left, top, wide, high, Math.min(8, this.k * 0.3)); g.fill();
      const bars = this.bundles.filter((each) => each.box === box).length;
      if (label && wide > 40 && (this.detailed || high >= 17 + 7 * bars)) {
        g.fillStyle = of.faint;
        const free = this.detailed ? 12 : 14;
        if (this.k >= LEAST_UNIT || !this.detailed) g.fillText(label, left + 5, top + Math.min(free, Math.max(9, this.k * 0.4)), wide - 8);
      }
    }
    if (!this.detailed) return;
    this.dots(g);
    if (this.isRaster) this.name(g);
  }

  /** Writes the names of devices where there is room for them: outwards where they lie on a circle. */
  private name(g: CanvasRenderingContext2D): void {
    const { names, x, y, head } = this.scene.network, of = theme(), r = this.radius;
    if (this.k < 34) return;
    g.font = "11px system-ui, sans-serif"; g.textAlign = "center"; g.lineWidth = 3; g.lineJoin = "round";
    const box = head.boxes[0]!, isCircle = head.boxes.length === 1 && head.devices === head.npus && head.npus <= 64;
    for (let d = 0; d < x.length; d++) {
      if (names[d]!.length * 6.2 > this.k * 0.94) continue;
      const px = x[d]! * this.k + this.left, py = y[d]! * this.k + this.top;
      const dx = x[d]! - (box[0] + box[2] / 2), dy = y[d]! - (box[1] + box[3] / 2), far = Math.hypot(dx, dy) || 1;
      const away = r + 6 + 3 * names[d]!.length * Math.abs(dx / far);
      const [tx, ty] = isCircle ? [px + away * dx / far, py + 4 + (r + 10) * dy / far] : [px, py + r + 11];
      g.strokeStyle = of.paper; g.strokeText(names[d]!, tx, ty);
      g.fillStyle = of.ink; g.fillText(names[d]!, tx, ty);
    }
    g.textAlign = "start";
  }

  private bundle(): void {
    const { head, bundle } = this.scene.network;
    const links: number[][] = head.bundles.map(() => []);
    for (let l = 0; l < head.links; l++) links[bundle[l]!]!.push(l);
    const inBox: number[][] = head.boxes.map(() => []);
    head.bundles.forEach(([box], b) => { if (links[b]!.length) inBox[box]?.push(b); });
    this.bundles = [];
    inBox.forEach((own, box) => {
      const [bx, by, bw, bh] = head.boxes[box]!;
      const label = bh * this.k >= 17 + 7 * own.length ? 17 : 3;
      const left = bx * this.k + this.left + 4, top = by * this.k + this.top + label, wide = bw * this.k - 8, high = bh * this.k - label - 3;
      const step = high / Math.max(own.length, 1);
      own.forEach((b, i) => this.bundles.push({
        x: left, y: top + i * step, width: Math.max(2, wide), height: Math.max(1, Math.min(18, step - Math.min(2, step / 4))), links: links[b]!, label: head.bundles[b]![1], box,
      }));
    });
  }

  /** Colours links by how much each carries in all, not by the moment. */
  byLoad(on: boolean): void {
    this.load = null;
    if (!on) return;
    const { bytes, network: { rate } } = this.scene;
    const times = Float64Array.from(rate, (each, l) => bytes[l]! / each);
    const most = times.reduce((high, each) => Math.max(high, each), 0) || 1;
    this.load = Uint8Array.from(times, (each) => Math.ceil(255 * each / most));
  }

  private tone(l: number, bin: number): number {
    return this.load ? 15 * 256 + this.load[l]! : this.scene.tone(l, bin);
  }

  draw(ps: number): void {
    const table = colours(), bin = this.scene.bin(ps), g = this.base.getContext("2d")!;
    if (!this.detailed) { this.drawBundles(g, table, bin); return; }
    const { links } = this.scene.network.head, tones = this.tones, now = this.load ?? this.scene.tonesAt(bin), base = this.load ? 15 << 8 : 0;
    for (let l = 0; l < links; l++) tones[l] = table[base | now[l]!]!;
    if (this.isRaster) {
      const { words, pixels, owners } = this;
      for (let i = 0; i < pixels.length; i++) words[pixels[i]!] = tones[owners[i]!]!;
      g.putImageData(this.image!, 0, 0);
      return;
    }
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.drawImage(this.fixed, 0, 0);
    g.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    for (let l = 0; l < links; l++) this.stroke(g, l, css(tones[l]!), this.lineWidth(l), true);
    this.dots(g);
    this.name(g);
  }

  /** Draws the devices over the ends of lines. */
  private dots(g: CanvasRenderingContext2D): void {
    const { head, x, y } = this.scene.network, of = theme(), r = this.radius;
    for (let d = 0; d < x.length; d++) {
      const px = x[d]! * this.k + this.left, py = y[d]! * this.k + this.top;
      if (px < -r || py < -r || px > this.width + r || py > this.height + r) continue;
      g.fillStyle = d < head.npus ? of.npu : of.device;
      g.beginPath();
      if (d < head.npus) g.arc(px, py, r, 0, 7);
      else g.rect(px - r, py - r * 0.8, 2 * r, 1.6 * r);
      g.fill();
    }
  }

  private stroke(g: CanvasRenderingContext2D, l: number, colour: string, width: number, arrow: boolean): void {
    const [a, b] = [this.from[l]!, this.from[l + 1]!], p = this.points;
    if (b - a < 4) return;
    g.strokeStyle = colour; g.lineWidth = width; g.lineCap = "butt";
    g.beginPath(); g.moveTo(p[a]!, p[a + 1]!);
    for (let i = a + 2; i < b; i += 2) g.lineTo(p[i]!, p[i + 1]!);
    g.stroke();
    if (!arrow || this.k < 24) return;
    const [x, y] = [p[b - 2]!, p[b - 1]!], angle = Math.atan2(y - p[b - 3]!, x - p[b - 4]!);
    if (Math.hypot(x - p[a]!, y - p[a + 1]!) < 3 * width) return;
    const size = width * 1.5;
    g.fillStyle = colour; g.beginPath(); g.moveTo(x + Math.cos(angle) * size * 0.4, y + Math.sin(angle) * size * 0.4);
    for (const turn of [2.6, -2.6]) g.lineTo(x + size * Math.cos(angle + turn), y + size * Math.sin(angle + turn));
    g.fill();
  }

  private drawBundles(g: CanvasRenderingContext2D, table: Uint32Array, bin: number): void {
    const of = theme();
    g.setTransform(1, 0, 0, 1, 0, 0);
    g.drawImage(this.fixed, 0, 0);
    g.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    g.font = "10px system-ui, sans-serif";
    const now = this.load ?? this.scene.tonesAt(bin), base = this.load ? 15 << 8 : 0;
    for (const each of this.bundles) {
      const { links } = each;
      let sum = 0, most = 0, phase = 0;
      for (let i = 0; i < links.length; i++) {
        const tone = base | now[links[i]!]!, use = tone & 255;
        sum += use;
        if (use > most) { most = use; phase = tone >> 8; }
      }
      const mean = sum / each.links.length / 255;
      g.fillStyle = css(table[0]!); g.fillRect(each.x, each.y, each.width, each.height);
      g.fillStyle = css(table[phase * 256 + Math.round(most)]!); g.fillRect(each.x, each.y, each.width * mean, each.height);
      g.fillStyle = of.ink; g.fillRect(each.x + (each.width - 1.5) * most / 255, each.y, 1.5, each.height);
      if (each.height >= 11 && each.width > 60) { g.fillStyle = mean > 0.3 ? "#fff" : of.ink; g.fillText(each.label, each.x + 4, each.y + each.height / 2 + 3.5, each.width - 8); }
    }
  }

  /** Draws what is picked out: links, devices, a cut, and how far each NPU has got with a chunk. */
  mark(links: Iterable<number>, devices: Iterable<number>, cut: { links: number[]; devices: number[] } | null, shares: Map<number, number> | null): void {
    // The size is known: asking for it would lay out all that has changed beside.
    const { g } = sized(this.marks, this.width, this.height), of = theme(), { x, y } = this.scene.network, r = this.radius;
    if (!this.detailed) return;
    const seen = (d: number): [number, number] => [x[d]! * this.k + this.left, y[d]! * this.k + this.top];
    if (cut) {
      g.setLineDash([4, 3]);
      for (const l of cut.links) this.stroke(g, l, of.cut, 1.6, false);
      g.setLineDash([]);
      g.strokeStyle = of.cut; g.lineWidth = 2;
      for (const d of cut.devices) { const [px, py] = seen(d); g.beginPath(); g.arc(px, py, r + 3.5, 0, 7); g.stroke(); }
    }
    for (const l of links) this.stroke(g, l, of.mark, Math.max(2, this.lineWidth(l) * 0.6), true);
    if (shares) for (const [d, share] of shares) {
      const [px, py] = seen(d);
      g.fillStyle = of.paper; g.beginPath(); g.arc(px, py, r, 0, 7); g.fill();
      g.fillStyle = share >= 1 ? of.cut : of.mark;
      g.beginPath(); g.moveTo(px, py); g.arc(px, py, r, -Math.PI / 2, -Math.PI / 2 + 2 * Math.PI * Math.min(1, share)); g.fill();
      g.strokeStyle = of.npu; g.lineWidth = 1; g.beginPath(); g.arc(px, py, r, 0, 7); g.stroke();
    }
    g.strokeStyle = of.mark; g.lineWidth = 2;
    for (const d of devices) { const [px, py] = seen(d); g.beginPath(); g.arc(px, py, r + 3, 0, 7); g.stroke(); }
  }

  /** Draws ribbons along links, side by side where a link has several; those are counted. */
  ribbons(parts: Map<number, string[]>): void {
    const { g } = sized(this.marks, this.width, this.height), of = theme(), { points, from } = this;
    if (!this.detailed) return;
    const shared: [number, number, number][] = [];
    for (const [l, colours] of parts) {
      const a = from[l]!, b = from[l + 1]!;
      if (b - a < 4) continue;
      const dx = points[b - 2]! - points[a]!, dy = points[b - 1]! - points[a + 1]!, length = Math.hypot(dx, dy) || 1;
      const each = Math.max(1.2, Math.min(3, 9 / colours.length));
      g.lineWidth = each;
      colours.forEach((colour, i) => {
        const aside = (i - (colours.length - 1) / 2) * each, ox = -dy / length * aside, oy = dx / length * aside;
        g.strokeStyle = colour;
        g.beginPath();
        for (let p = a; p + 1 < b; p += 2) g.lineTo(points[p]! + ox, points[p + 1]! + oy);
        g.stroke();
      });
      // A third of the way: in the middle, lines of a Clos cross.
      if (colours.length > 1) shared.push([points[a]! + dx * 0.3, points[a + 1]! + dy * 0.3, colours.length]);
    }
    g.font = "600 10px system-ui, sans-serif"; g.textAlign = "center"; g.textBaseline = "middle";
    for (const [px, py, many] of shared) {
      g.fillStyle = of.mark; g.beginPath(); g.arc(px, py, 7, 0, 7); g.fill();
      g.fillStyle = of.paper; g.fillText(String(many), px, py + 0.5);
    }
  }

  /** Links within a few pixels of a point, the nearest first. */
  near(px: number, py: number): number[] {
    if (!this.detailed) {
      const hit = this.bundles.find((each) => px >= each.x && px <= each.x + each.width && py >= each.y - 1 && py <= each.y + each.height + 1);
      return hit ? [hit.links[0]!] : [];
    }
    const w = this.base.width, h = this.base.height, reach = Math.round(6 * this.ratio);
    const cx = Math.round(px * this.ratio), cy = Math.round(py * this.ratio);
    const best = new Map<number, number>();
    for (let y = Math.max(0, cy - reach); y <= Math.min(h - 1, cy + reach); y++)
      for (let x = Math.max(0, cx - reach); x <= Math.min(w - 1, cx + reach); x++) {
        const l = this.owner[y * w + x]!;
        if (l < 0) continue;
        const away = (x - cx) ** 2 + (y - cy) ** 2;
        if (away <= reach * reach && away < (best.get(l) ?? Infinity)) best.set(l, away);
      }
    return [...best].sort((a, b) => a[1] - b[1] || a[0] - b[0]).map(([l]) => l);
  }

  device(px: number, py: number): number {
    const { x, y } = this.scene.network, r = this.radius + 2;
    if (this.detailed) for (let d = 0; d < x.length; d++) if (Math.hypot(x[d]! * this.k + this.left - px, y[d]! * this.k + this.top - py) <= r) return d;
    return -1;
  }

  /** The box at a point, as a view that shows it alone. */
  box(px: number, py: number): [number, number, number] | null {
    for (const [bx, by, bw, bh] of this.scene.network.head.boxes) {
      const left = bx * this.k + this.left, top = by * this.k + this.top;
      if (px >= left && px <= left + bw * this.k && py >= top && py <= top + bh * this.k)
        return [bx + bw / 2, by + bh / 2, Math.max(bh + 1, (bw + 1) * this.height / this.width)];
    }
    return null;
  }

  /** A point in the middle of a link, in pixels of the page; for tests and for keyboards. */
  middle(l: number): [number, number] {
    const w = this.base.width;
    const own: number[] = [];
    for (let i = 0; i < this.owner.length; i++) if (this.owner[i] === l) own.push(i);
    const at = own[own.length >> 1] ?? 0;
    return [(at % w) / this.ratio, Math.floor(at / w) / this.ratio];
  }

  /** The view moved and scaled about a point. */
  zoomed(factor: number, px: number, py: number): [number, number, number] {
    const [x, y, height] = this.view, ux = (px - this.left) / this.k, uy = (py - this.top) / this.k;
    return [ux + (x - ux) / factor, uy + (y - uy) / factor, height / factor];
  }

  moved(dx: number, dy: number): [number, number, number] {
    const [x, y, height] = this.view;
    return [x - dx / this.k, y - dy / this.k, height];
  }

  /** The picture as a drawing of lines. */
  toSvg(ps: number): { body: string; width: number; height: number } {
    const table = colours(), of = theme(), bin = this.scene.bin(ps), { head, names, x, y } = this.scene.network;
    const parts: string[] = [], f = (value: number) => value.toFixed(1);
    const escaped = (text: string) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);
    parts.push(`<rect width="${f(this.width)}" height="${f(this.height)}" fill="${of.paper}"/>`);
    for (const [bx, by, bw, bh, label] of head.boxes) {
      parts.push(`<rect x="${f(bx * this.k + this.left)}" y="${f(by * this.k + this.top)}" width="${f(bw * this.k)}" height="${f(bh * this.k)}" rx="6" fill="${of.box}"/>`);
      if (label && bw * this.k > 40) parts.push(`<text x="${f(bx * this.k + this.left + 5)}" y="${f(by * this.k + this.top + 11)}" font-size="10" fill="${of.faint}">${escaped(label)}</text>`);
    }
    if (this.detailed) {
      for (let l = 0; l < head.links; l++) {
        const [a, b] = [this.from[l]!, this.from[l + 1]!];
        if (b - a < 4) continue;
        const way = Array.from({ length: (b - a) / 2 }, (_, i) => `${f(this.points[a + 2 * i]!)} ${f(this.points[a + 2 * i + 1]!)}`).join("L");
        parts.push(`<path d="M${way}" stroke="${css(table[this.tone(l, bin)]!)}" stroke-width="${f(this.lineWidth(l))}" fill="none"><title>${escaped(this.scene.network.link(l))}</title></path>`);
      }
      const r = this.radius;
      for (let d = 0; d < x.length; d++) {
        const [px, py] = [x[d]! * this.k + this.left, y[d]! * this.k + this.top];
        parts.push(d < head.npus ? `<circle cx="${f(px)}" cy="${f(py)}" r="${f(r)}" fill="${of.npu}"><title>${escaped(names[d]!)}</title></circle>`
          : `<rect x="${f(px - r)}" y="${f(py - r * 0.8)}" width="${f(2 * r)}" height="${f(1.6 * r)}" fill="${of.device}"><title>${escaped(names[d]!)}</title></rect>`);
      }
    } else for (const each of this.bundles) {
      let sum = 0, most = 0, phase = 0;
      for (const l of each.links) { const tone = this.tone(l, bin); sum += tone & 255; if ((tone & 255) > most) { most = tone & 255; phase = tone >> 8; } }
      const bar = (width: number, fill: string) => `<rect x="${f(each.x)}" y="${f(each.y)}" width="${f(width)}" height="${f(each.height)}" fill="${fill}"/>`;
      parts.push(bar(each.width, css(table[0]!)), bar(each.width * sum / each.links.length / 255, css(table[phase * 256 + most]!)));
    }
    return { body: parts.join("\n"), width: this.width, height: this.height };
  }
}

/** Fills the pixels of a thick line with its owner, a column or row of the longer axis at a time. */
function segment(owner: Int32Array, w: number, h: number, id: number, x0: number, y0: number, x1: number, y1: number, half: number): void {
  const dx = x1 - x0, dy = y1 - y0, length = Math.hypot(dx, dy);
  if (length < 0.01) return;
  const flat = Math.abs(dx) >= Math.abs(dy);
  const [a0, a1, b0, slope, reach] = flat ? [x0, x1, y0, dy / dx, half * length / Math.abs(dx)] : [y0, y1, x0, dx / dy, half * length / Math.abs(dy)];
  const limit = flat ? w : h, other = flat ? h : w;
  const from = Math.max(0, Math.round(Math.min(a0, a1))), to = Math.min(limit - 1, Math.round(Math.max(a0, a1)));
  for (let a = from; a <= to; a++) {
    const middle = b0 + (Math.min(Math.max(a, Math.min(a0, a1)), Math.max(a0, a1)) - a0) * slope;
    const low = Math.max(0, Math.ceil(middle - reach - 0.25)), high = Math.min(other - 1, Math.floor(middle + reach - 0.25));
    for (let b = low; b <= Math.max(low, high) && b < other; b++) owner[flat ? b * w + a : a * w + b] = id;
  }
}
