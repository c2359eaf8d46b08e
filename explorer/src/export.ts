// Pictures for papers, and spans for Perfetto.
import { theme } from "./colour";
import { time } from "./dom";
import type { Scene } from "./model";
import type { NetworkView } from "./network";
import type { Strip } from "./strip";

const GAP = 16, HEAD = 22;

/** All networks and strips of the page, at a moment, as one drawing. */
export function composed(views: NetworkView[], strips: Strip[], titles: string[], ps: number): string {
  const of = theme(), parts: string[] = [];
  let left = 0, high = 0;
  views.forEach((view, i) => {
    const { body, width, height } = view.toSvg(ps), strip = strips[i]!.canvas;
    const title = `${titles[i]!}, at ${time(ps)}`.replace(/[&<>]/g, (c) => `&#${c.charCodeAt(0)};`);
    parts.push(`<g transform="translate(${left},0)"><text y="14" font-size="13" fill="${of.ink}">${title}</text>`,
      `<svg y="${HEAD}" width="${width}" height="${height}">${body}</svg>`,
      `<g transform="translate(0,${HEAD + height + 8})">${strips[i]!.toSvg()}</g></g>`);
    left += width + GAP;
    high = Math.max(high, HEAD + height + 8 + strip.clientHeight);
  });
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${left - GAP}" height="${high}" font-family="system-ui, sans-serif">\n<rect width="100%" height="100%" fill="${of.paper}"/>\n${parts.join("\n")}\n</svg>\n`;
}

/** The same as an image, twice as fine. */
export async function png(views: NetworkView[], strips: Strip[], titles: string[], ps: number): Promise<Blob> {
  return rastered(composed(views, strips, titles, ps));
}

export async function rastered(drawing: string): Promise<Blob> {
  const image = new Image();
  image.src = URL.createObjectURL(new Blob([drawing], { type: "image/svg+xml" }));
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = 2 * image.width; canvas.height = 2 * image.height;
  canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((resolve, reject) => canvas.toBlob((blob) => blob ? resolve(blob) : reject(new Error("too large for a picture")), "image/png"));
}

/** Trace events: a process for each device, a track for each link that leaves it. */
export function perfetto(scene: Scene): string[] {
  const moved = scene.transfers!, { network, head } = scene, parts: string[] = ['{"displayTimeUnit":"ns","traceEvents":[\n'];
  const named = new Set<number>();
  for (let l = 0; l < network.head.links; l++) {
    const pid = network.src[l]!;
    if (!named.has(pid)) parts.push(JSON.stringify({ ph: "M", pid, name: "process_name", args: { name: network.names[pid] } }) + ",\n");
    named.add(pid);
    parts.push(JSON.stringify({ ph: "M", pid, tid: l, name: "thread_name", args: { name: `to ${network.names[network.dst[l]!]}` } }) + ",\n");
  }
  for (let s = 0; s < moved.stayLink.length; s++) {
    const i = moved.stayTransfer[s]!, l = moved.stayLink[s]!;
    parts.push(JSON.stringify({ ph: "X", pid: network.src[l], tid: l, ts: moved.stayStart[s]! * head.unit_ps / 1e6, dur: moved.stayLength[s]! * head.unit_ps / 1e6,
      name: `chunk ${moved.chunk[i]}`, cat: moved.op[i] ? "reduce" : "copy", args: { transfer: i, bytes: moved.bytes(i) } }) + (s + 1 < moved.stayLink.length ? ",\n" : "\n"));
  }
  parts.push("]}\n");
  return parts;
}

const PERFETTO = "https://ui.perfetto.dev";

/** Opens ui.perfetto.dev with spans, once its window answers; nothing is asked for before a reader wants that. */
export function openPerfetto(title: string, parts: string[]): void {
  const other = window.open(PERFETTO);
  if (!other) return;
  const timer = setInterval(() => other.postMessage("PING", PERFETTO), 50);
  const answered = (event: MessageEvent) => {
    if (event.source !== other || event.data !== "PONG") return;
    clearInterval(timer);
    window.removeEventListener("message", answered);
    const buffer = new TextEncoder().encode(parts.join("")).buffer;
    other.postMessage({ perfetto: { buffer, title } }, PERFETTO, [buffer]);
  };
  window.addEventListener("message", answered);
  setTimeout(() => clearInterval(timer), 60_000);
}
