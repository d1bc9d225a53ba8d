// Spans in UTF-8 as spans in a JavaScript string, which counts UTF-16 units.

const isWithin = (byte) => (byte & 0xc0) === 0x80; // a character

// Spans of bytes as spans of units; a span that begins or ends within a character has all of it.
export function spansInUnits(bytes, spans) {
  const units = new Uint32Array(bytes.length + 1);
  let unit = 0;
  for (let at = 0; at < bytes.length; ++at) {
    units[at] = unit;
    if (!isWithin(bytes[at])) unit += bytes[at] >= 0xf0 ? 2 : 1;
  }
  units[bytes.length] = unit;
  return spans.map((place, index) => {
    const step = index % 2 ? 1 : -1; // an end, or a start
    while (isWithin(bytes[place])) place += step;
    return units[place];
  });
}
