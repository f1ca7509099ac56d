/**
 * ironic.conf's format as oslo.config reads it: `[section]`, `key = value` or `key: value`, continuation lines that begin with white space,
 * comments at the start of a line only. A `;` or `#` within a value belongs to the value. Every occurrence of a repeated key is returned.
 */
interface IniValue {
  readonly section: string;
  readonly key: string;
  readonly value: string;
  readonly line: number;
}

/** Throws an Error with the line number for text that is none of these. */
export function parseIni(text: string): readonly IniValue[] {
  const found: { section: string; key: string; lines: string[]; line: number }[] = [];
  let section: string | undefined;
  let open = false;
  for (const [index, raw] of text.split(/\r?\n/).entries()) {
    const line = index + 1;
    if (raw.trim() === '') {
      open = false;
    } else if (/^[#;]/.test(raw)) {
      continue;
    } else if (/^\s/.test(raw)) {
      const last = found.at(-1);
      if (!open || !last) throw new Error(`line ${line}: a continuation line without an option before it`);
      last.lines.push(raw.trim());
    } else if (raw.startsWith('[')) {
      const name = /^\[([^\]]+)\]\s*$/.exec(raw)?.[1];
      if (name === undefined) throw new Error(`line ${line}: not a section: ${raw}`);
      section = name.trim();
      open = false;
    } else {
      const match = /^([^=:]+)[=:](.*)$/.exec(raw);
      if (!match) throw new Error(`line ${line}: neither "name = value" nor a section: ${raw.slice(0, 60)}`);
      if (section === undefined) throw new Error(`line ${line}: an option before the first section`);
      found.push({ section, key: match[1]!.trim(), lines: [match[2]!.trim()], line });
      open = true;
    }
  }
  return found.map(({ section: of, key, lines, line }) => ({ section: of, key, value: unquote(lines.join('\n')), line }));
}

const unquote = (value: string): string => (/^(["'])[^]*\1$/.test(value) && value.length > 1 ? value.slice(1, -1) : value);
