// Reads the transfers beside the page, so that the first picture does not wait for them. The first message has
// the stream, which is read at once; the second has the links, which the page has read by then.
import { decode, type Columns, type Spec } from "./decode";
import { addIndex, type Part } from "./transfers";

type Asked = { text: string; specs: Spec[]; to: number } | { parts: Part[] };
let read: Promise<Columns> | null = null;

onmessage = async (event: MessageEvent<Asked>) => {
  if ("text" in event.data) {
    read = decode(event.data.text, event.data.specs, 0, event.data.to);
    read.catch(() => undefined);
    return;
  }
  try {
    const columns = await read!;
    for (const part of event.data.parts) addIndex(columns, part);
    const buffers = new Set(Object.values(columns).map((column) => column.buffer as ArrayBuffer));
    (postMessage as (message: unknown, transfer: Transferable[]) => void)({ columns }, [...buffers]);
  } catch (error) {
    postMessage({ error: String(error) });
  }
};
