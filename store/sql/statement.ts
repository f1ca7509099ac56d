/**
 * One execution of a statement, as a query of pg. pg's own asks for the columns of the result each time, which PostgreSQL then sends and
 * this program parses: for a node, twice as much as its values. Here each connection remembers the columns of its named statements.
 */
import type { Client, Connection, CustomTypesConfig, FieldDef, Submittable } from 'pg';

/** The parts of pg's connection that its types lack. */
interface Wire {
  readonly stream: { cork(): void; uncork(): void };
  /** Name → text of the statements that PostgreSQL has parsed. pg adds those of the query's members `name` and `text`. */
  readonly parsedStatements: Readonly<Record<string, string | undefined>>;
  parse(statement: { readonly name: string; readonly text: string }): void;
  bind(portal: { readonly statement: string; readonly values: readonly (string | Buffer | null)[] }): void;
  describe(what: { readonly type: 'P' }): void;
  execute(portal: object): void;
  sync(): void;
}

interface Columns {
  readonly names: readonly string[];
  readonly parsers: readonly ((text: string) => unknown)[];
  /** A row without values. A copy of it is faster than an object that gets its members one by one. */
  readonly empty: object;
}
const NO_COLUMNS: Columns = { names: [], parsers: [], empty: {} };
function columnsOf(fields: readonly FieldDef[], types: CustomTypesConfig): Columns {
  const names = fields.map(({ name }) => name);
  return {
    names,
    parsers: fields.map(({ dataTypeID }) => types.getTypeParser(dataTypeID, 'text') as (text: string) => unknown),
    empty: Object.fromEntries(names.map((name) => [name, null])),
  };
}
const known = new WeakMap<Wire, Map<string, Columns>>();
function columnsOn(wire: Wire): Map<string, Columns> {
  const columns = known.get(wire) ?? new Map<string, Columns>();
  known.set(wire, columns);
  return columns;
}

/** The text of a number or a truth value. */
function scalar(value: unknown): string {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  // JSON is text already.
  throw new TypeError('a statement has an object among its values');
}
/** An element of an array literal. */
const element = (value: unknown): string => {
  if (value === null || value === undefined) return 'NULL';
  if (Array.isArray(value)) return arrayOf(value);
  return `"${(typeof value === 'string' ? value : scalar(value)).replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`;
};
const arrayOf = (values: readonly unknown[]): string => `{${values.map(element).join(',')}}`;
/** A value in PostgreSQL's text format. */
function parameter(value: unknown): string | Buffer | null {
  if (typeof value === 'string' || Buffer.isBuffer(value)) return value;
  if (value === null || value === undefined) return null;
  return Array.isArray(value) ? arrayOf(value) : scalar(value);
}

class Execution implements Submittable {
  readonly rows: object[] = [];
  private columns: Columns | undefined;
  private failure: unknown;

  constructor(
    /** Empty: PostgreSQL parses the statement each time. */
    readonly name: string,
    readonly text: string,
    private readonly values: readonly (string | Buffer | null)[],
    private readonly types: CustomTypesConfig,
    private readonly done: (rows: readonly object[]) => void,
    private readonly failed: (reason: unknown) => void,
  ) {}

  submit(connection: Connection): void {
    const wire = connection as unknown as Wire;
    const { name, text, values } = this;
    this.columns = name === '' ? undefined : columnsOn(wire).get(name);
    // All messages leave in one write.
    wire.stream.cork();
    try {
      if (name === '' || wire.parsedStatements[name] === undefined) wire.parse({ name, text });
      wire.bind({ statement: name, values });
      if (!this.columns) wire.describe({ type: 'P' });
      wire.execute({});
      wire.sync();
    } finally {
      wire.stream.uncork();
    }
  }
  handleRowDescription({ fields }: { readonly fields: readonly FieldDef[] }): void {
    this.columns = columnsOf(fields, this.types);
  }
  handleDataRow({ fields: texts }: { readonly fields: readonly (string | null)[] }): void {
    const { names, parsers, empty } = this.columns!;
    const row: Record<string, unknown> = { ...empty };
    try {
      for (let at = 0; at < texts.length; at++) {
        const text = texts[at]!;
        if (text !== null) row[names[at]!] = parsers[at]!(text);
      }
      this.rows.push(row);
    } catch (error) {
      this.failure ??= error;
    }
  }
  handleCommandComplete(_message: unknown, connection: Connection): void {
    // A statement without rows has no columns.
    if (this.name !== '') columnsOn(connection as unknown as Wire).set(this.name, this.columns ?? NO_COLUMNS);
  }
  handleReadyForQuery(): void {
    if (this.failure === undefined) this.done(this.rows);
    else this.failed(this.failure);
  }
  handleError(error: unknown): void {
    this.failed(error);
  }
}

/**
 * Runs a statement on a connection.
 * @param name always has the same text. The columns of its result never change; otherwise PostgreSQL refuses the statement
 * @param values texts must be storable
 * @param types parsers of values
 */
export function execute(
  connection: Client,
  types: CustomTypesConfig,
  name: string | undefined,
  text: string,
  values: readonly unknown[],
): Promise<readonly object[]> {
  return new Promise((done, failed) => {
    connection.query(new Execution(name ?? '', text, values.map(parameter), types, done, failed));
  });
}
