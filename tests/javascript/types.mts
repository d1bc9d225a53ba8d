// Compiled, not run: what index.d.ts allows, and what it must not.

import { Tokenizer, TokenizerError } from "../../ggufbpe/javascript/index.js";
import type { Attribute, Encoding, ErrorCode, IdsChange, SpecialIds } from "../../ggufbpe/javascript/index.js";

export async function allowed(file: File, module: WebAssembly.Module): Promise<void> {
  const tokenizer: Tokenizer = await Tokenizer.fromGGUF(file);
  await Tokenizer.fromGGUF(new URL("https://example.org/model.gguf"), { headers: { Authorization: "x" }, module });
  await Tokenizer.fromGGUF("model.gguf", { fetch, signal: new AbortController().signal });
  await Tokenizer.fromGGUF(new Uint8Array());
  await Tokenizer.fromGGUF(new SharedArrayBuffer(1));
  const ids: Int32Array = tokenizer.encode("text", { addSpecial: false, parseSpecial: false });
  const encoding: Encoding = tokenizer.encodeWithOffsets(new Uint8Array());
  const text: string = tokenizer.decode(ids, { removeSpecial: true }) + tokenizer.decode([1, 2]);
  const bytes: Uint8Array = tokenizer.piece(1, { special: false });
  const change: IdsChange = tokenizer.incremental().append(text);
  const stream = tokenizer.decodeStream();
  const special: SpecialIds = tokenizer.specialIds;
  const attributes: Attribute[] = tokenizer.attributes(special.bos ?? 0);
  console.log(encoding.offsets[0], bytes, change.kept, stream.push(1) + stream.finish(), attributes, tokenizer.warnings);
  tokenizer.encode("text").map((id: number) => id);
  // Arrays are in memory that is not shared, so they can be sent to another thread; TypeScript checks that since 5.7.
  structuredClone(ids, { transfer: [tokenizer.encode("text").buffer, encoding.ids.buffer, encoding.offsets.buffer] });
  new Blob([tokenizer.piece(1), tokenizer.decodeBytes([1]), tokenizer.incremental().ids]);
}

export function codeOf(error: unknown): ErrorCode | null {
  return error instanceof TokenizerError ? error.code : null;
}

export function refused(tokenizer: Tokenizer): void {
  // @ts-expect-error: only fromGGUF makes tokenizers
  new Tokenizer();
  // @ts-expect-error: a text is a string or bytes
  tokenizer.encode(1);
  // @ts-expect-error: an option that there is not
  tokenizer.encode("text", { add_special: true });
  // @ts-expect-error: null where there is no such token
  const bos: number = tokenizer.specialIds.bos;
  // @ts-expect-error: a tokenizer never changes
  tokenizer.model = String(bos);
}
