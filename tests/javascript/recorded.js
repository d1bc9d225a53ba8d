// Holds the package to llama.cpp's recorded answers, in Node and in a browser.

const SPECIAL = { fim_pre: "fimPre", fim_suf: "fimSuf", fim_mid: "fimMid", fim_pad: "fimPad", fim_rep: "fimRep", fim_sep: "fimSep" };
const BITS = { unknown: 1, unused: 2, normal: 4, control: 8, userDefined: 16, byte: 32, lstrip: 128, rstrip: 256 };
const FLAGS = [
  [true, true],
  [true, false],
  [false, true],
  [false, false],
];

// Of the names that share a vocabulary, one has all its tokens compared and the others this share: tokens hardly depend on the
// name, and a call for each of 50,000 takes most of the time.
const SOME = 17;

// Recorded bytes are strings of a character a byte.
const bytesOf = (text) => Uint8Array.from(text, (character) => character.charCodeAt(0));
const textOf = (bytes) => String.fromCharCode(...bytes);

// As JSON.stringify would tell, which takes most of the time here.
const isSame = (ours, theirs) =>
  Array.isArray(ours) && Array.isArray(theirs)
    ? ours.length === theirs.length && ours.every((each, index) => each === theirs[index])
    : ours === theirs;

// From a recorded table: the answers for `name` under FLAGS[flags], one to each question.
const column = (table, name, flags) => table.index[name][flags].map((number, question) => table.answers[question][number]);

// What differs from the answers that are recorded for `name`, and how many were compared. Of tokens, every so many are compared,
// and all that are not normal.
export function compare(tokenizer, recorded, name, every = 1) {
  const wrong = [];
  let count = 0;
  const expect = (what, ours, theirs) => {
    ++count;
    if (!isSame(ours, theirs)) wrong.push({ name, what, ours, theirs });
  };
  FLAGS.forEach(([one, other], flags) => {
    const options = { addSpecial: one, parseSpecial: other };
    column(recorded.ids, name, flags).forEach((ids, question) => {
      if (ids === null) return; // llama.cpp crashed
      const text = bytesOf(recorded.texts[question]);
      expect(`ids of text ${question}`, [...tokenizer.encode(text, options)], ids);
      if (flags) return;
      expect(`count of text ${question}`, tokenizer.count(text, options), ids.length);
      expect(`ids with offsets of text ${question}`, [...tokenizer.encodeWithOffsets(text, options).ids], ids);
    });
    column(recorded.decoded, name, flags).forEach((text, question) => {
      const ours = tokenizer.decodeBytes(recorded.sequences[question], { removeSpecial: one, unparseSpecial: other });
      expect(`text of ids ${question}`, textOf(ours), text);
    });
  });
  if (!recorded.pieces) return { count, wrong };
  const [facts] = column(recorded.described, name, 0);
  const isCompared = (id) => id % every === 0 || facts.attributes[id] !== BITS.normal;
  const some = (answers) => answers.filter((_, id) => isCompared(id));
  const all = some(Array.from({ length: tokenizer.vocabularySize }, (_, id) => id));
  [true, false].forEach((special, flags) => {
    const [pieces] = column(recorded.pieces, name, flags);
    expect(`pieces, special ${special}`, all.map((id) => textOf(tokenizer.piece(id, { special }))), some(pieces));
  });
  for (const [key, id] of Object.entries(facts.special_ids)) {
    if (key !== "nl") expect(`${key} id`, tokenizer.specialIds[SPECIAL[key] ?? key], id);
  }
  expect("adds BOS", tokenizer.addsBos, facts.add_bos);
  expect("adds EOS", tokenizer.addsEos, facts.add_eos);
  expect("ends of generation", all.filter((id) => tokenizer.isEndOfGeneration(id)), facts.eog_ids.filter(isCompared));
  const attributesOf = (id) => tokenizer.attributes(id).reduce((bits, each) => bits | BITS[each], 0);
  expect("attributes", all.map(attributesOf), some(facts.attributes));
  const written = (id) => textOf(new TextEncoder().encode(tokenizer.tokenText(id)));
  expect("texts", all.map(written), some(facts.texts));
  return { count, wrong };
}

// All cases [recorded, name], whose models and answers are below `base`.
export async function compareAll(Tokenizer, base, cases) {
  const answers = new Map();
  const found = { count: 0, wrong: [] };
  for (const [recorded, name] of cases) {
    const every = answers.has(recorded) ? SOME : 1;
    if (every === 1) answers.set(recorded, await (await fetch(`${base}/${recorded}.json`)).json());
    const tokenizer = await Tokenizer.fromGGUF(`${base}/${recorded}/${name}.gguf`);
    const { count, wrong } = compare(tokenizer, answers.get(recorded), name, every);
    found.count += count;
    found.wrong.push(...wrong.slice(0, 3));
  }
  return found;
}
