/** The words of docs/health.md: what is wrong with machines, and how it is known. */

/** The worse one later. */
export const SEVERITIES = ['warning', 'critical'] as const;
export type Severity = (typeof SEVERITIES)[number];
/** How a node is: the worst of its alerts that are neither cleared nor masked. */
type Health = Severity | 'ok';

/** Where alerts come from. `machine`: they quote the BMC or the hardware, so that a lessee does not see them by default. */
export const ALERT_SOURCES = {
  sensor: { machine: true, about: 'a sensor, as it was read for [sensor_data]' },
  system: { machine: true, about: 'the health that the BMC reports with the power state' },
  log: { machine: true, about: "the BMC's event log, when somebody or the server reads it" },
  event: { machine: true, about: 'an event that the BMC sent, and the part that it names' },
  hardware: { machine: true, about: 'a change of the hardware that a recorder or an inspection found' },
  smart: { machine: true, about: 'what a disk says of itself (SMART), as a recorder or an inspection has read it' },
  state: { machine: false, about: 'a provision state that lasts longer than [health]time_limits says' },
  report: { machine: false, about: 'a person, or a program of the site' },
} as const satisfies Readonly<Record<string, { readonly machine: boolean; readonly about: string }>>;
export type AlertSource = keyof typeof ALERT_SOURCES;
export const isOfMachine = (source: AlertSource): boolean => ALERT_SOURCES[source].machine;

/** What identifies an alert of a node, as long as it is not cleared. */
export interface AlertKey {
  readonly node_uuid: string;
  readonly source: AlertSource;
  /** The name of the rule; of a report: the program or the person that reports. */
  readonly rule: string;
  /** What the alert is about, such as `fan 3`. */
  readonly subject: string;
}
/** An alert that ends, and why; absent: its cause has ended. */
export interface EndedAlert extends AlertKey {
  readonly reason?: string | undefined;
}
export interface NewAlert extends AlertKey {
  readonly severity: Severity;
  readonly text: string;
  /** When it ends by itself; null: when its cause ends. */
  readonly until: string | null;
  /** The user who reported it; null: a rule found it, or the server authenticates nobody. */
  readonly reported_by: string | null;
  /** A recorder found it: it ends with the instance. */
  readonly of_recorder?: true;
}
export interface AlertMask {
  readonly until: string;
  readonly reason: string;
  readonly by: string | null;
}
export interface AlertRecord extends NewAlert {
  readonly id: number;
  readonly uuid: string;
  readonly since: string;
  readonly updated_at: string;
  readonly cleared_at: string | null;
  readonly masked_until: string | null;
  readonly mask_reason: string | null;
  readonly masked_by: string | null;
}

type Masked = Pick<AlertRecord, 'masked_until'>;
/** @param now milliseconds */
export const isMasked = ({ masked_until: until }: Masked, now: number): boolean => until !== null && Date.parse(until) > now;
/** @param now milliseconds */
export function healthOf(alerts: Iterable<Masked & Pick<AlertRecord, 'severity' | 'cleared_at'>>, now: number): Health {
  let worst: Health = 'ok';
  for (const alert of alerts) {
    if (alert.cleared_at !== null || isMasked(alert, now)) continue;
    if (alert.severity === 'critical') return 'critical';
    worst = 'warning';
  }
  return worst;
}
