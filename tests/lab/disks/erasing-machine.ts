/** A machine in QEMU whose disks erase themselves: models of disks behind a SAS controller, by iSCSI and by NVMe over TCP, and QEMU's own. */
import { randomBytes } from 'node:crypto';
import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ataDisk, type AtaModel } from '../support/disk-models/ata';
import { startIscsiModel, type ScsiDisk } from '../support/disk-models/iscsi';
import { type NvmeModel, startNvmeModel } from '../support/disk-models/nvme';
import { connectRemoteDisks, fillForRemoteDisks } from '../support/disk-models/remote';
import { scsiDisk, type ScsiModel } from '../support/disk-models/scsi';
import { createWork, type Work } from '../support/disk-models/work';
import { HOST, startFaultyMachine, type FaultyMachine } from '../agent/faulty-machine';

const MiB = 2 ** 20;
const SIZE = 16 * MiB;
const OWN_SIZE = 64 * MiB;

interface Model {
  readonly scsi?: Pick<ScsiModel, 'sanitizes' | 'unmaps'>;
  readonly ata?: Pick<AtaModel, 'sanitizes' | 'security'>;
  /** Reached by the machine's own kernel. QEMU's controllers pass on no registers of ATA disks. */
  readonly remote?: true;
}
/** By serial number. */
const MODELS: Readonly<Record<string, Model>> = {
  SAS1: { scsi: { sanitizes: [2, 3] } },
  SAS2: { scsi: { sanitizes: [2] } },
  THIN1: { scsi: { unmaps: true } },
  SATA1: { ata: { sanitizes: ['crypto', 'block'], security: { enhanced: true } }, remote: true },
  SATA2: { ata: { sanitizes: ['block'], security: { enhanced: true } }, remote: true },
  SATA3: { ata: { sanitizes: ['crypto'], security: { enhanced: true } } },
  SATA4: { ata: { security: { enhanced: false } } },
};
const NVMES: Readonly<Record<string, Pick<NvmeModel, 'sanicap' | 'fna'>>> = {
  NVME1: { sanicap: 3, fna: 4 },
  NVME2: { sanicap: 0, fna: 4 },
};
const LOCKED = 'LOCKED1';
/** QEMU's own disks: serial number → device. */
const OWN: Readonly<Record<string, string>> = {
  ROOT1: 'virtio-blk-pci',
  DATA1: 'virtio-blk-pci',
  SHARED1: 'virtio-blk-pci',
  FORMAT1: 'nvme',
  [LOCKED]: 'virtio-blk-pci',
};
const nameOf = (serial: string): string => `iqn.2026-01.org.example:${serial.toLowerCase()}`;

export interface ErasingMachine {
  /** Absent while it is off. */
  machine?: FaultyMachine;
  readonly works: ReadonlyMap<string, Work>;
  /** Serial number → what is on a disk that is a model. */
  readonly data: ReadonlyMap<string, Buffer>;
  readonly fileOf: (serial: string) => string;
  /** Fills all disks with data of an instance. */
  fill(): void;
  /** Its power is lost first, if it is on. */
  start(words: readonly string[], agentPort: number): Promise<void>;
  close(): Promise<void>;
}
export async function createErasingMachine(folder: string): Promise<ErasingMachine> {
  const atas: ReturnType<typeof ataDisk>[] = [];
  let starts = 0;
  let isOpening = false;
  const works = new Map<string, Work>();
  const data = new Map<string, Buffer>();
  const disks = new Map<string, ScsiDisk>();
  const add = (serial: string) => {
    const parts = { data: Buffer.alloc(SIZE), work: createWork(), serial, wwn: `5000c500a1b2c3${(works.size + 0x10).toString(16)}` };
    works.set(serial, parts.work);
    data.set(serial, parts.data);
    return parts;
  };
  for (const [serial, { scsi, ata }] of Object.entries(MODELS)) {
    const parts = add(serial);
    const model = ata && ataDisk({ ...parts, ...ata });
    if (model) atas.push(model);
    disks.set(nameOf(serial), scsiDisk({ ...parts, isOpening: () => isOpening, ...scsi, ...(model ? { ata: model } : {}) }));
  }
  const nvmes: { readonly name: string; readonly port: number; close(): Promise<void> }[] = [];
  for (const [serial, features] of Object.entries(NVMES)) {
    const name = `nqn.2026-01.org.example:${serial.toLowerCase()}`;
    nvmes.push({ name, ...(await startNvmeModel({ ...add(serial), ...features }, name)) });
  }
  const iscsi = await startIscsiModel(disks);
  const fileOf = (serial: string): string => join(folder, `${serial}.img`);
  const serials = Object.keys(MODELS);
  const remote = serials.filter((serial) => MODELS[serial]!.remote).map((serial) => ({ name: nameOf(serial), port: iscsi.port }));
  const local = serials.filter((serial) => !MODELS[serial]!.remote);
  const drive = (serial: string, more: string): readonly string[] => ['-drive', `if=none,id=${serial},format=raw,${more}`];
  const disksOfQemu = [
    ['-device', 'mptsas1068,id=mpt'],
    ...local.map((serial, index) => [
      ...drive(serial, `file=iscsi://127.0.0.1:${iscsi.port}/${nameOf(serial)}/0`),
      '-device',
      `scsi-generic,drive=${serial},bus=mpt.0,scsi-id=${index},io_timeout=3600`,
    ]),
    ...Object.entries(OWN).map(([serial, device]) => [
      ...drive(serial, `cache=unsafe,discard=unmap,readonly=${serial === LOCKED ? 'on' : 'off'},file=${fileOf(serial)}`),
      '-device',
      `${device},drive=${serial},serial=${serial}`,
    ]),
  ].flat();
  const made: ErasingMachine = {
    works,
    data,
    fileOf,
    fill: () => {
      for (const bytes of data.values()) randomBytes(SIZE).copy(bytes);
      for (const serial of Object.keys(OWN)) writeFileSync(fileOf(serial), randomBytes(OWN_SIZE), { flag: 'r+' });
    },
    start: async (words, agentPort) => {
      await made.machine?.stop();
      for (const disk of atas) disk.powerCycle();
      isOpening = true;
      made.machine = await startFaultyMachine(join(folder, `machine-${(starts += 1)}`), {
        kind: 'BIOS',
        words,
        agentPort,
        files: {},
        fill: fillForRemoteDisks,
        before: connectRemoteDisks(HOST, remote, nvmes),
        disks: disksOfQemu,
      });
      isOpening = false;
    },
    close: async () => {
      await made.machine?.stop();
      await iscsi.close();
      for (const nvme of nvmes) await nvme.close();
    },
  };
  for (const serial of Object.keys(OWN)) {
    writeFileSync(fileOf(serial), '');
    truncateSync(fileOf(serial), OWN_SIZE);
  }
  return made;
}
