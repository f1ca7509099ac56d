/** The interface of the database. It has a member for each row of `TABLES`. Only this folder contains SQL. */
import type { Tables } from './tables';

export type { OwnedVersion, RowVersion } from './sql/rows';
export type { AliveConductors } from './tables/conductors';
export type { BiosFacts, ConfigScope, ScopeSteps } from './tables/default-configs';
export type { HardwareChangeFilter, HardwareToken, HardwareUnchanged } from './tables/hardware';
export type { InHistory, ListedAlert } from './tables/health-alerts';
export type { NodeFilter } from './tables/node-lists';
export type { AgentNode, AnsweredNode, LookupNode, NodeSummary } from './tables/node-lookups';
export type { RowSize, Table, TableFilter } from './tables/resources';

export interface Store extends Tables {
  /** Runs `work` in one transaction: all calls on the inner store belong to it. */
  transaction<T>(work: (store: Store) => Promise<T>): Promise<T>;
}
