/** Deployment of bootable containers: the agent runs the installer that the container has, which writes the disk. */
import { MAX_AUTHORIZED_KEYS, readReference } from '../../model/agent/bootc-arguments';
import { Fault, invalidParameter, reasonOf } from '../../model/errors';
import { str, toBoolean } from '../../model/python';
import { imageServerLogin } from '../../wire/image-servers';
import { timeoutSignal } from '../../wire/timeout-signal';
import { setBootDevice } from '../common/boot-settings';
import { type DeployInterface, type Outcome, type Task, done, failed } from '../interfaces';
import { isOciUrl } from '../../wire/oci/reference';
import { identifyOciImage } from '../oci/images';
import { deliveredConfigdrive } from './configdrive';
import { downloadSource } from './direct';
import {
  agentDeploy,
  agentProperties,
  deploymentSteps,
  onlyWhenWritingImage,
  prepareInstance,
  prepareWithoutImage,
  validateAgentDeploy,
} from './deploy';
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
  registryAuth(task, source);
}

/**
 * The entry `auth` of container tools for the image's registry: base64 of `user:password`. Undefined: the registry gets none. Ironic would
 * send the password alone where a secret has both, which no container tool understands. Throws InvalidParameterValue.
 */
function registryAuth({ node, options }: Task, source: string): string | undefined {
  for (const [field, info] of Object.entries({ instance_info: node.instance_info, driver_info: node.driver_info })) {
    const secret = info['image_pull_secret'];
    if (secret && typeof secret !== 'string') throw invalidParameter(`${field}/image_pull_secret must be a text`);
    if (typeof secret === 'string' && secret !== '') return secret.includes(':') ? base64(secret) : secret;
  }
  const login = imageServerLogin(source.replace('oci:', 'https:'), options);
  return login && base64(`${login.username}:${login.password}`);
}
const base64 = (text: string): string => Buffer.from(text).toString('base64');

async function executeInstall(task: Task): Promise<Outcome> {
  const source = String(task.node.instance_info['image_source']);
  const auth = registryAuth(task, source);
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

/** Milliseconds: requests of clients wait for it. */
const MOST_LOOK_MS = 30_000;
/** Whether the registry has a bootable container there, and no disk image. */
async function supports(task: Task): Promise<boolean> {
  const source = task.node.instance_info['image_source'];
  if (typeof source !== 'string' || !isOciUrl(source)) return false;
  try {
    const signal = timeoutSignal(MOST_LOOK_MS, task.signal);
    return (await identifyOciImage({ ...task, signal }, source, downloadSource(task))).kind === 'bootc';
  } catch (error) {
    task.signal.throwIfAborted();
    task.log.warn('The registry does not say whether the image is a bootable container', { reason: reasonOf(error) });
    return false;
  }
}

export const bootcDeploy: DeployInterface = {
  ...agentDeploy,
  supports,
  properties: agentProperties,
  validate,
  steps: deploymentSteps({
    execute_bootc_install: [80, onlyWhenWritingImage(executeInstall)],
    prepare_instance_boot: [60, prepareInstance],
    set_boot_to_disk: [60, setBootToDisk],
  }),
  prepare: prepareWithoutImage,
};
