// Makes of the columns of transfers what views ask: ends of each, its stays on links, and the stays of each link.
import type { Column, Columns } from "./decode";

/** A run's place among the columns, and its network's links. */
export interface Part { prefix: string; rows: number; single: boolean; links: number; src: Column; dst: Column }

/** Adds `src`, `dst`, `stay_*`, `link_at` and `by_link` to a run's columns. */
export function addIndex(columns: Columns, { prefix, rows, single, links, src: from, dst: to }: Part): void {
  const at = (name: string) => columns[prefix + name] as Int32Array;
  const add = (name: string, column: Column) => { columns[prefix + name] = column; };
  if (single) {
    // Each transfer has one stay: from its start on, until its tail.
    const link = at("link"), src = new Int32Array(rows), dst = new Int32Array(rows);
    const length = at("length"), tail = at("tail"), stay = new (length.constructor as Float64ArrayConstructor)(rows), own = new Int32Array(rows + 1);
    for (let i = 0; i < rows; i++) { src[i] = from[link[i]!]!; dst[i] = to[link[i]!]!; }
    for (let i = 0; i < rows; i++) stay[i] = length[i]! - tail[i]!;
    for (let i = 0; i <= rows; i++) own[i] = i;
    add("src", src); add("dst", dst);
    add("stay_link", link); add("stay_start", at("start")); add("stay_length", stay); add("stay_transfer", own.subarray(0, rows)); add("stay_at", own);
  } else {
    const hops = at("hops"), offset = at("stay_start"), stays = at("stay_link").length, start = at("start");
    const own = new Int32Array(stays), begin = new Float64Array(stays), stayAt = new Int32Array(rows + 1);
    for (let i = 0, s = 0; i < rows; stayAt[++i] = s)
      for (let k = hops[i]!; k > 0; k--, s++) { own[s] = i; begin[s] = start[i]! + offset[s]!; }
    add("src", at("from")); add("dst", at("to")); add("stay_transfer", own); add("stay_start", begin); add("stay_at", stayAt);
  }
  // By counting: how many stays each link has, then each stay to the next place of its link.
  const stayLink = at("stay_link"), linkAt = new Int32Array(links + 1);
  for (let s = 0; s < stayLink.length; s++) linkAt[stayLink[s]! + 1]!++;
  for (let l = 0; l < links; l++) linkAt[l + 1]! += linkAt[l]!;
  const next = linkAt.slice(0, links), byLink = new Int32Array(stayLink.length);
  for (let s = 0; s < stayLink.length; s++) byLink[next[stayLink[s]!]!++] = s;
  add("link_at", linkAt); add("by_link", byLink);
}
