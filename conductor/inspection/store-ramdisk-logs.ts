/** Stores the logs that a ramdisk sends with its inventory, one file per report with Ironic's file name ([agent]deploy_logs_collect). */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { reasonOf } from '../../model/errors';
import type { NodeRecord } from '../../model/records';
import type { NodeTask } from '../core/node-task';

/** 2026-06-01-12-00-00 */
const stampOf = (now: number): string => new Date(now).toISOString().slice(0, 19).replace('T', '-').replaceAll(':', '-');
const logsFileName = ({ uuid, name, instance_uuid: instance }: NodeRecord, label: string, now: number): string =>
  `${[uuid, name, instance, label, stampOf(now)].filter((part) => part !== null && part !== '').join('_')}.tar.gz`;

/**
 * Stores the logs (a base64 archive) if the option asks for them after this result. A write error is logged and does not fail the
 * inspection.
 */
export async function storeRamdiskLogs(task: NodeTask, logs: unknown, failed: boolean): Promise<void> {
  const { options } = task.context;
  const when = options['agent.deploy_logs_collect'];
  if (when === 'never' || (when === 'on_failure' && !failed)) return;
  if (typeof logs !== 'string' || logs === '') {
    task.log.warn('the ramdisk sent no logs with its inventory');
    return;
  }
  const folder = options['agent.deploy_logs_local_path'];
  const path = join(folder, logsFileName(task.node, 'inspect', task.clock.now()));
  try {
    await mkdir(folder, { recursive: true, mode: 0o750 });
    await writeFile(path, Buffer.from(logs, 'base64'), { mode: 0o640 });
    task.log.info('stored the logs of the ramdisk', { path });
  } catch (error) {
    task.log.warn('could not store the logs of the ramdisk', { path, reason: reasonOf(error) });
  }
}
