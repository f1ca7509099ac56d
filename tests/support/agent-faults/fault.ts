/** A fault of an agent or its machine, and the text that the operator reads. Tests put the fault in; the documentation shows the table. */
export interface AgentFault {
  readonly name: string;
  /** How the test puts it in, as a phrase. */
  readonly put: string;
  /** The lines of `last_error`. `…` stands for what differs from run to run; a line of only `…` for any number of lines. */
  readonly text: readonly string[];
}

const escaped = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
/** Matches a `last_error` that is as the fault says. */
export const textOf = ({ text }: AgentFault): RegExp =>
  new RegExp(`^${text.map((line) => (line === '…' ? '(?:.*\\n)*?.*' : line.split('…').map(escaped).join('.*'))).join('\\n')}$`);
