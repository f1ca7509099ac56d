/** ATA: the feature sets Sanitize Device (ACS-4 §4.17) and Security. */
import { reasonOf } from '../../model/errors';
import type { Device } from '../disk/device';
import type { Run } from '../system/run';
import { untilOver, type Erasing, type Method } from './erasing';

// A SATA disk may be behind a SAS controller. Bridges of USB do not pass security commands reliably.
export const isAta = ({ disk, settings }: Pick<Erasing, 'disk' | 'settings'>): boolean =>
  /^\/dev\/(sd|hd)/.test(disk.name) && disk.tran !== 'usb' && settings['agent_enable_ata_secure_erase'] !== false;
/** What the disk says of itself; empty if hdparm fails. */
const identity = (name: string, query: Run): Promise<string> => query('hdparm', ['-I', name]).catch(() => '');

/** The enabled features and commands of hdparm -I. */
export async function ataFeatures(name: string, query: Run): Promise<ReadonlySet<string>> {
  const lines = (await identity(name, query)).split('\n').map((line) => line.trim());
  return new Set(lines.filter((line) => line.startsWith('*')).map((line) => line.slice(1).trim()));
}

/** ACS-4 §4.17.4: the states of the feature set. Undefined: the disk works. */
export async function ataSanitizeState(
  query: Run,
  name: string,
  progress: (percent: number) => void,
): Promise<'done' | 'failed' | 'frozen' | 'idle' | undefined> {
  const text = await query('hdparm', ['--sanitize-status', name], { withErrors: true });
  // hdparm then shows registers that nobody filled, which read as an idle disk.
  if (/missing sense data/i.test(text)) throw new Error('its controller does not pass on the state of the sanitize operation');
  const [, state] = /State:\s*SD(\d)/.exec(text) ?? [];
  if (state === undefined) throw new Error('the state of the sanitize operation cannot be read');
  if (state === '2') {
    progress(Math.min(100, Number(/Progress:[^(\n]{0,40}\((\d{1,3})%\)/.exec(text)?.[1] ?? 0)));
    return undefined;
  }
  if (state === '1') return 'frozen';
  if (state === '3' || /Completed With Error/i.test(text)) return 'failed';
  return /Completed Without Error/i.test(text) || state === '4' ? 'done' : 'idle';
}
async function sanitize(device: Device, { disk, query, clock, progress }: Erasing, order: string): Promise<void> {
  const over = (report: (percent: number) => void) => untilOver(clock, () => ataSanitizeState(query, disk.name, report));
  if ((await over(() => {})) === 'frozen') throw new Error('the disk is frozen by the firmware and takes no sanitize command');
  await device.command('hdparm', ['--yes-i-know-what-i-am-doing', order]);
  const after = await over(progress);
  if (after !== 'done') throw new Error(`the disk does not report that the sanitize operation succeeded: ${after}`);
}
const sanitizing = (name: 'ata-sanitize-crypto' | 'ata-sanitize-block', command: string, order: string, more: Partial<Method>): Method => ({
  name,
  secure: true,
  ...more,
  fits: async (erasing) => {
    if (!isAta(erasing)) return false;
    const features = await ataFeatures(erasing.disk.name, erasing.query);
    if (!features.has('SANITIZE feature set') || !features.has(command)) return false;
    // Firmware often freezes it, and controllers hide its state: then the next method is better than none.
    return ataSanitizeState(erasing.query, erasing.disk.name, () => {}).then(
      (state) => state !== 'frozen',
      (error: unknown) => {
        erasing.log.info(`${erasing.disk.name}: no sanitize command: ${reasonOf(error)}`);
        return false;
      },
    );
  },
  erase: (device, erasing) => sanitize(device, erasing, order),
});

/** The lines below `Security:` in the output of hdparm -I; empty if the disk lacks the feature or hdparm fails. */
async function ataSecurity(name: string, query: Run): Promise<ReadonlySet<string>> {
  const section = /\nSecurity: ?\n((?:\t.*(?:\n|$))*)/.exec(await identity(name, query))?.[1] ?? '';
  return new Set(section.split('\n').map((line) => line.trim().replaceAll(/\t+/g, ' ')));
}

/** The ATA password during the erasure, which removes it. hdparm before 9.51 took NULL for that word, later versions for no password. */
const PASSWORDS = ['NULL', ''] as const;
const withPassword = (option: string, password: string): readonly string[] => ['--user-master', 'u', option, password];
const ata = (device: Device, option: string, password: string): Promise<string> => device.command('hdparm', withPassword(option, password));

/** Removes a password that an erasure left. Returns what the disk then says. @param order gives the disk's program its arguments */
async function unlocked(
  name: string,
  order: (args: readonly string[]) => Promise<unknown>,
  { query, log }: Pick<Erasing, 'query' | 'log'>,
): Promise<ReadonlySet<string>> {
  let security = await ataSecurity(name, query);
  for (const password of PASSWORDS) {
    for (const [wanted, option] of [
      ['not locked', '--security-unlock'],
      ['not enabled', '--security-disable'],
    ] as const) {
      if (security.has(wanted)) continue;
      const ended = order(withPassword(option, password));
      await ended.catch((error: unknown) => log.info(`${name}: ${option} failed: ${reasonOf(error)}`));
      security = await ataSecurity(name, query);
    }
  }
  return security;
}
/** A disk that lost its power in an erasure is locked by the password of the erasure, and cannot be read. */
export async function unlockAfterPowerLoss(name: string, query: Run, log: Erasing['log']): Promise<void> {
  const security = await ataSecurity(name, query);
  if (!security.has('supported') || !security.has('locked') || !security.has('not frozen')) return;
  log.warn(`${name}: it is locked by a password; the agent tries that of its erasures`);
  await unlocked(name, (args) => query('hdparm', [...args, name]), { query, log });
}

async function secureErase(device: Device, erasing: Erasing, order: string): Promise<void> {
  const { disk, query } = erasing;
  if (!(await ataSecurity(disk.name, query)).has('not frozen'))
    throw new Error('the disk is frozen by the firmware and takes no security command');
  const unlock = (): ReturnType<typeof unlocked> => unlocked(disk.name, (args) => device.command('hdparm', args), erasing);
  const security = await unlock();
  if (!security.has('not locked')) throw new Error('the disk has a security password that the agent does not know');
  await ata(device, '--security-set-pass', PASSWORDS[0]);
  try {
    await ata(device, order, PASSWORDS[0]);
  } catch (error) {
    // A locked disk refuses everything else: no other method could erase it, and no system could use it.
    await unlock();
    throw error;
  }
  if (!(await ataSecurity(disk.name, query)).has('not enabled')) {
    await unlock();
    throw new Error('the disk still had its security enabled after the erasure');
  }
}
const ENHANCED = 'supported: enhanced erase';
const securing = (name: 'ata-secure-erase' | 'ata-secure-erase-enhanced', order: string, isEnhanced: boolean): Method => ({
  name,
  secure: true,
  fits: async (erasing) => {
    if (!isAta(erasing)) return false;
    const security = await ataSecurity(erasing.disk.name, erasing.query);
    return security.has('supported') && security.has(ENHANCED) === isEnhanced;
  },
  erase: (device, erasing) => secureErase(device, erasing, order),
});

export const ATA_METHODS: readonly Method[] = [
  sanitizing('ata-sanitize-crypto', 'CRYPTO_SCRAMBLE_EXT command', '--sanitize-crypto-scramble', { express: true }),
  sanitizing('ata-sanitize-block', 'BLOCK_ERASE_EXT command', '--sanitize-block-erase', {}),
  securing('ata-secure-erase-enhanced', '--security-erase-enhanced', true),
  securing('ata-secure-erase', '--security-erase', false),
];
