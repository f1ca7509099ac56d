/** An ATA disk of ACS-4 with the feature sets Security and Sanitize Device, behind a SAS controller (SAT-3 §12). */
import type { ScsiAnswer, ScsiDisk } from './iscsi';
import { SECTOR } from './scsi';
import type { Work } from './work';

export interface AtaModel {
  readonly data: Buffer;
  readonly serial: string;
  readonly wwn: string;
  readonly work: Work;
  /** Absent: the disk lacks the feature set. */
  readonly sanitizes?: readonly ('crypto' | 'block')[];
  /** Absent: the disk lacks the feature set. */
  readonly security?: { readonly enhanced: boolean };
}
interface Registers {
  readonly features: number;
  readonly command: number;
  /** 48 bits. */
  readonly lba: number;
}
interface Outcome {
  readonly data?: Buffer;
  readonly count?: number;
  readonly lba?: number;
  /** The command was aborted. */
  readonly aborted?: true;
}
const ABORTED: Outcome = { aborted: true };

function registersOf(command: Buffer): Registers {
  const at = (index: number): number => command[index]!;
  if (at(0) === 0xa1) return { features: at(3), command: at(9), lba: at(5) + at(6) * 2 ** 8 + at(7) * 2 ** 16 };
  const low = at(8) + at(10) * 2 ** 8 + at(12) * 2 ** 16;
  return { features: command.readUInt16BE(3), command: at(14), lba: low + at(7) * 2 ** 24 + at(9) * 2 ** 32 + at(11) * 2 ** 40 };
}
/** SAT-3 §12.2.5: the ATA Status Return descriptor. */
function returned({ count = 0, lba = 0, aborted }: Outcome): Buffer {
  const sense = Buffer.alloc(22);
  [sense[0], sense[1], sense[3], sense[7]] = [0x72, aborted ? 0x0b : 0x01, aborted ? 0 : 0x1d, 14];
  const byte = (index: number): number => Math.floor(lba / 2 ** (8 * index)) & 0xff;
  const registers = [0x09, 0x0c, 0x01, aborted ? 4 : 0, count >> 8, count & 0xff, byte(3), byte(0), byte(4), byte(1), byte(5), byte(2)];
  Buffer.from([...registers, 0x40, aborted ? 0x51 : 0x50]).copy(sense, 8);
  return sense;
}

