/** Introspections: states and events as in ironic-inspector, and the stored record. */

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

/** Event → the states in which it is allowed. An error is possible in all states. */
export const INTROSPECTION_EVENTS = {
  start: ['error', 'finished', 'waiting'],
  wait: ['starting'],
  // A fast machine may report before its BMC has responded to the power action.
  process: ['starting', 'waiting'],
  reapply: ['error', 'finished', 'reapplying'],
  abort: ['starting', 'waiting', 'error'],
} as const satisfies Record<string, readonly IntrospectionState[]>;

export interface IntrospectionRecord {
  readonly node_uuid: string;
  readonly state: IntrospectionState;
  readonly started_at: string;
  /** Null: the introspection is running and accepts the machine's report. */
  readonly finished_at: string | null;
  readonly error: string | null;
  /** Whether this service powers and boots the machine. */
  readonly manage_boot: boolean;
  /** Whether the boot interface is configured to boot the ramdisk. */
  readonly boots_ramdisk: boolean;
  /** The addresses that identify the report. */
  readonly macs: readonly string[];
  readonly bmc_addresses: readonly string[];
}
