/** Checks of `bloomery probe`: what is asked, what it is needed for, and what was found. */

/** `unknown`: the BMC did not tell. `wrong`: it is there, but does not work as a deployment needs it. */
export type Result = 'ok' | 'missing' | 'unknown' | 'wrong';
export interface Outcome {
  readonly result: Result;
  /** One sentence, with what the BMC tells. */
  readonly text: string;
  /** What the operator can do. */
  readonly todo?: string | undefined;
}
/** The checks of one protocol, in this order. */
export interface Check<Machine> {
  readonly name: string;
  /** What a deployment needs it for. */
  readonly neededFor: readonly string[];
  /** A deployment works without it. */
  readonly optional?: true;
  run(machine: Machine): Outcome | Promise<Outcome>;
}
export interface Finding extends Outcome {
  readonly check: string;
  readonly needed_for: readonly string[];
  readonly optional: boolean;
}
export interface ProbeReport {
  readonly bmc: string;
  readonly protocol: 'redfish' | 'ipmi';
  readonly machine: Readonly<Record<string, string | null>>;
  /** What differs from the standard, one sentence each. */
  readonly quirks: readonly string[];
  readonly findings: readonly Finding[];
}

export const ok = (text: string): Outcome => ({ result: 'ok', text });
export const missing = (text: string, todo?: string): Outcome => ({ result: 'missing', text, todo });
export const unknown = (text: string, todo?: string): Outcome => ({ result: 'unknown', text, todo });
export const wrong = (text: string, todo?: string): Outcome => ({ result: 'wrong', text, todo });

/** The BMC refused the login, or cannot be reached: no other check is tried. */
export class ProbeEnd extends Error {
  constructor(readonly outcome: Outcome) {
    super(outcome.text);
  }
}

interface Run {
  readonly signal: AbortSignal;
  readonly explain: (error: unknown) => Outcome | undefined;
  readonly progress: (check: string) => void;
}
/** Runs the checks one after another. What fails or is late is unknown, and stops no other check. @throws what `explain` does not know */
export async function runChecks<Machine>(checks: readonly Check<Machine>[], machine: Machine, run: Run): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const check of checks) {
    const { name, neededFor, optional = false } = check;
    run.progress(name);
    const about = { check: name, needed_for: neededFor, optional };
    try {
      findings.push({ ...about, ...(await check.run(machine)) });
    } catch (error) {
      const end = error instanceof ProbeEnd ? error.outcome : undefined;
      const late = run.signal.aborted ? unknown('The time for the probe is over.', 'Give more by --timeout.') : undefined;
      const outcome = end ?? late ?? run.explain(error);
      if (!outcome) throw error;
      findings.push({ ...about, ...outcome });
      if (end) break;
    }
  }
  return findings;
}

/** Whether a deployment lacks something. */
export const lacks = ({ findings }: ProbeReport): boolean =>
  findings.some(({ result, optional }) => !optional && (result === 'wrong' || result === 'missing'));
