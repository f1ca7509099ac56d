/** Deployment of bootable containers: the agent runs the installer that the container has, which writes the disk. */
import { Fault, invalidParameter, reasonOf } from '../../model/errors';
import { str, toBoolean } from '../../model/python';
import { timeoutSignal } from '../../wire/timeout-signal';
import { MAX_AUTHORIZED_KEYS, readReference } from '../../wire/oci/bootc-arguments';
import { loginsFor } from '../../wire/oci/logins';
import { setBootDevice } from '../common/boot-settings';
import { type DeployInterface, type Outcome, type Task, done, failed } from '../interfaces';
import { checkPullSecrets, identifyOciImage } from '../oci/images';
import { deliveredConfigdrive } from './configdrive';
import {
  agentDeploy,
  agentProperties,
  deploymentSteps,
  onlyWhenWritingImage,
  prepareInstance,
  prepareWithoutImage,
  validateAgentDeploy,
} from './deploy';
import { downloadSource } from './direct';
import { runAgentStep } from './steps';

/** Throws InvalidImageRef for what is no reference to an image in a registry, InvalidParameterValue for the settings of the installer. */
async function validate(task: Task): Promise<void> {
  await validateAgentDeploy(task);
  const { image_source: source, bootc_authorized_keys: keys, bootc_tpm2_luks: encrypts } = task.node.instance_info;
  if (typeof source !== 'string' || readReference(source) === undefined)
    throw new Fault('InvalidImageRef', { image_href: str(source ?? null) });
  if (keys && (typeof keys !== 'string' || keys.length > MAX_AUTHORIZED_KEYS))
    throw invalidParameter(`instance_info/bootc_authorized_keys must be a text of at most ${MAX_AUTHORIZED_KEYS} characters`);
  if (encrypts !== undefined && encrypts !== null && toBoolean(encrypts) === undefined)
    throw invalidParameter('instance_info/bootc_tpm2_luks must be true or false');
  checkPullSecrets(task.node);
}

/**
 * The entry `auth` of container tools for the image's registry: base64 of `user:password`, or the node's secret if it is no such pair.
 * Undefined: the registry gets none. Throws an Error if the file of logins cannot be read.
 */
async function registryAuth({ node, options }: Task, registry: string): Promise<string | undefined> {
  const [login] = await loginsFor(registry, undefined, { secrets: node, permitsUser: true, options });
  if (!login) return undefined;
  return login.username === '' ? login.password : base64(`${login.username}:${login.password}`);
}
const base64 = (text: string): string => Buffer.from(text).toString('base64');

/** Milliseconds: requests of clients wait for it. */
const MOST_LOOK_MS = 30_000;
/** As Ironic's: an image that the registry does not describe is not supported. */
async function supports(task: Task): Promise<boolean> {
  const { image_source: source } = task.node.instance_info;
  if (typeof source !== 'string' || readReference(source) === undefined) return false;
  try {
    const signal = timeoutSignal(MOST_LOOK_MS, task.signal);
    return (await identifyOciImage({ ...task, signal }, source, downloadSource(task))).kind === 'bootc';
  } catch (error) {
    task.signal.throwIfAborted();
    task.log.warn('The registry does not say whether the image is a bootable container', { image: source, reason: reasonOf(error) });
    return false;
  }
}

async function executeInstall(task: Task): Promise<Outcome> {
  const source = String(task.node.instance_info['image_source']);
  const reference = readReference(source);
  if (!reference) throw new Fault('InvalidImageRef', { image_href: source });
  const auth = await registryAuth(task, reference.registry);
  const args = {
    image_source: source,
    configdrive: (await deliveredConfigdrive(task)) ?? null,
    // Not a protection: the real agent decodes it.
    oci_pull_secret: auth === undefined ? null : base64(auth),
  };
  return runAgentStep(task, 'deploy', { interface: 'deploy', step: 'execute_bootc_install', priority: 80, args });
}

/** Machines of this maker take a change of the boot order for a reason to undo what the installer wrote to the firmware's variables. */
const KEEPS_OWN_ORDER = 'lenovo';
async function setBootToDisk(task: Task): Promise<Outcome> {
  const { node } = task;
  const vendor = node.properties['vendor'];
  if (typeof vendor === 'string' && vendor.toLowerCase() === KEEPS_OWN_ORDER) return done;
  try {
    await setBootDevice(task, 'disk', true);
    return done;
  } catch (error) {
    return failed(`Failed to change the boot device to disk when deploying node ${node.uuid}: ${reasonOf(error)}`);
  }
}

export const bootcDeploy: DeployInterface = {
  ...agentDeploy,
  properties: agentProperties,
  supports,
  validate,
  steps: deploymentSteps({
    execute_bootc_install: [80, onlyWhenWritingImage(executeInstall)],
    prepare_instance_boot: [60, prepareInstance],
    set_boot_to_disk: [60, setBootToDisk],
  }),
  prepare: prepareWithoutImage,
};
