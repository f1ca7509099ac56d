/**
 * JSON in ironic-inspector's format, in ASCII. Responses have sorted members and a final newline. Stored data keeps its order and has
 * spaces after commas and colons.
 */
const ascii = (text: string): string =>
  text.replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
const quoted = (text: string): string => ascii(JSON.stringify(text));

function write(value: unknown, comma: string, colon: string, sorted: boolean): string {
  if (Array.isArray(value)) return `[${value.map((item) => write(item, comma, colon, sorted)).join(comma)}]`;
  if (typeof value === 'string') return quoted(value);
  if (typeof value !== 'object' || value === null) return JSON.stringify(value) ?? 'null';
  const members = Object.entries(value);
  if (sorted) members.sort(([member], [other]) => (member < other ? -1 : 1));
  return `{${members.map(([name, member]) => quoted(name) + colon + write(member, comma, colon, sorted)).join(comma)}}`;
}
export const answerText = (value: unknown): string => `${write(value, ',', ':', true)}\n`;
export const dataText = (value: unknown): string => write(value, ', ', ': ', false);
