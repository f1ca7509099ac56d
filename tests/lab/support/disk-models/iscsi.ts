/** An iSCSI target (RFC 7143) for models of disks: each name has one, at LUN 0. QEMU hands a machine's commands on to it as they are. */
import type { Socket } from 'node:net';
import { startLocalServer, type LocalServer } from './local-server';

export interface ScsiAnswer {
  readonly status: number;
  readonly data?: Buffer;
  /** Of status CHECK CONDITION. */
  readonly sense?: Buffer;
}
/** @param sent what the initiator sent with the command */
export type ScsiDisk = (command: Buffer, sent: Buffer) => Promise<ScsiAnswer> | ScsiAnswer;

const BURST = 2 ** 18;
const NONE = 0xff_ff_ff_ff;
/** What the target chooses of the initiator's offers; a key without a row says something, and offers nothing. */
const CHOICES: Readonly<Record<string, string>> = {
  AuthMethod: 'None',
  HeaderDigest: 'None',
  DataDigest: 'None',
  MaxConnections: '1',
  InitialR2T: 'Yes',
  ImmediateData: 'Yes',
  MaxBurstLength: String(BURST),
  FirstBurstLength: String(BURST),
  MaxRecvDataSegmentLength: String(BURST),
  DefaultTime2Wait: '0',
  DefaultTime2Retain: '0',
  MaxOutstandingR2T: '1',
  DataPDUInOrder: 'Yes',
  DataSequenceInOrder: 'Yes',
  ErrorRecoveryLevel: '0',
};

