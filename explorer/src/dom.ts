// The little of a library that the page needs: elements, texts, numbers.

type Child = Node | string | number | null | undefined | false;
type Handler = (event: never) => void;
type Attributes = Record<string, string | number | boolean | null | undefined | Handler>;

function fill(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value as EventListener);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue;
    element.append(typeof child === "number" ? String(child) : child);
  }
}

/** Makes an element; texts are texts, never markup. */
export function el<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

export function svg(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  fill(element, attributes, children);
  return element;
}

export function byId<T extends HTMLElement>(id: string): T {
  return document.getElementById(id) as T;
}

const WRITERS = [1, 2, 3].map((digits) => new Intl.NumberFormat("en", { minimumFractionDigits: digits, maximumFractionDigits: digits }));

function rounded(value: number): string {
  return WRITERS[Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2]!.format(value);
}

export function time(ps: number): string {
  const magnitude = Math.abs(ps);
  if (magnitude >= 1e12) return rounded(ps / 1e12) + " s";
  if (magnitude >= 1e9) return rounded(ps / 1e9) + " ms";
  if (magnitude >= 1e6) return rounded(ps / 1e6) + " us";
  if (magnitude >= 1e3) return rounded(ps / 1e3) + " ns";
  return Math.round(ps) + " ps";
}

const FOUR = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

export function bytes(value: number): string {
  for (const [size, unit] of [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]] as const)
    if (value >= size) return FOUR.format(value / size) + " " + unit;
  return value + " B";
}

/** A size that was asked for: `64 KiB` where that is a whole number, as the command line writes it. */
export function sizeText(value: number): string {
  for (const [factor, unit] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]] as const)
    if (value >= factor && value % factor === 0 && value % 1000) return value / factor + " " + unit;
  return bytes(value);
}

export function rate(value: number): string {
  return bytes(value) + "/s";
}

export function percent(share: number): string {
  return (100 * share).toFixed(1) + " %";
}

export function count(value: number, noun: string): string {
  return `${value.toLocaleString("en")} ${noun}${value === 1 ? "" : "s"}`;
}

/** A canvas as large as its box, in device pixels. */
export function sized(canvas: HTMLCanvasElement, width = canvas.clientWidth, height = canvas.clientHeight): { g: CanvasRenderingContext2D; width: number; height: number; ratio: number } {
  const ratio = Math.min(2, devicePixelRatio || 1);
  const [w, h] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== w || canvas.height !== h) { canvas.width = w; canvas.height = h; }
  const g = canvas.getContext("2d")!;
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.clearRect(0, 0, width, height);
  return { g, width, height, ratio };
}

export function save(name: string, blob: Blob): void {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}
