/** The firmware of a simulated machine: what components there are, and what an image for one of them looks like. */
import type { HardwareState } from './hardware';

export const COMPONENTS = ['bios', 'bmc', 'nic'] as const;
export type Component = (typeof COMPONENTS)[number];
export const isComponent = (word: string | undefined): word is Component => COMPONENTS.includes(word as Component);
export type FirmwareVersions = Readonly<Partial<Record<Component, string>>>;

const FACTORY = '1.0';
export const versionOf = (state: HardwareState, component: Component): string => state.firmware?.[component] ?? FACTORY;

/** A firmware image begins with a line such as "firmware bios 2.1"; what follows is not looked at. Undefined: it is none. */
export function readFirmware(bytes: Buffer): { readonly component: Component; readonly version: string } | undefined {
  const [, component, version] = /^firmware (\w+) ([\w.+-]{1,32})\s/.exec(`${bytes.toString('latin1', 0, 128)}\n`) ?? [];
  return isComponent(component) ? { component, version: version! } : undefined;
}
