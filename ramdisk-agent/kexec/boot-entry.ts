/** What a boot loader would start: the result of reading its configuration. */
export interface BootEntry {
  /** Paths in the image. */
  readonly kernel: string;
  readonly initrds: readonly string[];
  readonly commandLine: string;
}

/** The configuration is there, but says something that only the boot loader can decide. */
export class NotUnderstood extends Error {}

/** `a-10` after `a-9`, as versions are compared. */
const versions = new Intl.Collator('en', { numeric: true });
export const newestFirst = (names: readonly string[]): readonly string[] => [...names].sort((a, b) => versions.compare(b, a));
