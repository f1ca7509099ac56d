/** Which known name a misspelt one may mean. */

/** Longer names are not compared. */
const MAX_NAME = 64;
const MAX_EDITS = 2;

/** Levenshtein distance. Distances above `most` are returned as `most + 1`. */
function distance(left: string, right: string, most: number): number {
  if (Math.abs(left.length - right.length) > most) return most + 1;
  let before = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let row = 1; row <= left.length; row++) {
    const now = [row];
    for (let column = 1; column <= right.length; column++) {
      const replaced = before[column - 1]! + (left[row - 1] === right[column - 1] ? 0 : 1);
      now.push(Math.min(replaced, before[column]! + 1, now[column - 1]! + 1));
    }
    if (Math.min(...now) > most) return most + 1;
    before = now;
  }
  return before[right.length]!;
}

/** Options that decide who may do what, or whom this program trusts. */
const GUARDING = /auth|token|password|secret|tls|ssl|cert|cafile|ca_file|verify|insecure|allow|deny|polic|role|user|key|host_ip|address/;

/**
 * The known `section.name` that is at most two edits away, or the only one with the same name in another section. An option that guards
 * something is suggested only to who misspelt it in its own section: elsewhere, its value was not meant for it.
 */
export function suggestionFor(key: string, known: readonly string[]): string | undefined {
  if (key.length > MAX_NAME) return undefined;
  const section = key.slice(0, key.indexOf('.') + 1);
  const possible = known.filter((candidate) => candidate.startsWith(section) || !GUARDING.test(candidate.slice(candidate.indexOf('.'))));
  let best: { readonly key: string; readonly edits: number } | undefined;
  for (const candidate of possible) {
    const edits = distance(key, candidate, Math.min(best ? best.edits - 1 : MAX_EDITS, MAX_EDITS));
    if (edits <= MAX_EDITS && (!best || edits < best.edits)) best = { key: candidate, edits };
  }
  const name = key.slice(key.indexOf('.') + 1);
  const elsewhere = possible.filter((candidate) => candidate.endsWith(`.${name}`));
  return best?.key ?? (elsewhere.length === 1 ? elsewhere[0] : undefined);
}
