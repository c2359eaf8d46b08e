// Reads the transfers beside the page, so that the first picture does not wait for them.
import { decode, type Spec } from "./decode";

onmessage = async (event: MessageEvent<{ text: string; specs: Spec[] }>) => {
  try {
    const columns = await decode(event.data.text, event.data.specs);
    const buffers = Object.values(columns).map((column) => column.buffer as ArrayBuffer);
    (postMessage as (message: unknown, transfer: Transferable[]) => void)({ columns }, buffers);
  } catch (error) {
    postMessage({ error: String(error) });
  }
};
