// Columns as Python packs them (explorer/columns.py): byte planes of zigzag values or differences, deflated.

/** Name, rows, planes (0: bytes as they are), whether differences, whether beyond 32 bits. */
export type Spec = [name: string, rows: number, planes: number, delta: number, wide: number];
export type Column = Uint8Array | Int32Array | Float64Array;
export type Columns = Record<string, Column>;

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const native = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array<ArrayBuffer> }).fromBase64;
  if (native) return native(text);
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

/** Inflates a raw deflate stream that holds `size` bytes. */
async function inflate(packed: Uint8Array<ArrayBuffer>, size: number): Promise<Uint8Array> {
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  const reader = stream.getReader();
  const raw = new Uint8Array(size);
  let at = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    if (at + value.length > size) throw new Error("the page has more data than it says");
    raw.set(value, at);
    at += value.length;
  }
  if (at !== size) throw new Error("the page is cut short");
  return raw;
}

function sizeOf(specs: Spec[]): number {
  return specs.reduce((sum, [, rows, planes]) => sum + rows * Math.max(planes, 1), 0);
}

function narrow(raw: Uint8Array, at: number, rows: number, planes: number, delta: number): Int32Array {
  const out = new Int32Array(rows);
  // A loop for each number of planes: one that asks in each row takes twice as long.
  const p0 = raw.subarray(at, at + rows), p1 = raw.subarray(at + rows, at + 2 * rows), p2 = raw.subarray(at + 2 * rows, at + 3 * rows), p3 = raw.subarray(at + 3 * rows, at + 4 * rows);
  if (planes === 1) for (let i = 0; i < rows; i++) { const z = p0[i]!; out[i] = (z >>> 1) ^ -(z & 1); }
  else if (planes === 2) for (let i = 0; i < rows; i++) { const z = p0[i]! | p1[i]! << 8; out[i] = (z >>> 1) ^ -(z & 1); }
  else if (planes === 3) for (let i = 0; i < rows; i++) { const z = p0[i]! | p1[i]! << 8 | p2[i]! << 16; out[i] = (z >>> 1) ^ -(z & 1); }
  else for (let i = 0; i < rows; i++) { const z = p0[i]! | p1[i]! << 8 | p2[i]! << 16 | p3[i]! << 24; out[i] = (z >>> 1) ^ -(z & 1); }
  if (delta) for (let i = 0, last = 0; i < rows; i++) out[i] = last = (last + out[i]!) | 0;
  return out;
}

function wide(raw: Uint8Array, at: number, rows: number, planes: number, delta: number): Float64Array {
  const out = new Float64Array(rows);
  let last = 0;
  for (let i = 0; i < rows; i++) {
    let z = 0;
    for (let p = planes - 1; p >= 0; p--) z = z * 256 + raw[at + p * rows + i]!;
    const value = z % 2 ? -(z + 1) / 2 : z / 2;
    last = delta ? last + value : value;
    out[i] = last;
  }
  return out;
}

function unpack(specs: Spec[], raw: Uint8Array): Columns {
  const found: Columns = {};
  let at = 0;
  for (const [name, rows, planes, delta, isWide] of specs) {
    if (planes === 0) found[name] = raw.slice(at, at + rows);
    else found[name] = isWide || planes > 4 ? wide(raw, at, rows, planes, delta) : narrow(raw, at, rows, planes, delta);
    at += rows * Math.max(planes, 1);
  }
  return found;
}

/** Reads columns of a stream: those of the bytes from `from` to before `to` of it. */
export async function decode(text: string, specs: Spec[], from = 0, to?: number): Promise<Columns> {
  return unpack(specs, await inflate(bytesOf(text).subarray(from, to), sizeOf(specs)));
}
