/** Faults that are put into a machine in QEMU. */
import { setTimeout as delay } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import type { AgentFault } from './fault';
import { COMMAND, FAILED, GOOD, LOG, STEP, type MachineFault } from './machine';

/** A machine has one agent, and maybe another program of it for DHCPv6. */
const AGENT = '$(pidof agent)';
const PARTITION = "printf 'o\\nn\\np\\n1\\n\\n\\nw\\n' | fdisk /dev/vda > /dev/null";
/** The part of a virtio disk that has its limits. */
const GOOD_DISK = '/machine/peripheral/good/virtio-backend';
const plugged = (serial: string) => ({ driver: 'scsi-hd', id: serial, bus: 'scsi0.0', drive: serial, serial });
const NO_LIMITS = { bps: 0, bps_rd: 0, bps_wr: 0, iops: 0, iops_rd: 0, iops_wr: 0 };
const RESTARTED = 'Deploy step deploy.write_image failed on node …. The agent was restarted while the step ran';
const LOGS = 'logs: …/logs/…_….tar.gz';
const END = "end of the agent's log:";
/** The step's own limit, since the option would also limit the start of the agent. */
const LIMITED = [{ interface: 'deploy', step: 'write_image', priority: 80, args: {}, timeout: 60 }];
const SILENT = [
  'Deploy step deploy.write_image failed: it did not end within its timeout of 60 seconds, and may still run.',
  STEP,
  'concerns: NIC (MAC 52:54:00:fa:11:70, address 127.0.0.1)',
  'agent: last heartbeat at …; asked at https://127.0.0.1:…: …no answer within … s ([agent]command_timeout)',
  'last boot requests: none by DHCP, TFTP or HTTP',
];