interface Task {
  readonly header: Buffer;
  readonly sent: Buffer;
  /** Bytes of `sent` that have come. */
  have: number;
  ready: number;
}
function serve(socket: Socket, diskOf: (name: string) => ScsiDisk | undefined): void {
  let rest = Buffer.alloc(0);
  let [statSn, expected] = [1, 0];
  let disk: ScsiDisk | undefined;
  const tasks = new Map<number, Task>();

  const send = (opcode: number, flags: number, tag: number, fill: (header: Buffer) => void, data: Buffer = Buffer.alloc(0)): void => {
    const header = Buffer.alloc(48);
    header[0] = opcode;
    header[1] = flags;
    header.writeUIntBE(data.length, 5, 3);
    header.writeUInt32BE(tag, 16);
    header.writeUInt32BE(statSn, 24);
    header.writeUInt32BE(expected, 28);
    header.writeUInt32BE(expected + 32, 32);
    fill(header);
    socket.write(Buffer.concat([header, data, Buffer.alloc(-data.length & 3)]));
  };
  const logIn = (header: Buffer, data: Buffer): void => {
    const pairs = data.toString().split('\0').filter(Boolean);
    const keys = pairs.map((pair) => pair.slice(0, pair.indexOf('=')));
    const name = pairs.find((pair) => pair.startsWith('TargetName='))?.slice('TargetName='.length);
    if (name !== undefined) disk = diskOf(name);
    const answers = keys.flatMap((key) => (key in CHOICES ? [`${key}=${CHOICES[key]}`] : []));
    if (keys.includes('AuthMethod')) answers.push('TargetPortalGroupTag=1');
    expected = header.readUInt32BE(24);
    const fill = (answer: Buffer): void => {
      header.copy(answer, 8, 8, 14);
      answer.writeUInt16BE(1, 14);
      // NOT FOUND
      if (!disk) answer.writeUInt16BE(0x02_03, 36);
    };
    send(0x23, header[1]!, header.readUInt32BE(16), fill, Buffer.from(answers.map((answer) => `${answer}\0`).join('')));
    statSn++;
  };
  const finish = async ({ header, sent }: Task): Promise<void> => {
    const tag = header.readUInt32BE(16);
    const wanted = header.readUInt32BE(20);
    const { status, data = Buffer.alloc(0), sense = Buffer.alloc(0) } = await disk!(header.subarray(32, 48), sent);
    if (socket.destroyed) return;
    const given = data.subarray(0, wanted);
    for (let from = 0, part = 0; from < given.length; from += BURST, part++) {
      const fill = (answer: Buffer): void => {
        answer.writeUInt32BE(NONE, 20);
        answer.writeUInt32BE(0, 24);
        answer.writeUInt32BE(part, 36);
        answer.writeUInt32BE(from, 40);
      };
      send(0x25, from + BURST >= given.length ? 0x80 : 0, tag, fill, given.subarray(from, from + BURST));
    }
    const [missing, isRead] = [wanted - given.length, (header[1]! & 0x40) !== 0];
    const fill = (answer: Buffer): void => {
      answer[3] = status;
      answer.writeUInt32BE(Math.ceil(given.length / BURST), 36);
      if (isRead) answer.writeUInt32BE(missing, 44);
    };
    const length = Buffer.alloc(2);
    length.writeUInt16BE(sense.length);
    send(0x21, isRead && missing > 0 ? 0x82 : 0x80, tag, fill, sense.length > 0 ? Buffer.concat([length, sense]) : sense);
    statSn++;
  };
  const goOn = (task: Task): void => {
    const tag = task.header.readUInt32BE(16);
    if (task.have < task.sent.length) {
      const length = Math.min(BURST, task.sent.length - task.have);
      send(0x31, 0x80, tag, (answer) => {
        answer.writeUInt32BE(tag, 20);
        answer.writeUInt32BE(task.ready++, 36);
        answer.writeUInt32BE(task.have, 40);
        answer.writeUInt32BE(length, 44);
      });
      return;
    }
    tasks.delete(tag);
    void finish(task);
  };
  const takeCommand = (header: Buffer, data: Buffer): void => {
    const task = { header, sent: Buffer.alloc((header[1]! & 0x20) === 0 ? 0 : header.readUInt32BE(20)), have: data.length, ready: 0 };
    data.copy(task.sent);
    tasks.set(header.readUInt32BE(16), task);
    goOn(task);
  };
  const takeData = (header: Buffer, data: Buffer): void => {
    const task = tasks.get(header.readUInt32BE(16))!;
    data.copy(task.sent, header.readUInt32BE(40));
    task.have += data.length;
    if ((header[1]! & 0x80) !== 0) goOn(task);
  };
  /** NOP, task management, logout. */
  const answer = (header: Buffer, data: Buffer): void => {
    const [opcode, tag] = [header[0]! & 0x3f, header.readUInt32BE(16)];
    const isNop = opcode === 0x00;
    if (isNop && tag === NONE) return;
    send(opcode + 0x20, 0x80, tag, (bytes) => bytes.writeUInt32BE(isNop ? NONE : 0, 20), isNop ? data : undefined);
    statSn++;
    if (opcode === 0x06) socket.end();
  };
  const TAKEN: Readonly<Record<number, (header: Buffer, data: Buffer) => void>> = { 0x01: takeCommand, 0x03: logIn, 0x05: takeData };
  const take = (header: Buffer, data: Buffer): void => {
    const opcode = header[0]! & 0x3f;
    if (opcode !== 0x03 && opcode !== 0x05 && (header[0]! & 0x40) === 0) expected = header.readUInt32BE(24) + 1;
    (TAKEN[opcode] ?? answer)(header, data);
  };
  socket.on('error', () => socket.destroy());
  socket.on('data', (bytes) => {
    rest = Buffer.concat([rest, bytes]);
    for (;;) {
      const length = rest.length < 48 ? Infinity : rest.readUIntBE(5, 3);
      const end = 48 + length + (-length & 3);
      if (!(rest.length >= end)) return;
      take(Buffer.from(rest.subarray(0, 48)), Buffer.from(rest.subarray(48, 48 + length)));
      rest = rest.subarray(end);
    }
  });
}

export const startIscsiModel = (disks: ReadonlyMap<string, ScsiDisk>): Promise<LocalServer> =>
  startLocalServer((socket) => serve(socket, (name) => disks.get(name)));
