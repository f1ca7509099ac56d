/** Networks of machines in QEMU: tap devices on a bridge, or QEMU's user-mode network. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface QemuNetwork {
  /** A -netdev backend for each interface. */
  readonly backends: readonly string[];
  close(): Promise<void>;
}

/** Needs no privileges. QEMU answers DHCP and forwards the machine's connections as the host's own. No host can connect to the machine. */
export const userNetwork = (macs: readonly string[]): QemuNetwork => ({ backends: macs.map(() => 'user'), close: async () => {} });

/**
 * Needs root.
 * @param namespace the bridge's network namespace; absent: this process's
 * @throws when a device cannot be made, for example because a machine with this address is running
 */
export async function bridgeNetwork(macs: readonly string[], bridge: string, namespace?: string): Promise<QemuNetwork> {
  const ip = (...words: readonly string[]): Promise<unknown> =>
    run('ip', [...(namespace === undefined ? [] : ['-n', namespace]), ...words], { timeout: 30_000 });
  // The kernel allows at most 15 characters in a device's name, so the first two bytes of the MAC address are left out.
  const taps = macs.map((mac) => `tap${mac.replaceAll(':', '').slice(4)}`);
  const remove = (tap: string): Promise<unknown> => ip('tuntap', 'del', tap, 'mode', 'tap').catch(() => {});
  const made: string[] = [];
  const close = async (): Promise<void> => {
    for (const tap of made) await remove(tap);
  };
  try {
    for (const tap of taps) {
      // Removes a device that a killed simulator left. A device in use stays, and the next command fails.
      await remove(tap);
      await ip('tuntap', 'add', tap, 'mode', 'tap');
      made.push(tap);
      await ip('link', 'set', tap, 'master', bridge, 'up');
    }
  } catch (error) {
    await close();
    throw error;
  }
  return { backends: taps.map((tap) => `tap,ifname=${tap},script=no,downscript=no`), close };
}
