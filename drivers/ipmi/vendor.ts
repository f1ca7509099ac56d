/** Features of IPMI alone: raw commands, a restart of the BMC, its event log and its FRU inventory. */
import { Fault } from '../../model/errors';
import { toBoolean } from '../../model/python';
import type { JsonObject } from '../../model/records';
import type { Signal } from '../../model/rules/health-rules';
import { COMMANDS } from '../../wire/ipmi/constants';
import { decodeFru, readFruBytes } from '../../wire/ipmi/records/fru';
import { clearSel, decodeSelEntry, readSel, type SelEntry } from '../../wire/ipmi/records/sel';
import { sensorTypeName } from '../../wire/ipmi/records/sensor-names';
import { type Step, type Task, type VendorInterface, done } from '../interfaces';
import { eventSignals } from './logs';
import { IPMI_PROPERTIES, asFault, ipmiCommandSender, ipmiCommand, ipmiTarget } from './target';

/** More than an IPMI message holds. */
const MAX_BYTES = 255;

/** `0x06 0x01`, or decimal: network function, command, data. Throws MissingParameterValue, InvalidParameterValue. */
function bytesOf(raw: unknown): readonly [networkFunction: number, command: number, ...data: number[]] {
  if (typeof raw !== 'string' || raw.trim() === '')
    throw new Fault('MissingParameterValue', { message: 'Parameter raw_bytes (string of bytes) was not specified.' });
  const words = raw.trim().split(/\s+/);
  const bytes = words.map((word) => (/^(0x[\da-f]{1,2}|\d{1,3})$/i.test(word) ? Number(word) : NaN));
  const [networkFunction, command, ...data] = bytes;
  if (networkFunction === undefined || command === undefined || bytes.length > MAX_BYTES || !bytes.every((byte) => byte <= 0xff))
    throw new Fault('InvalidParameterValue', {
      message: 'raw_bytes is not a network function, a command and data as bytes, such as "0x06 0x01"',
    });
  return [networkFunction, command, ...data];
}

async function sendRaw(task: Task, raw: unknown): Promise<void> {
  const [networkFunction, command, ...data] = bytesOf(raw);
  await ipmiCommand(task, `raw ${String(raw).trim()}`, [networkFunction, command], ...data);
}

const text = (value: number): string => `0x${value.toString(16).padStart(2, '0')}`;
/** A SEL entry as JSON, with its bytes for vendor-specific types. */
function selEntry({ id, type, timestamp, event, bytes }: SelEntry): JsonObject {
  return {
    id,
    type: text(type),
    timestamp: timestamp === undefined ? null : new Date(timestamp * 1000).toISOString(),
    raw: bytes.toString('hex'),
    ...(event && {
      sensor_type: sensorTypeName(event.sensorType),
      sensor: text(event.sensor),
      generator: text(event.generator),
      event_type: text(event.eventType),
      event_data: event.data.map(text),
      asserted: !event.deassertion,
    }),
  };
}

interface SelAnswer {
  readonly entries: readonly { readonly raw: string }[];
  readonly complete?: boolean;
}
/** What the log says of each sensor after its last entry. Undefined: the log is incomplete. */
function selSignals({ entries, complete = true }: SelAnswer): readonly Signal[] | undefined {
  if (!complete) return undefined;
  const events = entries.flatMap(({ raw }) => decodeSelEntry(Buffer.from(raw, 'hex')) ?? []);
  const bySensor = new Map(eventSignals(events, {}).signals.map((signal) => [signal.subject, signal]));
  return [...bySensor.values()];
}

const target = async (task: Task): Promise<void> => void ipmiTarget(task.node);
const RAW_ARGUMENTS: Step['args'] = {
  raw_bytes: { description: 'A string of raw bytes to convey the request to transmit to the remote BMC.', required: true },
};
const runRaw: Step['run'] = async (task, { raw_bytes: raw }) => {
  await sendRaw(task, raw);
  return done;
};

export const ipmiVendor: VendorInterface = {
  properties: IPMI_PROPERTIES,
  validate: target,
  methods: {
    send_raw: {
      http: ['POST'],
      description: "Send raw bytes to the BMC. Required argument: 'raw_bytes' - a string of raw bytes (e.g. '0x00 0x01').",
      validate: async (task, { raw_bytes: raw }) => {
        bytesOf(raw);
        await target(task);
      },
      run: (task, { raw_bytes: raw }) => sendRaw(task, raw),
    },
    sel: {
      http: ['GET'],
      description: 'The entries of the system event log. With "complete": false, the BMC could not return all of them.',
      async: false,
      exclusive: false,
      args: [],
      validate: target,
      run: async (task) => {
        const { entries, isWhole } = await asFault('sel list', readSel(ipmiCommandSender(task)));
        return { entries: entries.map(selEntry), ...(isWhole ? {} : { complete: false }) };
      },
      signals: (result) => selSignals(result as SelAnswer),
    },
    clear_sel: {
      http: ['POST'],
      description: 'Clear the system event log.',
      args: [],
      validate: target,
      run: (task) =>
        asFault(
          'sel clear',
          clearSel(ipmiCommandSender(task), () => task.clock.sleep(500, task.signal)),
        ),
    },
    fru: {
      http: ['GET'],
      description: 'Chassis, board and product as the FRU inventory of the BMC has them.',
      async: false,
      exclusive: false,
      args: [],
      validate: target,
      run: async (task) => decodeFru(await asFault('fru print', readFruBytes(ipmiCommandSender(task)))),
    },
    bmc_reset: {
      http: ['POST'],
      description: "Reset the BMC. Required argument: 'warm' (Boolean) - for warm (True) or cold (False) reset.",
      args: ['warm'],
      validate: target,
      run: async (task, { warm = true }) => {
        const [name, command] = toBoolean(warm) ? (['warm', COMMANDS.warmReset] as const) : (['cold', COMMANDS.coldReset] as const);
        await ipmiCommand(task, `bmc reset ${name}`, command);
      },
    },
  },
  steps: [
    { step: 'send_raw', priority: { clean: 0 }, requiresRamdisk: false, args: RAW_ARGUMENTS, run: runRaw },
    { step: 'send_raw', priority: { deploy: 0, service: 0 }, args: RAW_ARGUMENTS, run: runRaw },
  ],
};
