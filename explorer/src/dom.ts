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

type Units = readonly (readonly [factor: number, unit: string])[];
const TIMES: Units = [[1e12, "s"], [1e9, "ms"], [1e6, "us"], [1e3, "ns"], [1, "ps"]];
const SIZES: Units = [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]];

/** A quantity as the command line writes it: three decimals at most, what is half-way goes to the even digit. */
function scaled(value: number, units: Units): string {
  const [factor, unit] = units.find(([least]) => Math.abs(value) >= least) ?? units[units.length - 1]!;
  const number = value / factor, below = Math.floor(number * 1000);
  const isHalf = Math.abs(number * 16 % 2) === 1;
  const text = isHalf && below % 2 === 0 ? (below / 1000).toFixed(3) : number.toFixed(3);
  return text.replace(/\.?0+$/, "") + " " + unit;
}

export function time(ps: number): string {
  return scaled(Math.round(ps), TIMES);
}

/** A size: `64 KiB` where that is a whole number of four digits at most. */
export function bytes(value: number): string {
  for (const [factor, unit] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]] as const)
    if (value >= factor && value < 10_000 * factor && value % factor === 0 && value % 1000) return value / factor + " " + unit;
  return scaled(value, SIZES);
}

export function rate(value: number): string {
  return scaled(Math.round(value), SIZES.slice(1)) + "/s";
}

export function percent(share: number): string {
  return (100 * share).toFixed(1).replace(/^-0\.0$/, "0.0").replace(/\B(?=(\d{3})+\.)/g, ",") + "%";
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