export const QEMU_FAULTS: readonly MachineFault[] = [
  {
    name: 'the kernel panics',
    put: 'a crash by sysrq while the image is written',
    image: 'slow',
    during: ({ guest }) => guest('{ sleep 1; echo c > /proc/sysrq-trigger; } & true'),
    after: ({ reset }) => reset(),
    steps: LIMITED,
    text: SILENT,
  },
  {
    name: 'the machine restarts',
    put: 'system_reset while the image is written',
    image: 'slow',
    during: ({ reset }) => reset(),
    steps: [{ ...LIMITED[0], timeout: 180 }],
    text: [
      'Deploy step deploy.write_image failed: it did not end within its timeout of 180 seconds, and may still run.',
      STEP,
      'concerns: NIC (MAC 52:54:00:fa:11:70, address 127.0.0.1)',
      'agent: last heartbeat at …; asked at https://127.0.0.1:…: Connection to agent failed: …',
      'last boot requests: none by DHCP, TFTP or HTTP',
    ],
  },
  {
    name: 'the memory for files of the ramdisk is full',
    put: 'a file that fills it, and a config drive for a disk with sectors of 4096 bytes',
    disk: 'WIDE',
    instance: { configdrive: gzipSync(Buffer.alloc(8 * 2 ** 20)).toString('base64') },
    before: ({ guest }) => guest('dd if=/dev/zero of=/fill bs=1M 2> /dev/null'),
    after: ({ guest }) => guest('rm /fill'),
    text: [
      `${FAILED}The config drive cannot be converted for a disk with sectors of 4096 bytes: …ENOSPC: no space left on device, write`,
      STEP,
      COMMAND,
      'concerns: disk /dev/… (serial WIDE, 5.0 GiB)',
      ...LOG,
    ],
  },
  {
    name: 'the store behind the disk is full',
    put: 'ENOSPC for each write (blkdebug) of a SCSI disk',
    disk: 'THIN',
    text: [
      `${FAILED}Writing image to device /dev/… failed: EIO: i/o error, … (the kernel: critical space allocation error, dev …, sector … op …:(WRITE)…)`,
      STEP,
      COMMAND,
      'concerns: disk /dev/… (serial THIN, …5.0 GiB)',
      ...LOG,
    ],
  },
  {
    name: 'the disk fails while it is written',
    put: 'EIO for a sector in the image (blkdebug)',
    disk: 'WORN',
    text: [
      `${FAILED}Writing image to device /dev/… failed: EIO: i/o error, … (the kernel: I/O error, dev …, sector … op …:(WRITE)…)`,
      STEP,
      COMMAND,
      'concerns: disk /dev/… (serial WORN, 5.0 GiB)',
      ...LOG,
    ],
  },
  {
    name: 'the disk cannot be read',
    put: 'EIO for each read of its first sector (blkdebug)',
    disk: 'DEAF',
    before: ({ monitor }) => monitor('device_add', plugged('DEAF')),
    after: ({ monitor }) => monitor('device_del', { id: 'DEAF' }),
    text: [
      `${FAILED}Unexpected exception performing deploy step write_image: /dev/… cannot be read at 0: EIO: i/o error, read (the kernel: …)`,
      STEP,
      COMMAND,
      'concerns: disk /dev/… (serial DEAF, …5.0 GiB)',
      ...LOG,
    ],
  },
  {
    name: 'the disk hangs',
    put: 'writes of one byte each second (block_set_io_throttle), and ipa-disk-timeout=20',
    disk: 'GOOD',
    image: 'slow',
    during: ({ monitor }) => monitor('block_set_io_throttle', { id: GOOD_DISK, ...NO_LIMITS, bps_wr: 1 }),
    after: ({ monitor }) => monitor('block_set_io_throttle', { id: GOOD_DISK, ...NO_LIMITS }),
    text: [
      `${FAILED}Writing image to device /dev/vda failed: the disk hangs: it has done nothing for 20 s (ipa-disk-timeout)`,
      STEP,
      COMMAND,
      GOOD,
      ...LOG,
    ],
  },
  {
    name: 'a volume is on the disk',
    put: 'a device-mapper volume on a partition of the disk',
    disk: 'GOOD',
    before: ({ guest }) => guest(`${PARTITION}; dmsetup create archive --table "0 2048 linear /dev/vda1 0"`),
    after: ({ guest }) => guest('dmsetup remove archive'),
    text: [
      `${FAILED}Writing image to device /dev/vda failed: the disk is in use: /dev/vda1 (part of archive): blockdev …busy`,
      STEP,
      COMMAND,
      GOOD,
      ...LOG,
    ],
  },
  {
    name: 'a disk cannot be erased',
    put: 'EIO for its first sector, and the step erase_devices_metadata',
    disk: 'GOOD',
    steps: [{ interface: 'deploy', step: 'erase_devices_metadata', priority: 90, args: {} }],
    text: [
      'Deploy step deploy.erase_devices_metadata failed on node …. "/dev/…": …EIO: i/o error…',
      'step: deploy.erase_devices_metadata',
      COMMAND,
      'concerns: disk /dev/… (serial EDGE, 5.0 GiB)',
      ...LOG,
    ],
  },
  {
    name: 'the disk vanishes while it is written',
    put: 'device_del of the SCSI disk in the middle of the image',
    disk: 'PULLED',
    image: 'slow',
    during: ({ monitor }) => monitor('device_del', { id: 'pulled' }),
    text: [
      `${FAILED}Writing image to device /dev/… failed: the disk is gone: it was removed, or its controller lost it (…)…`,
      STEP,
      COMMAND,
      'concerns: disk /dev/… (serial PULLED, …5.0 GiB)',
      ...LOG,
    ],
  },
  {
    name: 'the partitions of the disk are in use',
    put: 'swap on a partition of the disk',
    disk: 'GOOD',
    before: ({ guest }) => guest(`${PARTITION}; mkswap /dev/vda1; swapon /dev/vda1`),
    after: ({ guest }) => guest('swapoff /dev/vda1'),
    text: [
      `${FAILED}Writing image to device /dev/vda failed: the disk is in use: /dev/vda1 (swap): blockdev …busy`,
      STEP,
      COMMAND,
      GOOD,
      ...LOG,
    ],
  },
  {
    name: 'the machine runs out of memory',
    put: "the kernel's OOM killer, by sysrq, while the image is written",
    image: 'slow',
    during: ({ guest }) => guest(`for agent in ${AGENT}; do echo 1000 > /proc/$agent/oom_score_adj; done; echo f > /proc/sysrq-trigger`),
    text: [
      RESTARTED,
      STEP,
      LOGS,
      END,
      '…',
      '… WARNING The agent before ended with status 137 (killed by signal 9); the kernel: …Out of memory: Killed process …(agent)…',
      '…',
    ],
  },
  {
    name: 'the agent hangs',
    put: 'SIGSTOP while the image is written',
    image: 'slow',
    during: ({ guest }) => guest(`kill -STOP ${AGENT}`),
    steps: LIMITED,
    text: SILENT,
  },
  {
    name: 'the network link is lost',
    put: 'set_link off while the image is written',
    image: 'slow',
    during: ({ monitor }) => monitor('set_link', { name: 'nic', up: false }),
    after: ({ monitor }) => monitor('set_link', { name: 'nic', up: true }),
    steps: LIMITED,
    text: SILENT,
  },
  {
    name: 'the network link is lost for a while',
    put: 'set_link off for 15 seconds while the image is written',
    image: 'slow',
    during: async ({ monitor }) => {
      await monitor('set_link', { name: 'nic', up: false });
      await delay(15_000);
      await monitor('set_link', { name: 'nic', up: true });
    },
    text: [
      `${FAILED}Download of image … from http://… broke off after … bytes: …http://… sent nothing for … s`,
      STEP,
      COMMAND,
      'concerns: NIC eth0 (MAC 52:54:00:fa:…, no link)',
      ...LOG,
    ],
  },
  {
    name: 'the machine loses its address',
    put: 'the address is removed while the image is written',
    image: 'slow',
    during: ({ guest }) => guest('ip addr flush dev eth0'),
    after: ({ guest }) => guest('udhcpc -n -q -i eth0 -s /bin/lease > /dev/null 2>&1'),
    steps: LIMITED,
    text: SILENT,
  },
  {
    name: 'the machine has no disk',
    put: 'a machine whose only disk is unplugged, and no root device hint',
    machine: 'UEFI',
    instance: { root_device: undefined },
    before: ({ monitor }) => monitor('device_del', { id: 'GOOD' }),
    after: ({ monitor }) => monitor('device_add', plugged('GOOD')),
    text: [
      `${FAILED}No suitable device was found for deployment - root device hints were not provided and all found block devices are smaller than 4294967296B.`,
      STEP,
      COMMAND,
      'concerns: the machine has no disk',
      ...LOG,
    ],
  },
  {
    name: 'the image has no EFI system partition',
    put: 'such an image, and a machine with UEFI',
    machine: 'UEFI',
    text: [
      'Deploy step deploy.prepare_instance_boot failed: Failed to install a bootloader when deploying node …: No EFI partition could be detected on device /dev/…. Are you using a UEFI-compatible image?.',
      'step: deploy.prepare_instance_boot',
      'command: install_bootloader (FAILED)',
      'concerns: disk /dev/… (serial GOOD, …5.0 GiB)',
      ...LOG,
    ],
  },
];

/** A machine whose agent never calls. It boots once the node waits for it. */
export interface BootFault extends AgentFault {
  /** MiB. */
  readonly memory?: number;
  /** The network link is off. */
  readonly isUnplugged?: true;
  /** What the machine's console says. */
  readonly console: RegExp;
}
const NEVER_CALLED = [
  'Timeout reached while waiting for callback for node …',
  'step: deploy.deploy',
  'concerns: NIC (MAC 52:54:00:…)',
  'waited: [conductor]deploy_callback_timeout of … s ended at …; the last news were at …',
  'agent: none has looked the node up or sent a heartbeat',
  'last boot requests: none by DHCP, TFTP or HTTP',
];
export const BOOT_FAULTS: readonly BootFault[] = [
  {
    name: 'the machine has too little memory for the ramdisk',
    put: 'a machine with 128 MiB',
    memory: 128,
    console: /Kernel panic|Out of memory/,
    text: NEVER_CALLED,
  },
  {
    name: 'the machine boots without a network link',
    put: 'set_link off before the kernel begins',
    isUnplugged: true,
    console: /No address within/,
    text: NEVER_CALLED,
  },
];
