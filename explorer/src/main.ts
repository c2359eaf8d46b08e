// Reads what kind of page this is and opens it. `ready` is set with the first picture, `err` if there is none.
import { byId, el } from "./dom";
import { Lanes, type LanesHead } from "./lanes";
import type { RunsHead } from "./model";
import { Runs } from "./runs";
import { Sweep, type SweepHead } from "./sweep";

interface Page { ready?: boolean; loaded?: boolean; err?: string; page?: unknown }
const page = window as unknown as Page;

/** What a page of `hocket serve` says instead of a picture. */
interface Message { kind: "message"; title: string; text: string }
/** Fields of its form: name, label, value, and what may be chosen; a list that may also be typed over is open. */
type Form = { name: string; label: string; value: string; choices: string[]; open: boolean }[];

function formOf(fields: Form): HTMLElement {
  const inputs = fields.map(({ name, label, value, choices, open: isOpen }) => {
    if (choices.length && !isOpen) return el("label", {}, `${label} `, el("select", { name }, ...choices.map((each) => el("option", { value: each, selected: each === value }, each))));
    const list = choices.length ? el("datalist", { id: `list-${name}` }, ...choices.map((each) => el("option", { value: each }))) : null;
    return el("label", {}, `${label} `, el("input", { name, value, list: list ? list.id : null, autocomplete: "off" }), list);
  });
  const go = el("button", { type: "submit", id: "go" }, "Plan");
  const form = el("form", { class: "plan", method: "get", action: "/", submit: () => { go.disabled = true; go.textContent = "Planning …"; } }, ...inputs, go);
  return form;
}

async function open(): Promise<void> {
  const text = (id: string) => byId(id).textContent ?? "";
  const head = JSON.parse(text("header")) as (RunsHead | SweepHead | LanesHead | Message) & { form?: Form };
  switch (head.kind) {
    case "runs": page.page = await Runs.open(head, text("first"), text("rest")); break;
    case "sweep": page.page = new Sweep(head); page.loaded = true; break;
    case "lanes": page.page = await Lanes.open(head, text("first")); page.loaded = true; break;
    case "message": byId("app").replaceChildren(el("p", { role: "alert" }, head.text)); page.loaded = true; break;
    default: throw new Error(`it is of a kind that this page does not know`);
  }
  if (head.form) byId("app").prepend(formOf(head.form));
}

open().then(() => requestAnimationFrame(() => { performance.mark("ready"); page.ready = true; })).catch((error: unknown) => {
  page.err = String(error);
  byId("app").replaceChildren(el("p", {}, `This page cannot be shown: ${String(error)}`));
});
