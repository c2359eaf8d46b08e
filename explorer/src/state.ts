// What is shown, kept in the address: a copied address opens the same view.

export interface State {
  /** Moment under the cursor [ps]. */
  t: number;
  /** Window of time that strips show [ps]; null for all. */
  w: [number, number] | null;
  link: number; chunk: number; npu: number;
  /** Run that a link, a chunk or an NPU is of. */
  run: number;
  /** What of the network is shown, in units: middle and height; null for all. */
  v: [number, number, number] | null;
  tab: string; strip: string; paint: string; theme: string; cut: boolean; speed: number;
}

export const START: State = {
  t: 0, w: null, link: -1, chunk: -1, npu: -1, run: 0, v: null,
  tab: "", strip: "links", paint: "use", theme: "auto", cut: true, speed: 1,
};

const WORDS: Record<string, readonly string[]> = {
  tab: ["", "transfers", "links", "npus", "chunk", "runs"], strip: ["links", "npus"],
  paint: ["use", "load"], theme: ["auto", "light", "dark"],
};

const finite = (text: string): number | null => {
  const value = Number(text);
  return text !== "" && Number.isFinite(value) ? value : null;
};

/** Reads an address; what makes no sense in it is passed over. */
export function fromHash(hash: string): State {
  const state: State = { ...START };
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  for (const name of ["link", "chunk", "npu", "run"] as const) {
    const value = finite(given.get(name) ?? "");
    if (value !== null && Number.isInteger(value) && value >= 0) state[name] = value;
  }
  const t = finite(given.get("t") ?? "");
  if (t !== null && t >= 0) state.t = t;
  const speed = finite(given.get("speed") ?? "");
  if (speed !== null && speed > 0 && speed <= 16) state.speed = speed;
  const w = (given.get("w") ?? "").split(",").map(finite);
  if (w.length === 2 && w[0] != null && w[1] != null && w[0] >= 0 && w[0] < w[1]) state.w = [w[0], w[1]];
  const v = (given.get("v") ?? "").split(",").map(finite);
  if (v.length === 3 && v.every((each) => each !== null) && v[2]! > 0) state.v = v as [number, number, number];
  for (const [name, words] of Object.entries(WORDS)) {
    const word = given.get(name);
    if (word !== null && words.includes(word)) (state as unknown as Record<string, string>)[name] = word;
  }
  state.cut = given.get("cut") !== "0";
  return state;
}

export function toHash(state: State): string {
  const parts: string[] = [];
  const add = (name: string, value: string | number, normal: string | number) => {
    if (value !== normal) parts.push(`${name}=${value}`);
  };
  add("t", Math.round(state.t), 0);
  if (state.w) parts.push(`w=${state.w.map(Math.round).join(",")}`);
  for (const name of ["link", "chunk", "npu"] as const) add(name, state[name], -1);
  add("run", state.run, 0);
  if (state.v) parts.push(`v=${state.v.map((each) => Number(each.toFixed(2))).join(",")}`);
  for (const name of ["tab", "strip", "paint", "theme", "speed"] as const) add(name, state[name], START[name]);
  if (!state.cut) parts.push("cut=0");
  return "#" + parts.join("&");
}
