/** The virtual drives of a machine, and what is in them. */
import type { HardwareState } from './hardware';

export const DRIVES = {
  Cd: { name: 'Virtual CD', types: ['CD', 'DVD'] },
  Usb: { name: 'Virtual USB stick', types: ['USBStick', 'Floppy'] },
} as const;
export type Drive = keyof typeof DRIVES;
export const isDrive = (word: string | undefined): word is Drive => Object.hasOwn(DRIVES, word ?? '');

/** What a BMC holds ready for its machine to read. */
export interface Medium {
  readonly url: string;
  readonly username?: string;
  readonly password?: string;
  readonly writeProtected: boolean;
  /** Connected, but the machine does not see it. */
  readonly hidden?: true;
}
export type Media = { readonly [drive in Drive]?: Medium | undefined };

/** What the machine finds in a drive. */
export function mediumIn({ media }: HardwareState, drive: Drive): Medium | undefined {
  const medium = media?.[drive];
  return medium?.hidden ? undefined : medium;
}
