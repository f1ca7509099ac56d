/** The iPXE scripts of a boot service, as far as simulated machines follow them. */

/** What an iPXE script boots: kernel, ramdisk and parameters; undefined: it hands over to the disk. */
export interface BootScript {
  readonly files: readonly string[];
  readonly parameters: ReadonlyMap<string, string>;
}
export function readScript(text: string, mac: string): BootScript | undefined {
  const lines = text.split('\n').map((line) =>
    line
      .replace(/\s\|\|.*$/, '')
      .split(/\s+/)
      .filter((word) => word !== ''),
  );
  const kernel = lines.find(([command]) => command === 'kernel');
  const initrd = lines.find(([command]) => command === 'initrd');
  if (!kernel?.[1] || !initrd) return undefined;
  const pairs = kernel.slice(2).map((word): readonly [string, string] => {
    const [name, ...value] = word.replaceAll('${mac}', mac).split('=');
    return [name!, value.join('=')];
  });
  return { files: [kernel[1], initrd.at(-1)!], parameters: new Map(pairs) };
}
