/** References of a value to other options, as oslo.config reads them: `$name`, `${name}`, `$section.name`; `$$` and `\$` are one `$`. */

/** A value that refers to others has at most this many characters: values that refer to each other twice would double in each step. */
const MAX = 65_536;
/** Values nest at most this deep. */
const MAX_NESTED = 50;

/**
 * Replaces the references of a text.
 * @param lookup the text of an option, by the name in the reference; throws an Error if there is no such option
 */
export function replaceReferences(text: string, lookup: (name: string) => string): string {
  const replaced = text
    .replaceAll('\\$', '$$$$')
    .replace(/\$(?:\$|\{([_a-z][._a-z0-9]*)\}|([_a-z][._a-z0-9]*))/gi, (_, braced: string | undefined, bare: string | undefined) => {
      const name = braced ?? bare;
      return name === undefined ? '$' : lookup(name);
    });
  if (replaced.length > MAX && replaced.length > text.length) throw new Error('is too long with the values of its references');
  return replaced;
}

/** Calls `read` for a key, and refuses a key that needs itself. */
export function withoutCycles<T>(read: (key: string) => T): (key: string) => T {
  const reading = new Set<string>();
  return (key) => {
    if (reading.has(key) || reading.size > MAX_NESTED) throw new Error('refers to itself, directly or through other options');
    reading.add(key);
    try {
      return read(key);
    } finally {
      reading.delete(key);
    }
  };
}

/** The options that a reference in a section can mean, the first that exists: of that section, then of [DEFAULT]. */
export const meantBy = (name: string, section: string): readonly string[] =>
  name.includes('.') ? [name] : [`${section}.${name}`, `DEFAULT.${name}`];
