/** Faults that the agent meets while it deploys a machine. */
import { createHash } from 'node:crypto';
import type { AgentFault } from './fault';

/** What a row can do to the machine while the image is written. */
export interface FaultyParts {
  /** Runs a command of the shell in the ramdisk. */
  readonly guest: (command: string) => Promise<string>;
  /** Sends a command of QEMU's monitor. */
  readonly monitor: (command: string, args?: object) => Promise<void>;
  /** Resets the machine, and waits until its agent runs. */
  readonly reset: () => Promise<void>;
}
/**
 * How the image's server answers. `slow`: a minute for the image. `elsewhere`: redirects to a name that does not exist. `closed`: to a port
 * that nobody listens on. `blank`: an image of zeros. `foreign`: to a server whose certificate nobody knows. `dated`: to one whose
 * certificate is known. `endless`: more than the image, of a length that it does not tell.
 */
export type ImageMode =
  | 'whole'
  | 'missing'
  | 'broken'
  | 'cut'
  | 'stalls'
  | 'slow'
  | 'blank'
  | 'elsewhere'
  | 'closed'
  | 'foreign'
  | 'dated'
  | 'endless';
/** `UEFI`: with a clock that begins in 2001, and one disk. */
export type MachineKind = 'BIOS' | 'UEFI';
export interface MachineFault extends AgentFault {
  /** The serial number in the root device hint. */
  readonly disk?: string;
  readonly image?: ImageMode;
  readonly instance?: Readonly<Record<string, unknown>>;
  readonly steps?: readonly object[];
  /** The lines in QEMU, whose network takes connections for the machine; absent: as `text`. */
  readonly textInQemu?: readonly string[];
  /** The agent's program ends while the image is written. `again`: it is started again, as init does. In QEMU, it is killed. */
  readonly ends?: 'again' | 'for good';
  /** The machine in QEMU; absent: the one with a BIOS. */
  readonly machine?: MachineKind;
  /** Before the deployment begins; the agent starts again afterwards. */
  readonly before?: (parts: FaultyParts) => Promise<unknown>;
  /** While the image is written slowly. */
  readonly during?: (parts: FaultyParts) => Promise<unknown>;
  readonly after?: (parts: FaultyParts) => Promise<unknown>;
}

