/** The IPMI BMC of a simulated machine on one UDP port: device, chassis and boot commands (IPMI 2.0 §20, §28), and those of the store. */
import { createHash } from 'node:crypto';
import { createSocket } from 'node:dgram';
import type { Clock } from '../../model/clock';
import { reasonOf } from '../../model/errors';
import { createBoundedLog, type Log } from '../../model/log';
import { BMC_ADDRESS } from '../../wire/ipmi/codec';
import {
  BOOT_DEVICE,
  BOOT_FLAG,
  BOOT_PARAMETER,
  CHASSIS_CONTROL,
  COMMANDS,
  COMPLETION,
  KEEP_WITHOUT_CHASSIS_CONTROL,
  PRIVILEGE,
  type CommandCode,
} from '../../wire/ipmi/constants';
import type { BmcAnswer, BmcRequest } from '../../wire/ipmi/bmc';
import { createBmc } from '../../wire/ipmi/server/server';
import type { BootSetting, MachineControl, PowerAction } from '../hardware/control';
import { countRequest, faultyDatagrams, type FaultBox } from '../bmc/faults';
import { NESTED_SATELLITE, SATELLITE } from '../hardware/sensors';
import { createRestart, type Restart } from '../bmc/restart';
import { createSerial } from '../hardware/serial';
import { STORE_COMMANDS, logPower, newStore, type Store } from './store';

interface IpmiEndpoint {
  readonly port: number;
  close(): Promise<void>;
}
interface IpmiEndpointOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly username: string;
  readonly password: string;
  readonly machine: MachineControl;
  /** Absent: the BMC never has a fault. */
  readonly faults?: FaultBox;
  /** Shared with the BMC's other protocols; absent: there is no other protocol. */
  readonly restart?: Restart;
  readonly log: Log;
  readonly clock: Clock;
  readonly random: (bytes: number) => Buffer;
}

/** The state of the BMC, or of a controller behind it. */
interface ControllerState {
  readonly store: Store;
  readonly machine: MachineControl;
  readonly restart: Restart;
  readonly clock: Clock;
  /** Parameter 3: which events leave the boot flags valid. */
  keepFlags: number;
  /** Parameter 4: mask and data. */
  acknowledge: readonly [mask: number, data: number];
  inProgress: number;
  /** Milliseconds since the epoch: when the boot flags were set. Undefined: not since the last Chassis Control command. */
  flagsAt: number | undefined;
}
interface Command {
  readonly privilege: number;
  run(state: ControllerState, data: Buffer): BmcAnswer | Promise<BmcAnswer>;
}

const ok = (...bytes: readonly number[]): BmcAnswer => ({ completionCode: COMPLETION.ok, data: Buffer.from(bytes) });
const refuse = (completionCode: number): BmcAnswer => ({ completionCode });
const NO_OVERRIDE: BootSetting = { device: 'none', persistent: false, mode: null };
/** Milliseconds without a Chassis Control command after which boot flags are no longer valid (table 28-14, parameter 3). */
const FLAGS_VALID_MS = 60_000;

const CONTROLS: Readonly<Record<number, PowerAction>> = Object.fromEntries(
  (Object.keys(CHASSIS_CONTROL) as (keyof typeof CHASSIS_CONTROL)[]).map((name) => [CHASSIS_CONTROL[name], name]),
);
/** Device selector and our name. IPMI reports UEFI HTTP boot, which only Redfish can set, as network boot. */
const DEVICES: readonly (readonly [number, BootSetting['device']])[] = [
  [BOOT_DEVICE.none, 'none'],
  [BOOT_DEVICE.pxe, 'pxe'],
  [BOOT_DEVICE.disk, 'disk'],
  [BOOT_DEVICE.safe, 'safe'],
  [BOOT_DEVICE.cdrom, 'cdrom'],
  [BOOT_DEVICE.bios, 'bios'],
  [BOOT_DEVICE.pxe, 'uefi-http'],
];

/** Clears boot flags that are 60 s old, unless parameter 3 keeps them. */
function expireFlags(state: ControllerState): void {
  const since = state.flagsAt;
  if (since === undefined || state.keepFlags & KEEP_WITHOUT_CHASSIS_CONTROL || state.clock.now() - since < FLAGS_VALID_MS) return;
  state.flagsAt = undefined;
  state.machine.setBoot(NO_OVERRIDE);
}

function setBootFlags(state: ControllerState, data: Buffer): BmcAnswer {
  if (data.length !== 5) return refuse(COMPLETION.lengthInvalid);
  const [flags, selector] = [data[0]!, (data[1]! >> 2) & 0x0f];
  const device = DEVICES.find(([number]) => number === selector)?.[1];
  if (device === undefined) return refuse(COMPLETION.invalidField);
  const mode = flags & BOOT_FLAG.uefi ? 'uefi' : 'bios';
  const valid = (flags & BOOT_FLAG.valid) !== 0 && device !== 'none';
  state.machine.setBoot(valid ? { device, persistent: (flags & BOOT_FLAG.persistent) !== 0, mode } : NO_OVERRIDE);
  state.flagsAt = valid ? state.clock.now() : undefined;
  return ok();
}
function bootFlags(state: ControllerState): readonly number[] {
  expireFlags(state);
  const { device, persistent, mode } = state.machine.boot();
  if (device === 'none') return [0, 0, 0, 0, 0];
  const selector = DEVICES.find(([, name]) => name === device)?.[0] ?? BOOT_DEVICE.none;
  const flags = BOOT_FLAG.valid | (persistent ? BOOT_FLAG.persistent : 0) | (mode === 'uefi' ? BOOT_FLAG.uefi : 0);
  return [flags, selector << 2, 0, 0, 0];
}

