/** What a machine can boot over HTTP: images in its virtual drives, and the image at a URL (UEFI HTTP boot). */
import { hardwarePart, type Hardware } from './hardware';

export const DRIVES = {
  Cd: { name: 'Virtual CD', types: ['CD', 'DVD'] },
  Usb: { name: 'Virtual USB stick', types: ['USBStick', 'Floppy'] },
} as const;
export type Drive = keyof typeof DRIVES;
export const isDrive = (word: string | undefined): word is Drive => Object.hasOwn(DRIVES, word ?? '');

/** An image that the BMC offers to its machine as a medium. */
export interface Medium {
  readonly url: string;
  readonly username?: string;
  readonly password?: string;
  readonly writeProtected: boolean;
  /** The BMC has connected the image but does not show it to the machine (`Inserted: false`). */
  readonly hidden?: true;
}
type Media = { readonly [drive in Drive]?: Medium | undefined };
export const MEDIA = hardwarePart<Media>('media', {});

/** The medium that the machine sees in a drive. */
export function mediumIn(hardware: Hardware, drive: Drive): Medium | undefined {
  const medium = hardware.get(MEDIA)[drive];
  return medium?.hidden ? undefined : medium;
}

/** The URL of the image for UEFI HTTP boot (`HttpBootUri`). */
export const HTTP_BOOT_URI = hardwarePart<string | null>('httpBootUri', null);
