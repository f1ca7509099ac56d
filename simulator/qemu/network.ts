/** How machines in QEMU are on a network: by a tap device on a bridge each, or by QEMU's own user-mode network. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

export interface QemuNetwork {
  /** A -netdev backend for each interface. */
  readonly backends: readonly string[];
  close(): Promise<void>;
}

/** Needs no rights: QEMU answers DHCP, and what a machine sends leaves the host as its own. Nobody can reach the machine. */
export const userNetwork = (macs: readonly string[]): QemuNetwork => ({ backends: macs.map(() => 'user'), close: async () => {} });

/**
 * Root. @param namespace the bridge's network namespace; absent: this process's
 * @throws when a device cannot be made, as when a machine with this address runs already
 */
export async function bridgeNetwork(macs: readonly string[], bridge: string, namespace?: string): Promise<QemuNetwork> {
  const ip = (...words: readonly string[]): Promise<unknown> =>
    run('ip', [...(namespace === undefined ? [] : ['-n', namespace]), ...words], { timeout: 30_000 });
  // The name of a device has 15 characters at most.
  const taps = macs.map((mac) => `tap${mac.replaceAll(':', '').slice(4)}`);
  const remove = (tap: string): Promise<unknown> => ip('tuntap', 'del', tap, 'mode', 'tap').catch(() => {});
  const made: string[] = [];
  const close = async (): Promise<void> => {
    for (const tap of made) await remove(tap);
  };
  try {
    for (const tap of taps) {
      // One that was left behind; one that is in use stays, and cannot be made again.
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
