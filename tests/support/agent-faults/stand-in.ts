/** Faults that a stand-in for the agent shows: its lookups, heartbeats and answers are what the row says. */
import { randomBytes } from 'node:crypto';
import type { JsonObject } from '../../../model/records';
import { ownCertificate } from '../../../wire/http/certificate';
import { result, type AgentRequest, type Answer } from '../fakes/fake-agent';
import type { AgentFault } from './fault';

/** What a row can do. The node waits for its agent. */
export interface Stage {
  /** Looks the node up. Returns the token. */
  readonly lookUp: () => Promise<string>;
  /** Sends a heartbeat. Returns the status. */
  readonly beat: (more?: JsonObject) => Promise<number>;
  /** Waits until the agent got a command of this name. */
  readonly commanded: (name: string) => Promise<void>;
}
/** Command (`list`, `list in step`: the list of commands before and after the step began) → the answer. */
type Answers = Readonly<Record<string, Answer | undefined>>;
export interface StandInFault extends AgentFault {
  readonly answers?: Answers;
  readonly play: (stage: Stage) => Promise<void>;
}

const ok = (name: string, status: string, more: JsonObject = {}): Answer => ({ body: result(name, status, more) });
const steps = ok('get_deploy_steps', 'SUCCEEDED', {
  command_result: { deploy_steps: { M: [] }, hardware_manager_version: { M: '1' } },
});
const running = ok('execute_deploy_step', 'RUNNING');
const listed = (...commands: readonly JsonObject[]): Answer => ({ body: { commands } });
const USUAL: Answers = {
  get_deploy_steps: steps,
  execute_deploy_step: running,
  collect_system_logs: { status: 404, body: { type: 'InvalidCommandError', message: 'Invalid command', details: 'Unknown command' } },
};
const nameOf = ({ body }: AgentRequest): string | undefined => body?.name.replace(/^.*\./, '');
/** @param before the requests so far */
export function answerOf({ answers = {} }: StandInFault, asked: AgentRequest, before: readonly AgentRequest[]): Answer {
  const isStarted = before.some((one) => nameOf(one) === 'execute_deploy_step');
  const usual = listed(
    result('get_deploy_steps', 'SUCCEEDED'),
    ...(isStarted ? [result('execute_deploy_step', 'RUNNING', { command_result: { progress: 43 } })] : []),
  );
  const name = nameOf(asked) ?? (isStarted ? 'list in step' : 'list');
  return answers[name] ?? USUAL[name] ?? usual;
}

const nothing = async (): Promise<void> => {};
const firstBeat: StandInFault['play'] = async ({ lookUp, beat }) => {
  await lookUp();
  await beat();
};
/** The step write_image runs, and the agent sends another heartbeat. */
const inStep: StandInFault['play'] = async (stage) => {
  await firstBeat(stage);
  await stage.commanded('execute_deploy_step');
  await stage.beat();
};
const TIMEOUT = 'Timeout reached while waiting for callback for node …';
const WAITED = 'waited: [conductor]deploy_callback_timeout of … s ended at …; the last news were at …';
const NIC = 'concerns: NIC (MAC 52:54:00:…)';
const BOOTS = 'last boot requests: none by DHCP, TFTP or HTTP';
const CALLED_NIC = 'concerns: NIC (MAC 52:54:00:…, address 127.0.0.1)';
const NO_LOGS = 'logs: Agent API for node … returned HTTP status code 404 with error: Unknown command';

const certificate = (name: string): string => ownCertificate('127.0.0.1', name, Date.now(), randomBytes).certificate;
const BEGAN = ['step: deploy.write_image', 'command: execute_deploy_step (RUNNING, 43 %)', NO_LOGS];
const FAILED = 'Deploy step deploy.write_image failed: ';
const UNREACHED = `${FAILED}Connection to agent failed: Failed to connect to the agent running on node … for invoking command deploy.execute_deploy_step. Error: `;