export const FAILED = 'Deploy step deploy.write_image failed on node …. ';
export const STEP = 'step: deploy.write_image';
export const COMMAND = 'command: execute_deploy_step (FAILED)';
export const GOOD = 'concerns: disk /dev/… (serial GOOD, 5.0 GiB)';
const DOWNLOAD = `${FAILED}Download of image … failed: `;
const NIC = 'concerns: NIC eth0 (MAC 52:54:00:fa:…, address …)';
export const LOG = ['logs: …/logs/…_….tar.gz', "end of the agent's log:", '…'];
/** These are put into machines of files too. */
export const AGENT_FAULTS: readonly MachineFault[] = [
  {
    name: 'the root disk is missing',
    put: 'a root device hint that no disk matches',
    disk: 'NONE',
    text: [
      `${FAILED}No suitable device was found for deployment using these hints {"serial":"NONE"}`,
      STEP,
      COMMAND,
      'concerns: disk /dev/… (serial …, …); disk /dev/… (serial …, …)',
      ...LOG,
    ],
  },
  {
    name: 'the root disk is too small',
    put: 'a disk of 4 MiB, and an image of 8 MiB',
    disk: 'SMALL',
    text: [
      `${FAILED}the image of 8388608 bytes is larger than the disk /dev/… of 4194304 bytes`,
      STEP,
      COMMAND,
      'concerns: disk /dev/… (serial SMALL, 0.0 GiB)',
      ...LOG,
    ],
  },
  {
    name: 'the root disk is write-protected',
    put: 'a read-only disk',
    disk: 'LOCKED',
    text: [`${FAILED}Device /dev/… is write-protected`, STEP, COMMAND, 'concerns: disk /dev/… (serial LOCKED, 5.0 GiB)', ...LOG],
  },
  {
    name: 'the checksum of the image is wrong',
    put: 'a SHA-256 of another file',
    instance: { image_os_hash_value: '0'.repeat(64) },
    text: [
      `${FAILED}Image failed to verify against checksum. location: /dev/…; image ID: …; image checksum: 000…000; verification checksum: …`,
      STEP,
      COMMAND,
      GOOD,
      ...LOG,
    ],
  },
  {
    name: 'the image is missing on its server',
    put: '404 for the image',
    image: 'missing',
    text: [`${DOWNLOAD}Received status code 404 from http://…, expected 200`, STEP, COMMAND, NIC, ...LOG],
  },
  {
    name: "the image's server has an error",
    put: '500 for the image',
    image: 'broken',
    text: [`${DOWNLOAD}Received status code 500 from http://…, expected 200`, STEP, COMMAND, NIC, ...LOG],
  },
  {
    name: "the image's server refuses connections",
    put: 'a port that nobody listens on',
    image: 'closed',
    text: [`${DOWNLOAD}URL: http://…. Error: …connect ECONNREFUSED …:…`, STEP, COMMAND, NIC, ...LOG],
  },
  {
    name: "the name of the image's server is unknown",
    put: 'a name in .invalid',
    image: 'elsewhere',
    text: [`${DOWNLOAD}URL: http://…. Error: …getaddrinfo E… images.invalid`, STEP, COMMAND, NIC, ...LOG],
  },
  {
    name: "the image's server breaks off",
    put: 'half of the image, then the end of the connection',
    image: 'cut',
    text: [`${FAILED}Download of image … from http://… broke off after … bytes: …aborted`, STEP, COMMAND, NIC, ...LOG],
  },
  {
    name: "the image's server stalls",
    put: 'half of the image, then nothing',
    image: 'stalls',
    text: [
      `${FAILED}Download of image … from http://… broke off after 4194304 bytes: …http://… sent nothing for … s`,
      STEP,
      COMMAND,
      NIC,
      ...LOG,
    ],
  },
  {
    name: "the certificate of the image's server is not trusted",
    put: 'a server with a certificate of its own',
    image: 'foreign',
    text: [`${DOWNLOAD}URL: http://…. Error: …self-signed certificate`, STEP, COMMAND, NIC, ...LOG],
  },
  {
    name: "the machine's clock is wrong",
    put: 'an image by HTTPS, with a certificate that is valid a year later; in QEMU, a clock that begins in 2001',
    image: 'dated',
    machine: 'UEFI',
    text: [`${DOWNLOAD}URL: http://…. Error: certificate is not yet valid (the machine's clock says …)`, STEP, COMMAND, NIC, ...LOG],
  },
  {
    name: "the image's server sends more than the disk holds",
    put: 'an image without a length, and a disk of 4 MiB',
    disk: 'SMALL',
    image: 'endless',
    text: [
      `${FAILED}Writing image to device /dev/… failed: the image is larger than the disk of 4194304 bytes`,
      STEP,
      COMMAND,
      'concerns: disk /dev/… (serial SMALL, 0.0 GiB)',
      ...LOG,
    ],
  },
  {
    name: 'the image has no partition table',
    put: 'an image of zeros',
    image: 'blank',
    instance: {
      image_os_hash_value: createHash('sha256')
        .update(Buffer.alloc(8 * 2 ** 20))
        .digest('hex'),
    },
    text: [
      `${FAILED}Unable to find a valid partition table on the disk after writing the image. The image may be corrupted or it uses a different sector size than the device.`,
      STEP,
      COMMAND,
      GOOD,
      ...LOG,
    ],
  },
  {
    name: 'the agent ends, and starts again',
    put: 'an end of its program while the image is written, with status 137',
    image: 'slow',
    ends: 'again',
    text: [
      'Deploy step deploy.write_image failed on node …. The agent was restarted while the step ran',
      STEP,
      'logs: …/logs/…_….tar.gz',
      "end of the agent's log:",
      '…',
      '… WARNING The agent before ended with status 137 (killed by signal 9)',
      '…',
    ],
  },
  {
    name: 'the agent ends, and does not start again',
    put: 'an end of its program while the image is written, and a limit of the step',
    image: 'slow',
    ends: 'for good',
    steps: [{ interface: 'deploy', step: 'write_image', priority: 80, args: {}, timeout: 30 }],
    text: [
      'Deploy step deploy.write_image failed: it did not end within its timeout of 30 seconds, and may still run.',
      STEP,
      'concerns: NIC (MAC 52:54:00:fa:…, address 127.0.0.1)',
      'agent: last heartbeat at …; asked at https://127.0.0.1:…: …connect ECONNREFUSED 127.0.0.1:…',
    ],
    textInQemu: [
      'Deploy step deploy.write_image failed: it did not end within its timeout of 30 seconds, and may still run.',
      STEP,
      'concerns: NIC (MAC 52:54:00:fa:…, address 127.0.0.1)',
      'agent: last heartbeat at …; asked at https://127.0.0.1:…: Connection to agent failed: …',
      'last boot requests: none by DHCP, TFTP or HTTP',
    ],
  },
];