/** SANITIZE DEVICE (ACS-4 §7.36): the feature, and what the LBA must be → the operation. */
const OPERATIONS: Readonly<Record<number, readonly [name: 'crypto' | 'block', key: number]>> = {
  0x11: ['crypto', 0x43_72_79_70],
  0x12: ['block', 0x42_6b_45_72],
};
interface AtaDisk {
  readonly pass: ScsiDisk;
  readonly identify: () => Buffer;
  readonly isReadable: () => boolean;
  /** A disk with a password is locked after it. */
  powerCycle(): void;
}
export function ataDisk(model: AtaModel): AtaDisk {
  const { data, serial, wwn, work, sanitizes, security } = model;
  let password: Buffer | undefined;
  let isLocked = false;
  let isPrepared = false;

  const identify = (): Buffer => {
    const words = Buffer.alloc(512);
    const word = (index: number, value: number): number => words.writeUInt16LE(value, index * 2);
    const text = (index: number, length: number, value: string): Buffer =>
      words
        .subarray(index * 2, index * 2 + length)
        .fill(Buffer.from(value.padEnd(length)))
        .swap16();
    text(10, 20, serial);
    text(23, 8, '1');
    text(27, 40, `Model ${serial}`);
    const sectors = data.length / SECTOR;
    word(0, 0x00_40);
    word(49, 0x03_00);
    words.writeUInt32LE(sectors, 120);
    word(80, 0x07_f0);
    word(82, 0x40_00 | (security ? 2 : 0));
    word(83, 0x44_00);
    word(84, 0x41_00);
    word(85, 0x40_00 | (password ? 2 : 0));
    word(86, 0x04_00);
    word(87, 0x41_00);
    if (sanitizes) word(59, 0x10_00 | (sanitizes.includes('crypto') ? 0x20_00 : 0) | (sanitizes.includes('block') ? 0x80_00 : 0));
    if (security) {
      word(89, 1);
      word(90, 1);
      word(128, 1 | (password ? 2 : 0) | (isLocked ? 4 : 0) | (security.enhanced ? 0x20 : 0));
    }
    words.writeUInt32LE(sectors, 200);
    for (let index = 0; index < 4; index++) word(108 + index, Number.parseInt(wwn.slice(index * 4, index * 4 + 4), 16));
    word(217, 1);
    return words;
  };
  const isRight = (sent: Buffer): boolean => password?.equals(sent.subarray(2, 34)) === true;
  /** Command → what it does; its data is the disk's answer, or what was sent. */
  const commands: Readonly<Record<number, (registers: Registers, sent: Buffer) => Outcome>> = {
    // CHECK POWER MODE: active
    0xe5: () => ({ count: 0xff }),
    0xec: () => ({ data: identify() }),
    ...(security && {
      0xf1: (_, sent) => {
        if (isLocked) return ABORTED;
        password = Buffer.from(sent.subarray(2, 34));
        return {};
      },
      0xf2: (_, sent) => {
        if (!isRight(sent)) return ABORTED;
        isLocked = false;
        return {};
      },
      0xf3: () => {
        isPrepared = true;
        return {};
      },
      0xf4: (_, sent) => {
        const isEnhanced = (sent[0]! & 2) !== 0;
        if (!isPrepared || !isRight(sent) || (isEnhanced && !security.enhanced)) return ABORTED;
        isPrepared = false;
        void work.begin(isEnhanced ? 'secure erase enhanced' : 'secure erase', () => {
          data.fill(isEnhanced ? 0xa5 : 0);
          password = undefined;
          isLocked = false;
        });
        return {};
      },
      0xf6: (_, sent) => {
        if (isLocked || !isRight(sent)) return ABORTED;
        password = undefined;
        return {};
      },
    }),
    ...(sanitizes && {
      0xb4: ({ features, lba }) => {
        if (features === 0) {
          const state = work.state();
          if (state === 'failed') return { count: 0, lba: 0xff_ff };
          return { count: { idle: 0, done: 0x80_00, working: 0x40_00 }[state], lba: work.progress() };
        }
        const [name, key] = OPERATIONS[features] ?? [];
        if (name === undefined || lba !== key || !sanitizes.includes(name) || work.state() === 'working') return ABORTED;
        void work.begin(`sanitize ${name}`, () => data.fill(name === 'crypto' ? 0xa5 : 0));
        return {};
      },
    }),
  };
  const pass: ScsiDisk = async (command, sent) => {
    const registers = registersOf(command);
    const isBusy = work.state() === 'working' && registers.command !== 0xec && registers.command !== 0xb4;
    const outcome = isBusy ? ABORTED : (commands[registers.command]?.(registers, sent) ?? ABORTED);
    if (registers.command === 0xf2 && work.state() === 'failed') work.leave();
    // The command ends with the erasure.
    if (registers.command === 0xf4 && !outcome.aborted) await work.over();
    const failed = registers.command === 0xf4 && work.state() === 'failed';
    if (outcome.aborted || failed) return { status: 2, sense: returned(ABORTED) };
    const wantsRegisters = (command[2]! & 0x20) !== 0;
    return {
      status: wantsRegisters ? 2 : 0,
      ...(wantsRegisters ? { sense: returned(outcome) } : {}),
      ...(outcome.data ? { data: outcome.data } : {}),
    } satisfies ScsiAnswer;
  };
  return {
    pass,
    identify,
    isReadable: () => !isLocked && !['working', 'failed'].includes(work.state()),
    powerCycle: () => {
      isLocked = password !== undefined;
      // A sanitize operation goes on, SECURITY ERASE UNIT does not.
      if (work.state() === 'working' && work.taken.at(-1)!.startsWith('secure')) work.release('failed');
    },
  };
}
