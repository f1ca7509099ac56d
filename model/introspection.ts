/** The introspection service's view of a node: its states, as ironic-inspector has them, and what is kept. */

export const INTROSPECTION_STATES = [
  'starting',
  'waiting',
  'processing',
  'finished',
  'error',
  'reapplying',
  'enrolling',
  'aborting',
] as const;
export type IntrospectionState = (typeof INTROSPECTION_STATES)[number];

/** What may be asked, and in which states. An error is possible in all. */
export const INTROSPECTION_EVENTS = {
  start: ['error', 'finished', 'waiting'],
  wait: ['starting'],
  // A quick machine reports before its power order is answered.
  process: ['starting', 'waiting'],
  reapply: ['error', 'finished', 'reapplying'],
  abort: ['starting', 'waiting', 'error'],
} as const satisfies Record<string, readonly IntrospectionState[]>;

export interface IntrospectionRecord {
  readonly node_uuid: string;
  readonly state: IntrospectionState;
  readonly started_at: string;
  /** Null: it is under way, and its machine's report is taken. */
  readonly finished_at: string | null;
  readonly error: string | null;
  /** Whether the machine is powered and booted by us. */
  readonly manage_boot: boolean;
  /** Whether the boot interface was told to boot the ramdisk. */
  readonly boots_ramdisk: boolean;
  /** By which the report is recognized. */
  readonly macs: readonly string[];
  readonly bmc_addresses: readonly string[];
}
