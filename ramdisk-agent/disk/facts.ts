/** What a file system says of its blocks. */

/** Reads bytes of a file system; fewer at its end. */
export type ReadAt = (position: number, length: number) => Promise<Buffer>;
interface Counted {
  readonly size: number;
  readonly free: number;
}
/** Throws an Error with the reason why nothing of the file system may be left out. Returns the bytes that it has, and how many are free. */
export type Facts = (read: ReadAt, run: (program: string, args: readonly string[]) => Promise<string>) => Promise<Counted>;

export function refuse(is: boolean, reason: string): void {
  if (is) throw new Error(reason);
}
