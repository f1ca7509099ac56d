/** Markdown of generated pages. */

/** The end of a sentence. "e.g." does not end one. */
const END = /(?<=(?<!\be\.?g)\.\)?) (?=\S)/;

/** A list item: a line with names and facts, and below it the sentences of the text, one a line. */
export const entry = (head: string, text: string): string => `- ${[`${head}\\`, ...text.split(END)].join('\n  ')}`;
