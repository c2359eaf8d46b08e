// Tables: what each chart shows, in rows that can be read, sorted and chosen.
import { count, el } from "./dom";

export interface Row { cells: (string | number)[]; keys?: (string | number)[]; choose?: () => void; chosen?: boolean }

const SHOWN = 40;

/** By which column each table is sorted, and how many rows it shows: it is made anew when the time moves. */
const kept = new Map<string, { by: number; down: boolean; shown: number }>();

/** Makes a table; a click on a heading sorts by it. `total` says how many rows there are if not all are given. */
export function table(caption: string, heads: string[], rows: Row[], total = rows.length): HTMLElement {
  const body = el("tbody");
  const note = el("p", { class: "note" });
  const name = [caption.split(/[:,]/)[0], ...heads].join("|"), way = kept.get(name) ?? { by: -1, down: false, shown: SHOWN };
  kept.set(name, way);
  const key = (row: Row) => (row.keys ?? row.cells)[way.by]!;
  const fill = () => {
    const sorted = way.by < 0 ? rows : [...rows].sort((a, b) => {
      const [x, y] = [key(a), key(b)];
      const order = typeof x === "number" && typeof y === "number" ? x - y : String(x).localeCompare(String(y), "en", { numeric: true });
      return way.down ? -order : order;
    });
    body.replaceChildren(...sorted.slice(0, way.shown).map((row) => {
      const line = el("tr", row.choose ? { tabindex: 0, class: row.chosen ? "chosen" : null, click: row.choose, keydown: (event: KeyboardEvent) => {
        if (event.key === "Enter") { row.choose!(); event.preventDefault(); }
      } } : {}, ...row.cells.map((cell) => el("td", typeof cell === "number" ? { class: "n" } : {}, cell)));
      return line;
    }));
    note.replaceChildren();
    const hidden = Math.max(rows.length - way.shown, 0);
    if (hidden > 0) note.append(el("button", { click: () => { way.shown += 1000; fill(); } }, "Show more"), ` ${count(hidden, "row")} not shown`);
    else if (total > rows.length) note.append(`${total.toLocaleString("en")} rows in all; the first ${rows.length.toLocaleString("en")} are listed`);
  };
  const head = el("tr", {}, ...heads.map((name, i) => el("th", { scope: "col" }, el("button", {
    title: `Sort by ${name}`, click: () => { way.down = way.by === i && !way.down; way.by = i; fill(); },
  }, name))));
  fill();
  return el("div", { class: "table" }, el("table", {}, el("caption", {}, caption), el("thead", {}, head), body), note);
}
