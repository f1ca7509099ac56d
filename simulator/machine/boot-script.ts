/** Reads the parts of a boot service's iPXE script that a simulated machine follows. */

/** What an iPXE script boots. */
export interface BootScript {
  /** The URLs of kernel and ramdisk. */
  readonly files: readonly string[];
  /** The kernel's command line: name → value. */
  readonly parameters: ReadonlyMap<string, string>;
}
/** Undefined: the script boots the disk. */
export function readScript(text: string, mac: string): BootScript | undefined {
  const lines = text.split('\n').map((line) =>
    line
      .split(/\s\|\|/, 1)[0]!
      .split(/\s+/)
      .filter((word) => word !== ''),
  );
  const kernel = lines.find(([command]) => command === 'kernel');
  const initrd = lines.find(([command]) => command === 'initrd');
  if (!kernel?.[1] || !initrd) return undefined;
  return { files: [kernel[1], initrd.at(-1)!], parameters: parametersOf(kernel.slice(2).map((word) => word.replaceAll('${mac}', mac))) };
}
/** The parameters of a kernel's command line. */
export const parametersOf = (words: readonly string[]): BootScript['parameters'] =>
  new Map(
    words.map((word): readonly [string, string] => {
      const [name, ...value] = word.split('=');
      return [name!, value.join('=')];
    }),
  );