export const STAND_IN_FAULTS: readonly StandInFault[] = [
  {
    name: 'the ramdisk never calls',
    put: 'no agent looks the node up: the machine does not boot, its kernel panics, or it has no link',
    play: nothing,
    text: [TIMEOUT, 'step: deploy.deploy', NIC, WAITED, 'agent: none has looked the node up or sent a heartbeat', BOOTS],
  },
  {
    name: 'the agent looks its node up, and is not heard of again',
    put: 'a lookup without a heartbeat',
    play: async ({ lookUp }) => void (await lookUp()),
    text: [TIMEOUT, 'step: deploy.deploy', NIC, WAITED, 'agent: it looked its node up, and has sent no heartbeat since', BOOTS],
  },
  {
    name: 'the agent has another token',
    put: 'heartbeats with a token that the server did not give',
    play: async ({ lookUp, beat }) => {
      await lookUp();
      expect(await beat({ agent_token: 'x'.repeat(43) })).toBe(400);
    },
    text: [
      TIMEOUT,
      'step: deploy.deploy',
      NIC,
      WAITED,
      'agent: it looked its node up, and has sent no heartbeat since',
      BOOTS,
      'refused: A heartbeat was refused: Invalid or missing agent token received. (callback_url http://127.0.0.1:…) (…)',
    ],
  },
  {
    name: 'the agent cannot be called at its address',
    put: 'heartbeats with a link-local callback_url',
    play: async ({ lookUp, beat }) => {
      await lookUp();
      expect(await beat({ callback_url: 'http://169.254.1.1:9999' })).toBe(400);
    },
    text: [
      TIMEOUT,
      'step: deploy.deploy',
      NIC,
      WAITED,
      'agent: it looked its node up, and has sent no heartbeat since',
      BOOTS,
      'refused: A heartbeat was refused: the agent cannot be called at 169.254.1.1:9999, since agents have no such address (…)',
    ],
  },
  {
    name: 'the agent is too old',
    put: 'heartbeats without agent_version',
    play: async ({ lookUp, beat }) => {
      await lookUp();
      expect(await beat({ agent_version: undefined })).toBe(400);
    },
    text: [
      TIMEOUT,
      'step: deploy.deploy',
      NIC,
      WAITED,
      'agent: it looked its node up, and has sent no heartbeat since',
      BOOTS,
      'refused: A heartbeat was refused: Agent did not transmit a version, and a version is required. Please update the agent being used. (callback_url http://127.0.0.1:…) (…)',
    ],
  },
  {
    name: 'the address of the agent changes',
    put: 'a second heartbeat with another callback_url',
    play: async (stage) => {
      await inStep(stage);
      expect(await stage.beat({ callback_url: 'http://127.0.0.1:1' })).toBe(400);
    },
    text: [
      TIMEOUT,
      'step: deploy.write_image',
      'command: execute_deploy_step (RUNNING, 43 %)',
      CALLED_NIC,
      WAITED,
      'agent: last heartbeat at …',
      BOOTS,
      'refused: A heartbeat was refused: Detected change in ramdisk provided "callback_url" (callback_url http://127.0.0.1:1) (…)',
      NO_LOGS,
    ],
  },
  {
    name: 'two agents run for one node',
    put: 'a second heartbeat with the certificate of another agent',
    play: async (stage) => {
      await stage.lookUp();
      await stage.beat({ agent_verify_ca: certificate('first') });
      await stage.commanded('execute_deploy_step');
      expect(await stage.beat({ agent_verify_ca: certificate('second') })).toBe(400);
    },
    text: [
      TIMEOUT,
      'step: deploy.write_image',
      'command: execute_deploy_step (RUNNING, 43 %)',
      CALLED_NIC,
      WAITED,
      'agent: last heartbeat at …',
      BOOTS,
      'refused: A heartbeat was refused: Detected change in ramdisk provided "agent_verify_ca" (callback_url http://127.0.0.1:…) (…)',
      NO_LOGS,
    ],
  },
  {
    name: 'the agent does not answer a command',
    put: 'the connection stays open without an answer',
    answers: { execute_deploy_step: 'say nothing', 'list in step': 'say nothing' },
    play: firstBeat,
    text: [
      'Deploy step deploy.write_image failed: Connection to agent failed: Failed to connect to the agent running on node … for invoking command deploy.execute_deploy_step. Error: no answer within … s ([agent]command_timeout).',
      'step: deploy.write_image',
      CALLED_NIC,
      'agent: last heartbeat at …; asked at http://127.0.0.1:…: Connection to agent failed: Failed to connect to the agent running on node … to collect commands status. Error: no answer within … s ([agent]command_timeout)',
      BOOTS,
    ],
  },
  {
    name: 'the agent breaks connections off',
    put: 'the connection ends without an answer',
    answers: { execute_deploy_step: 'hang up' },
    play: firstBeat,
    text: [`${UNREACHED}other side closed.`, ...BEGAN],
  },
  {
    name: 'the answer of the agent is not JSON',
    put: 'an HTML page in place of a command result',
    answers: { execute_deploy_step: { body: '<html>' } },
    play: firstBeat,
    text: [`${FAILED}Agent API for node … returned HTTP status code 200 with error: the response is not JSON.`, ...BEGAN],
  },
  {
    name: 'the answer of the agent is too large',
    put: 'a command result of 17 MiB',
    answers: { execute_deploy_step: { body: `"${'x'.repeat(17 * 2 ** 20)}"` } },
    play: firstBeat,
    text: [`${UNREACHED}Response content exceeded max size.`, ...BEGAN],
  },
  {
    name: 'the agent does not know a command',
    put: '404 for execute_deploy_step',
    answers: {
      execute_deploy_step: {
        status: 404,
        body: { type: 'InvalidCommandError', message: 'Invalid command', details: 'Unknown command: execute_deploy_step' },
      },
    },
    play: firstBeat,
    text: [`${FAILED}Agent API for node … returned HTTP status code 404 with error: Unknown command: execute_deploy_step.`, ...BEGAN],
  },
  {
    name: 'the agent offers steps that are none',
    put: 'a list of steps without priorities',
    answers: {
      get_deploy_steps: ok('get_deploy_steps', 'SUCCEEDED', {
        command_result: { deploy_steps: { M: [{ step: 'x' }] }, hardware_manager_version: {} },
      }),
    },
    play: firstBeat,
    text: [
      'Failed to load in-band deploy steps: agent get_deploy_steps for node … returned an invalid deploy step. Keys: interface, step and priority are needed: {"step":"x"}.',
      'step: deploy.deploy',
      'command: get_deploy_steps (SUCCEEDED)',
      NO_LOGS,
    ],
  },
  {
    name: 'the agent reports a state of a command that does not exist',
    put: 'the status LOST of the running command',
    answers: { 'list in step': listed(result('execute_deploy_step', 'LOST')) },
    play: inStep,
    text: [
      'Agent returned unknown status for deploy step deploy.write_image on node … : LOST.',
      'step: deploy.write_image',
      'command: execute_deploy_step (LOST)',
      NO_LOGS,
    ],
  },
];
