/** Certificates of erasure: what an agent reports of its disks, signed by the site's key (docs/erase.md). */
import { erasedDisksIn, hasErasedData, methodNamed, SKIPS, type ErasedDisk } from '../../model/agent/erasure';
import { timestamp } from '../../model/clock';
import { newUuid } from '../../model/idents';
import type { JsonObject, NodeRecord } from '../../model/records';
import { shortened } from '../../model/text';
import { signingKey } from '../../wire/signing/signing-key';
import type { Context } from './context';
import { entryOf } from './history';
import type { NodeTask } from './node-task';

const MAX_NAME = 255;
/** A step of an agent that erases disks, and has succeeded. */
interface ErasureReport {
  /** `interface.step`. */
  readonly step: string;
  /** The agent's name of the command, of which there is one certificate, however often the result is read. */
  readonly command: string;
  readonly result: unknown;
}

function diskOf({ method, skipped, sample, overwrite_seconds: pass, ...disk }: ErasedDisk): JsonObject {
  const { name, serial, wwn, model, size } = disk;
  const facts = { name, serial, wwn, model, size };
  const isErased = hasErasedData({ method });
  if (method === null) return { ...facts, erased: false, reason: SKIPS[skipped!] };
  const { title, proves } = methodNamed(method);
  const { started_at: started, ended_at: ended, seconds } = disk;
  return {
    ...facts,
    erased: isErased,
    // What is left on the disk is told apart by what the method proves.
    method: title,
    proves,
    started_at: started,
    ended_at: ended,
    seconds,
    ...(pass === null ? {} : { seconds_of_an_overwriting_pass: pass }),
    sample: sample === null ? null : { ...sample },
  };
}

interface Subject {
  readonly uuid: string;
  readonly node: NodeRecord;
  readonly report: ErasureReport;
  readonly disks: readonly ErasedDisk[];
  readonly fingerprint: string;
}
function documentOf({ host, clock }: Context, { uuid, node, report, disks, fingerprint }: Subject): string {
  const { erase_request: request, erase_choice: choice, agent_version: agent } = node.driver_internal_info;
  const isManual = node.target_provision_state === 'manageable';
  const document = {
    type: 'certificate of erasure',
    format: 1,
    uuid,
    issued_at: timestamp(clock.now()),
    node: { uuid: node.uuid, name: node.name, owner: node.owner },
    instance: {
      uuid: request?.instance_uuid ?? null,
      name: request?.instance_name ?? null,
      lessee: request?.lessee ?? null,
    },
    requested: {
      by_user: request?.user ?? null,
      of_project: request?.project ?? null,
      request_id: request?.request_id ?? null,
      at: request?.requested_at ?? null,
      // A manual cleaning runs the steps of its own request.
      erase: isManual ? null : (choice?.erase ?? null),
      keep: choice?.keep ?? [],
    },
    released: request?.released
      ? {
          by_user: request.released.user,
          of_project: request.released.project,
          request_id: request.released.request_id,
          at: request.released.requested_at,
        }
      : null,
    step: report.step,
    disks: disks.map(diskOf),
    reported_by: { agent: typeof agent === 'string' ? shortened(agent, MAX_NAME) : null, command: report.command },
    issued_by: { conductor: host, key: fingerprint },
  };
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** A line for the history of the node. */
function note(task: NodeTask, event: string): void {
  const { context, node } = task;
  task.log.info(event);
  const isWanted = node.driver_internal_info.erase_choice !== undefined || context.options['conductor.record_step_flows_in_history'];
  const row = isWanted ? entryOf(context, node, { type: 'erasure', event, error: false }) : undefined;
  if (row) task.note({}, {}, [row]);
}

/** Issues the certificate of a step. An agent that reports nothing of each disk gets none: nobody proved anything. Throws Error. */
export async function certifyErasure(task: NodeTask, report: ErasureReport): Promise<void> {
  const { context, node } = task;
  const disks = erasedDisksIn(report.result);
  if (!disks || report.command === '') {
    note(task, `The agent reported no result for each disk of step ${report.step}: there is no certificate of erasure`);
    return;
  }
  const command = shortened(report.command, MAX_NAME);
  const key = await signingKey(context.options['erasure.signing_key'], context.random);
  const uuid = newUuid(context.random);
  const document = documentOf(context, { uuid, node, report: { ...report, command }, disks, fingerprint: key.fingerprint });
  const erased = disks.filter(hasErasedData);
  const skipped = disks.filter(({ method }) => method === null).length;
  const isNew = await context.store.erasures.issue({
    uuid,
    node_uuid: node.uuid,
    node_name: node.name,
    owner: node.owner,
    lessee: node.driver_internal_info.erase_request?.lessee ?? node.lessee,
    instance_uuid: node.driver_internal_info.erase_request?.instance_uuid ?? null,
    step: report.step,
    erased: erased.length,
    skipped,
    serials: [...new Set(erased.flatMap(({ serial }) => serial ?? []))],
    command,
    document,
    signature: key.sign(document),
    public_key: key.publicKey,
    key_fingerprint: key.fingerprint,
  });
  if (isNew)
    note(
      task,
      `Certificate of erasure ${uuid}: ${erased.length} of ${disks.length} disks erased by ${report.step}, ${skipped} left as they were`,
    );
}

const DAY_MS = 86_400_000;
const AT_MOST = 1000;
/** Removes the certificates that [erasure]keep_days does not keep, some of them at a time. */
export async function trimErasures({ options, clock, store, log }: Context): Promise<number> {
  const days = options['erasure.keep_days'];
  if (days === 0) return 0;
  const gone = await store.erasures.trim({ before: timestamp(clock.now() - days * DAY_MS), atMost: AT_MOST });
  if (gone > 0) log.info(`${gone} certificates of erasure were removed: they are older than [erasure]keep_days`);
  return gone;
}
