/** NVMe: sanitize (base specification 2.0 §5.24) and format (§5.14). */
import type { Device } from '../disk/device';
import type { Run } from '../system/run';
import { untilOver, type Erasing, type Method } from './erasing';

interface Controller {
  /** Optional admin commands: bit 1 format, bit 3 management of namespaces. */
  readonly oacs?: number;
  /** Format: bit 0 formats all namespaces, bit 1 erases all, bit 2 knows the cryptographic erase. */
  readonly fna?: number;
  /** Sanitize: bit 0 crypto erase, bit 1 block erase. */
  readonly sanicap?: number;
}
const has = (bits: number | undefined, bit: number): boolean => (((bits ?? 0) >> bit) & 1) === 1;
const isNvme = ({ disk, settings }: Erasing): boolean =>
  disk.name.startsWith('/dev/nvme') && settings['agent_enable_nvme_secure_erase'] !== false;
const identified = async ({ disk, query }: Erasing): Promise<Controller> =>
  JSON.parse(await query('nvme', ['id-ctrl', disk.name, '--output-format=json'])) as Controller;

/** Whether the namespace is the only one of its subsystem: what erases all of them may not erase a disk that nobody named. */
async function isAlone({ disk, query, log }: Erasing, { oacs }: Controller): Promise<boolean> {
  const listed = await query('nvme', ['list-ns', disk.name, ...(has(oacs, 3) ? ['--all'] : [])]).catch((error: unknown) => {
    log.info(`${disk.name}: the namespaces of the controller cannot be listed: ${String(error)}`);
    return '';
  });
  return listed.match(/\]:\s*0x[0-9a-f]/gi)?.length === 1;
}

type Sanitized = 'never' | 'done' | 'failed';
/** SSTAT bits 2:0: 0 never, 1 and 4 done, 2 in progress, 3 failed. SPROG: 65536ths. */
export async function nvmeSanitizeState(query: Run, name: string, progress: (percent: number) => void): Promise<Sanitized | undefined> {
  const text = await query('nvme', ['sanitize-log', name]);
  const [, done = '0'] = /\(SPROG\)\s*:\s*(\d{1,6})/.exec(text) ?? [];
  const [, status] = /\(SSTAT\)\s*:\s*(?:0x)?([0-9a-f]{1,4})/i.exec(text) ?? [];
  if (status === undefined) throw new Error('the log of sanitize operations cannot be read');
  const state = Number.parseInt(status, 16) & 0b111;
  if (state === 2) {
    progress(Math.min(100, (100 * Number(done)) / 65_536));
    return undefined;
  }
  return state === 3 ? 'failed' : state === 0 ? 'never' : 'done';
}

/** The arguments that end the failed state, in which a disk takes no other command. */
export const NVME_EXIT_FAILURE = ['sanitize', '--ause', '--sanact=1'];
async function sanitize(device: Device, { disk, query, clock, progress, log }: Erasing, action: string): Promise<void> {
  const over = (report: (percent: number) => void) => untilOver(clock, () => nvmeSanitizeState(query, disk.name, report));
  // One of an agent that was interrupted may still run: it says nothing of this one.
  const before = await over(() => {});
  if (before === 'failed') await device.command('nvme', NVME_EXIT_FAILURE);
  await device.command('nvme', ['sanitize', '--ause', `--sanact=${action}`]);
  const after = await over(progress);
  if (after === 'done') return;
  await device
    .command('nvme', NVME_EXIT_FAILURE)
    .catch((error: unknown) => log.warn(`${disk.name}: the failed state remains: ${String(error)}`));
  throw new Error(after === 'failed' ? 'the disk reports that the sanitize operation failed' : 'the disk did not begin');
}

const sanitizing = (name: 'nvme-sanitize-crypto' | 'nvme-sanitize-block', bit: number, action: string, more: Partial<Method>): Method => ({
  name,
  secure: true,
  ...more,
  fits: async (erasing) => {
    if (!isNvme(erasing)) return false;
    const controller = await identified(erasing);
    return has(controller.sanicap, bit) && (await isAlone(erasing, controller));
  },
  erase: (device, erasing) => sanitize(device, erasing, action),
});
/** @param setting of the secure erase: 2 cryptographic, 1 user data */
const formatting = (name: 'nvme-format-crypto' | 'nvme-format-user-data', setting: 1 | 2): Method => ({
  name,
  secure: true,
  express: true,
  fits: async (erasing) => {
    if (!isNvme(erasing)) return false;
    const controller = await identified(erasing);
    const { oacs, fna } = controller;
    if (!has(oacs, 1) || (setting === 2 && !has(fna, 2))) return false;
    const isOfAll = has(fna, 0) || has(fna, 1);
    return !isOfAll || isAlone(erasing, controller);
  },
  erase: async (device) => void (await device.command('nvme', ['format', '--ses', String(setting), '--force'])),
});

export const NVME_METHODS: readonly Method[] = [
  sanitizing('nvme-sanitize-crypto', 0, '4', { express: true }),
  sanitizing('nvme-sanitize-block', 1, '2', {}),
  formatting('nvme-format-crypto', 2),
  formatting('nvme-format-user-data', 1),
];