/** §28.12. Ignores bit 7 of data 1, which marks a parameter invalid. 0x80: parameter not supported. */
function setBootOption(state: ControllerState, data: Buffer): BmcAnswer {
  if (data.length < 1) return refuse(COMPLETION.lengthInvalid);
  const value = data.subarray(1);
  switch (data[0]! & 0x7f) {
    case BOOT_PARAMETER.setInProgress:
      if (value.length !== 1) return refuse(COMPLETION.lengthInvalid);
      // 0x81: set in progress already.
      if ((value[0]! & 3) === 1 && state.inProgress === 1) return refuse(0x81);
      state.inProgress = value[0]! & 1;
      return ok();
    case BOOT_PARAMETER.servicePartitionSelector:
    case BOOT_PARAMETER.servicePartitionScan:
      return ok();
    case BOOT_PARAMETER.validBitClearing:
      if (value.length !== 1) return refuse(COMPLETION.lengthInvalid);
      state.keepFlags = value[0]! & 0x1f;
      return ok();
    case BOOT_PARAMETER.infoAcknowledge:
      if (value.length !== 2) return refuse(COMPLETION.lengthInvalid);
      state.acknowledge = [value[0]!, value[1]!];
      return ok();
    case BOOT_PARAMETER.flags:
      return setBootFlags(state, value);
    default:
      return refuse(0x80);
  }
}
/** §28.13. */
function getBootOption(state: ControllerState, data: Buffer): BmcAnswer {
  if (data.length !== 3) return refuse(COMPLETION.lengthInvalid);
  const parameter = data[0]! & 0x7f;
  const values: Readonly<Record<number, () => readonly number[]>> = {
    [BOOT_PARAMETER.setInProgress]: () => [state.inProgress],
    [BOOT_PARAMETER.servicePartitionSelector]: () => [0],
    [BOOT_PARAMETER.servicePartitionScan]: () => [0],
    [BOOT_PARAMETER.validBitClearing]: () => [state.keepFlags],
    [BOOT_PARAMETER.infoAcknowledge]: () => state.acknowledge,
    [BOOT_PARAMETER.flags]: () => bootFlags(state),
  };
  const value = values[parameter];
  return value ? ok(0x01, parameter, ...value()) : refuse(0x80);
}

/** §28.3. Cycle, reset and diagnostic interrupt need a machine that is on. */
async function chassisControl(state: ControllerState, data: Buffer): Promise<BmcAnswer> {
  if (data.length !== 1) return refuse(COMPLETION.lengthInvalid);
  const action = CONTROLS[data[0]! & 0x0f];
  if (!action) return refuse(COMPLETION.invalidField);
  expireFlags(state);
  state.flagsAt = undefined;
  const { machine } = state;
  if (!machine.isOn() && (action === 'cycle' || action === 'reset' || action === 'diagnostic')) return refuse(COMPLETION.notInPresentState);
  const wasOn = machine.isOn();
  await machine.act(action);
  if (machine.isOn() !== wasOn) logPower(state.store, machine.isOn());
  return ok();
}

/** §20.2. The reset of a controller behind the BMC has no visible effect. */
function coldReset({ store, restart }: ControllerState): BmcAnswer {
  if (store.address === BMC_ADDRESS) restart.begin();
  return ok();
}

const key = (networkFunction: number, command: number): number => (networkFunction << 8) | command;
const TABLE: ReadonlyMap<number, Command> = new Map(
  (
    [
      [COMMANDS.getChassisCapabilities, PRIVILEGE.USER, () => ok(0, 0x20, 0x20, 0x20, 0x20)],
      // Power policy unknown (bits 6:5); last power event unknown; no front panel (§28.2).
      [COMMANDS.getChassisStatus, PRIVILEGE.USER, ({ machine }) => ok(0x60 | (machine.isOn() ? 1 : 0), 0, 0)],
      [COMMANDS.chassisControl, PRIVILEGE.OPERATOR, chassisControl],
      [COMMANDS.setSystemBootOptions, PRIVILEGE.OPERATOR, setBootOption],
      [COMMANDS.getSystemBootOptions, PRIVILEGE.OPERATOR, getBootOption],
      [COMMANDS.getDeviceId, PRIVILEGE.USER, ({ store }) => deviceId(store.address)],
      [COMMANDS.coldReset, PRIVILEGE.ADMINISTRATOR, coldReset],
      // §20.3: a warm reset may keep settings and sessions.
      [COMMANDS.warmReset, PRIVILEGE.ADMINISTRATOR, () => ok()],
      [COMMANDS.getSelfTestResults, PRIVILEGE.USER, () => ok(0x55, 0x00)],
      // Channel 1, 802.3 LAN, IPMB protocol, multi-session (§22.24).
      [
        COMMANDS.getChannelInfo,
        PRIVILEGE.USER,
        (_, data) =>
          data[0] === 0x01 || data[0] === 0x0e ? ok(0x01, 0x04, 0x01, 0x80, 0xf2, 0x1b, 0, 0, 0) : refuse(COMPLETION.invalidField),
      ],
      ...STORE_COMMANDS.map(
        ([code, privilege, run]) => [code, privilege, ({ store }: ControllerState, data: Buffer) => run(store, data)] as const,
      ),
    ] as const satisfies readonly (readonly [CommandCode, number, Command['run']])[]
  ).map(([code, privilege, run]) => [key(code[0], code[1]), { privilege, run }]),
);

