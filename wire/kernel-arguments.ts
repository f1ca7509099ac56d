/** Kernel command lines: one grammar for iPXE, GRUB, PXELINUX and ISOLINUX. */

/** An argument as Ironic accepts it: `key`, `key=value` or `key="a value"`, in printable ASCII. */
const ARGUMENT = /^[\w.-]+(?:=(?:[!#-~]+|"[ !#-~]+"))?$/;
/** Double quotes protect spaces. */
const WORD = /(?:[^ "]|"[^"]*")+/g;
const PRINTABLE = /^[ -~]*$/;
/** What follows this argument goes to the init program, and has no quotes. */
const INIT = '--';

/**
 * iPXE splits a line at spaces, also within quotes. It ends a command at these words, and ignores the rest of the line after a word that
 * begins with `#`.
 */
export const endsIpxeCommand = (word: string): boolean => ['||', '&&', ';'].includes(word) || word.startsWith('#');

/** Whether each boot loader passes the text to the kernel as it stands. White space at its ends is ignored. */
export function isKernelCommandLine(given: string): boolean {
  const text = given.trim();
  if (!PRINTABLE.test(text) || text.split(' ').some(endsIpxeCommand)) return false;
  const words: readonly string[] = text.match(WORD) ?? [];
  const init = words.indexOf(INIT);
  const args = init < 0 ? words : words.slice(0, init);
  const rest = init < 0 ? [] : words.slice(init + 1);
  return text.split('"').length % 2 === 1 && args.every((word) => ARGUMENT.test(word)) && rest.every((word) => !word.includes('"'));
}
