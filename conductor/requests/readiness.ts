/** The readiness checks that need the node's conductor: interfaces, machine, images. They lock and change nothing. */
import { configuredRamdisk, wholePair } from '../../drivers/common/configured-ramdisk';
import { checkNamedImage } from '../../drivers/common/images';
import { kexecObstacle, residentObstacle, wantsKexec, wantsResidentKexec } from '../../drivers/common/kexec-request';
import { reasonOf } from '../../model/errors';
import type { InterfaceKind } from '../../model/records';
import type { Probes } from '../../model/readiness';
import { differencesText } from '../../model/rules/default-config';
import { withoutCredentials } from '../../model/urls';
import type { Context } from '../core/context';
import { countTowards, DEPLOYMENTS } from '../core/concurrency';
import { withTask } from '../core/task';
import type { NodeTask } from '../core/node-task';
import { missingDeploySteps } from '../steps/deploy-request';
import { defaultRowsOf } from './default-config';
import { validationOf } from './validate';

/** Limit of all checks together. */
const PROBE_MS = 8_000;
const KINDS: readonly InterfaceKind[] = ['power', 'deploy', 'boot', 'management', 'network', 'storage'];
const INSTANCE_IMAGES = ['image_source', 'boot_iso', 'kernel', 'ramdisk'] as const;
const RAMDISK_IMAGES = ['kernel', 'ramdisk'] as const;

/** Does not check the traits, for which the readiness has a check of its own. */
async function validated(task: NodeTask): Promise<Probes['validation']> {
  const results: Partial<Record<InterfaceKind, { result: boolean; reason?: string }>> = {};
  for (const kind of KINDS) results[kind] = await validationOf(task, kind, false);
  return results;
}

/** The images that a deployment fetches by URL. Those of the options may be files anywhere. */
function imagesOf(task: NodeTask): readonly { readonly name: string; readonly href: string; readonly trusted: boolean }[] {
  const { node, options } = task;
  const { byArch, common } = configuredRamdisk(options, node, 'deploy');
  const configured = /pxe|http/.test(node.boot_interface ?? '') ? (wholePair(byArch) ?? common) : undefined;
  const named: readonly (readonly [name: string, own: unknown, configured?: unknown])[] = [
    ...INSTANCE_IMAGES.map((name) => [name, node.instance_info[name]] as const),
    ...RAMDISK_IMAGES.map((name) => [`deploy_${name}`, node.driver_info[`deploy_${name}`], configured?.[name]] as const),
  ];
  return named.flatMap(([name, own, configuredHref]) => {
    const href = own ?? configuredHref;
    return typeof href === 'string' && href !== '' ? [{ name, href, trusted: own === undefined || own === null }] : [];
  });
}

/** An instance that is not there yet gets its agent with it. */
async function residentProblem(task: NodeTask): Promise<string | undefined> {
  if (task.node.provision_state !== 'active' || !wantsResidentKexec(task.node, task.options)) return undefined;
  return residentObstacle(task, await task.residentAgent());
}

export async function probeReadiness(given: Context, uuid: string): Promise<Probes> {
  const ended = new AbortController();
  const context: Context = {
    ...given,
    signal: AbortSignal.any([given.signal, ended.signal]),
    // The reason of the first attempt is enough.
    options: { ...given.options, ...given.hardware.impatient },
  };
  const late = given.clock.sleep(PROBE_MS, context.signal).then(
    () => undefined,
    () => undefined,
  );
  /** Needed because a driver may ignore its signal. */
  const inTime = async <T>(work: () => Promise<T>): Promise<T | { readonly error: string }> => {
    const silent = late.then(() => ({ error: `no answer within ${PROBE_MS / 1000} s` }));
    return Promise.race([work().catch((error: unknown) => ({ error: reasonOf(error) })), silent]);
  };
  const isError = (value: unknown): value is { readonly error: string } => typeof value === 'object' && value !== null && 'error' in value;
  try {
    return await withTask(context, uuid, { purpose: 'readiness', lock: 'shared' }, async (task) => {
      const { options } = task;
      const validation = await inTime(() => validated(task));
      const valid = (kind: InterfaceKind): boolean => !isError(validation) && validation[kind]?.result === true;
      const power = async (): Promise<Probes['power']> => {
        if (!valid('power') || task.driver.power.throughAgent) return undefined;
        return inTime(async () => ({ state: await task.driver.power.get(task) }));
      };
      const bootMode = async (): Promise<Probes['bootMode']> => {
        const control = valid('management') ? task.driver.management.bootMode : undefined;
        const now = control ? await inTime(() => control.get(task)) : null;
        return { now: typeof now === 'string' ? now : task.node.boot_mode, changeable: control !== undefined };
      };
      const images = Promise.all(
        imagesOf(task).map(async ({ name, href, trusted }) => {
          const found = await inTime(async () => checkNamedImage(name, href, trusted, task));
          return { name, href: withoutCredentials(href), error: isError(found) ? found.error : undefined };
        }),
      );
      const [powered, booted, reached, deploying, missingSteps, defaults] = await Promise.all([
        power(),
        bootMode(),
        images,
        countTowards(context, DEPLOYMENTS),
        missingDeploySteps(task),
        inTime(() => defaultRowsOf(task)),
      ]);
      return {
        validation: isError(validation) ? { power: { result: false, reason: validation.error } } : validation,
        power: powered,
        bootMode: booted,
        images: reached,
        deploying,
        missingSteps,
        differences: isError(defaults) ? [] : differencesText(defaults.rows),
        kexecObstacle: valid('deploy') && wantsKexec(task.node, options) ? kexecObstacle(task) : undefined,
        residentObstacle: valid('deploy') ? await residentProblem(task) : undefined,
        cleans: task.node.automated_clean ?? options['conductor.automated_clean'],
      };
    });
  } finally {
    ended.abort();
  }
}