/** Get Device ID (§20.1) of a controller: device and firmware 1.0, IPMI 2.0, chassis, FRU, SEL, SDR and sensor device; no manufacturer. */
const deviceId = (address: number): BmcAnswer => ok(address, 0x01, 0x01, 0x00, 0x02, 0x8f, 0, 0, 0, 0, 0);

async function execute(state: ControllerState, { networkFunction, command, data, privilege }: BmcRequest): Promise<BmcAnswer> {
  const handler = TABLE.get(key(networkFunction, command));
  if (!handler) return refuse(COMPLETION.invalidCommand);
  return privilege < handler.privilege ? refuse(COMPLETION.insufficientPrivilege) : handler.run(state, data);
}

/**
 * Serves one BMC; a process can have thousands.
 * @throws the socket's error when the port is in use
 */
export async function serveIpmi(options: IpmiEndpointOptions): Promise<IpmiEndpoint> {
  const { machine, clock, random, username, password } = options;
  const box: FaultBox = options.faults ?? { now: {} };
  const closing = new AbortController();
  const datagrams = faultyDatagrams({ box, clock, random }, closing.signal);
  const restart = options.restart ?? createRestart(clock, box);
  const log = createBoundedLog(options.log.child({ bmc: machine.name }), clock);
  const command =
    (state: ControllerState) =>
    async (request: BmcRequest): Promise<BmcAnswer> => {
      try {
        return await execute(state, request);
      } catch (error) {
        log.warn('the machine failed an IPMI command', { command: request.command, error: reasonOf(error) });
        return refuse(COMPLETION.unspecified);
      }
    };
  const stateOf = (address?: number): ControllerState => ({
    store: newStore(machine, clock, address),
    machine,
    restart,
    clock,
    keepFlags: 0,
    acknowledge: [0, 0],
    inProgress: 0,
    flagsAt: undefined,
  });
  const socket = createSocket(options.host.includes(':') ? 'udp6' : 'udp4');
  await new Promise<void>((done, fail) => {
    socket.once('error', fail);
    socket.bind(options.port, options.host, () => {
      socket.off('error', fail);
      done();
    });
  });
  const bmc = createBmc({
    users: [
      {
        name: username,
        privilege: PRIVILEGE.ADMINISTRATOR,
        get password() {
          return box.now.wrong_password ? `not ${password}`.slice(0, 20) : password;
        },
      },
    ],
    cipherSuites: [3, 6, 7, 8, 11, 12, 15, 16, 17],
    lan: true,
    sol: { serial: machine.serial ?? createSerial(machine.name).port, port: socket.address().port },
    guid: createHash('sha256').update(machine.name).digest().subarray(0, 16),
    clock,
    random,
    command: command(stateOf()),
    // Further controllers of the same machine, each with its own sensors, event log and boot flags.
    satellites: [
      {
        ...SATELLITE,
        command: command(stateOf(SATELLITE.address)),
        satellites: [{ ...NESTED_SATELLITE, command: command(stateOf(NESTED_SATELLITE.address)) }],
      },
    ],
  });
  restart.onBegin(() => bmc.reset());
  socket.on('error', (error) => log.warn('IPMI socket', { error: reasonOf(error) }));
  socket.on('message', (bytes, from) => {
    if (restart.isAway() || !datagrams.arrives()) return;
    const over = countRequest(box);
    const push = (packet: Buffer, then?: () => void): void =>
      datagrams.deliver(() => {
        if (!closing.signal.aborted) socket.send(packet, from.port, from.address, () => {});
      }, then);
    bmc
      .answer(bytes, (packet) => push(packet))
      .then(
        (answer) => {
          if (answer) push(answer, over);
          else over();
        },
        (error: unknown) => {
          over();
          log.warn('an IPMI packet could not be answered', { from: from.address, error: reasonOf(error) });
        },
      );
  });
  return {
    port: socket.address().port,
    close: () =>
      new Promise((done) => {
        closing.abort();
        log.stop();
        socket.close(() => done());
      }),
  };
}
