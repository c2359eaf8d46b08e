// Colours: hue says what is done (blue sums, orange copies; told apart by colour-blind people too),
// lightness says how much of a link is used, and grey is idle.

type Rgb = readonly [number, number, number];

interface Theme {
  idle: Rgb; sums: readonly [Rgb, Rgb]; copies: readonly [Rgb, Rgb];
  ink: string; faint: string; paper: string; box: string; mark: string; npu: string; device: string; cut: string;
}

const LIGHT: Theme = {
  idle: [221, 225, 231], sums: [[178, 203, 232], [18, 84, 160]], copies: [[248, 214, 170], [206, 98, 0]],
  ink: "#1b1f24", faint: "#5a6470", paper: "#ffffff", box: "#f3f5f8", mark: "#c2187f", npu: "#2f3b48", device: "#8a94a0", cut: "#0a7d4f",
};
const DARK: Theme = {
  idle: [44, 50, 58], sums: [[40, 66, 98], [118, 182, 255]], copies: [[96, 62, 30], [255, 178, 92]],
  ink: "#e6e9ed", faint: "#9aa4b0", paper: "#14171b", box: "#1b2026", mark: "#ff7ac6", npu: "#d4dae2", device: "#75808d", cut: "#4fd69c",
};

export const LEVELS = 16;
let chosen = "auto";

export function setTheme(name: string): void {
  chosen = name === "light" || name === "dark" ? name : "auto";
  if (chosen === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = chosen;
}

export function isDark(): boolean {
  return chosen === "dark" || (chosen === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
}

export function theme(): Theme {
  return isDark() ? DARK : LIGHT;
}

const tables = new Map<boolean, Uint32Array>();

function mixed(a: Rgb, b: Rgb, share: number): Rgb {
  return [0, 1, 2].map((i) => a[i]! + (b[i]! - a[i]!) * share) as unknown as Rgb;
}

/** Colours as RGBA words by phase (0 copies to 15 sums) x use (0 to 255). */
export function colours(): Uint32Array {
  const dark = isDark();
  const known = tables.get(dark);
  if (known) return known;
  const of = theme();
  const table = new Uint32Array(LEVELS * 256);
  for (let phase = 0; phase < LEVELS; phase++)
    for (let use = 0; use < 256; use++) {
      const share = phase / (LEVELS - 1);
      const [low, high] = [0, 1].map((i) => mixed(of.copies[i]!, of.sums[i]!, share));
      const [r, g, b] = use === 0 ? of.idle : mixed(low!, high!, use / 255);
      table[phase * 256 + use] = (255 << 24 | Math.round(b) << 16 | Math.round(g) << 8 | Math.round(r)) >>> 0;
    }
  tables.set(dark, table);
  return table;
}

export function css(word: number): string {
  return `rgb(${word & 255},${word >> 8 & 255},${word >> 16 & 255})`;
}

/** Colours of lines and bars that stand for different things; safe for colour-blind people (Okabe and Ito). */
const SERIES_LIGHT = ["#0072b2", "#d55e00", "#008060", "#a8488c", "#9a7400", "#2a86b8", "#5a6470", "#7a4b2a"];
const SERIES_DARK = ["#56b4e9", "#ff9d45", "#2fcf9f", "#e59ac4", "#f0d043", "#a3d5f5", "#aab4c0", "#d2a07a"];

export function series(i: number): string {
  const list = isDark() ? SERIES_DARK : SERIES_LIGHT;
  return list[i % list.length]!;
}
