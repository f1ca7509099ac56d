/**
 * What graphical consoles share: as in Ironic, turning one on makes a token, and `console_info` is the address of a page with the token. No
 * container is needed: this server connects to the screen itself when somebody looks.
 */
import type { Options } from '../../config/options';
import { newSecret } from '../../model/masks';
import type { NodeRecord } from '../../model/records';
import { hasToken, tokenTime } from '../../model/rules/screen-token';
import { STATES, type ProvisionState } from '../../model/states';
import type { ConsoleInterface, InterfacePeriodic, Task } from '../interfaces';

const lifetimeMs = (options: Options): number => options['vnc.token_timeout'] * 1000;

/** noVNC's page takes the path of its WebSocket from its query. */
function screenUrl({ uuid, driver_internal_info: internal }: NodeRecord, options: Options): string {
  const path = encodeURIComponent(`websockify?node=${uuid}&token=${String(internal.novnc_secret_token)}`);
  return `${options['vnc.public_url']}?path=${path}`;
}
async function start(task: Task): Promise<void> {
  const { node, options, clock, random } = task;
  // After a restart of the server, those who look may come back with the token that they have.
  if (hasToken(node, lifetimeMs(options), clock.now())) return;
  await task.saveInternal({ novnc_secret_token: newSecret(random), novnc_secret_token_created: tokenTime(clock.now()) });
}
async function stop(task: Task): Promise<void> {
  task.connections.screens?.hangUp(task.node.uuid, 'The console was turned off.');
  await task.saveInternal({ novnc_secret_token: undefined, novnc_secret_token_created: undefined });
}

/** Turns consoles off whose token has ended, unless somebody still looks: the limit of such a session is [vnc]max_session_time. */
const expire: InterfacePeriodic = {
  name: 'checking active console sessions',
  every: (options) => options['vnc.expire_console_session_interval'],
  states: Object.keys(STATES) as ProvisionState[],
  inMaintenance: true,
  only: ({ console_enabled: isOn, driver_internal_info: internal }) => isOn && internal.novnc_secret_token !== undefined,
  run: async (task) => {
    const { node, options, clock, connections, log } = task;
    if (hasToken(node, lifetimeMs(options), clock.now()) || connections.screens?.isWatched(node.uuid)) return undefined;
    log.info('The session of a graphical console has expired');
    await stop(task);
    await task.save({ console_enabled: false });
    return undefined;
  },
};

/** @param own the node's keys, their checks, and the connection to its screen */
export const graphicalConsole = (
  own: Pick<ConsoleInterface, 'properties' | 'validate'> & Required<Pick<ConsoleInterface, 'screen'>>,
): ConsoleInterface => ({
  ...own,
  start,
  stop,
  get: async ({ node, options }) => ({ type: 'vnc', url: screenUrl(node, options) }),
  periodics: [expire],
});
