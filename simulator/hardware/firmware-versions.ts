/** The components of a machine that have firmware, their versions, and the format of a firmware image. */
import { hardwarePart, type Hardware } from './hardware';

export const COMPONENTS = ['bios', 'bmc', 'nic'] as const;
export type Component = (typeof COMPONENTS)[number];
export const isComponent = (word: string | undefined): word is Component => COMPONENTS.includes(word as Component);
export const FIRMWARE = hardwarePart<Readonly<Partial<Record<Component, string>>>>('firmware', {});

const FACTORY_VERSION = '1.0';
export const firmwareVersion = (hardware: Hardware, component: Component): string => hardware.get(FIRMWARE)[component] ?? FACTORY_VERSION;

/** Parses a firmware image, which begins with a line such as "firmware bios 2.1". Undefined: the bytes are not such an image. */
export function readFirmware(bytes: Buffer): { readonly component: Component; readonly version: string } | undefined {
  const [, component, version] = /^firmware (\w+) ([\w.+-]{1,32})\s/.exec(`${bytes.toString('latin1', 0, 128)}\n`) ?? [];
  return isComponent(component) ? { component, version: version! } : undefined;
}
