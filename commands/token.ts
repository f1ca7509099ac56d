/** `bloomery token …`: manages the tokens that machines and CI jobs call the API with. Works on the database, also while servers run. */
import { randomBytes } from 'node:crypto';
import { InvalidArgumentError, type Command } from 'commander';
import { apiTokenHash, API_TOKEN_KEY, makeApiToken } from '../policy/api-tokens';
import type { ApiTokenRecord } from '../model/records';
import { systemClock, timestamp } from '../model/clock';
import { misspeltRoles } from '../policy/implied-roles';
import { GRANT_OPTIONS, NO_GRANT, scopeProblem } from '../policy/grants';
import { schemaState, stepsDone } from '../store/sql/schema';
import { apiTokensOn, type ApiTokens } from '../store/tables/api-tokens';
import { secretsOn, type Secrets } from '../store/tables/secrets';
import { onDatabase } from './database';
import { withSetup, type SetupArguments } from './setup';
import { print, printError, printJson } from './output';

interface TokenStore {
  readonly tokens: ApiTokens;
  readonly secrets: Secrets;
}
const onTokens = (given: SetupArguments, work: (store: TokenStore) => Promise<void>): Promise<void> =>
  onDatabase(given, {}, async ({ connected: { db }, what }) => {
    const state = schemaState(await stepsDone(db));
    if (state === 'newer') throw new Error(`${what}: its schema is newer than this program`);
    if (state !== 'current') throw new Error(`${what}: its schema is older than this program: run "bloomery db sync" first`);
    await work({ tokens: apiTokensOn(db), secrets: secretsOn(db) });
  });

const UNITS: Readonly<Record<string, number>> = { m: 60_000, h: 3_600_000, d: 86_400_000 };
const MAX_DAYS = 3650;
/** Converts `90d`, `12h`, `30m` or `never` to a time. Null: never. */
function parseExpires(text: string): string | null {
  if (text === 'never') return null;
  const [, amount, unit] = /^(\d{1,6})([mhd])$/.exec(text) ?? [];
  const milliseconds = Number(amount) * (UNITS[unit ?? ''] ?? NaN);
  if (!(milliseconds > 0 && milliseconds <= MAX_DAYS * UNITS['d']!))
    throw new InvalidArgumentError(`must be a duration such as 90d, 12h or 30m, at most ${MAX_DAYS}d, or never.`);
  return timestamp(systemClock.now() + milliseconds);
}
/** Returns a parser that checks an argument as this option of a grant. */
const checked =
  (option: keyof typeof GRANT_OPTIONS) =>
  (text: string): string => {
    try {
      GRANT_OPTIONS[option](text);
      return text;
    } catch (error) {
      throw new InvalidArgumentError(`${(error as Error).message}.`);
    }
  };
const appendRole = (text: string, before: readonly string[] = []): readonly string[] => [...before, checked('roles')(text)];

interface CreateArguments extends SetupArguments {
  readonly name: string;
  /** Absent: the name of the token. */
  readonly user?: string;
  readonly role?: readonly string[];
  readonly project?: string;
  readonly domain?: string;
  readonly system?: boolean;
  /** Null: never. */
  readonly expires: string | null;
  readonly json?: boolean;
}
async function create({
  name,
  user = name,
  role = [],
  project,
  domain,
  system = false,
  expires,
  json,
  ...setup
}: CreateArguments): Promise<void> {
  const grant = {
    ...NO_GRANT,
    ...GRANT_OPTIONS.roles(role.join(',')),
    project: project ?? null,
    domain: domain ?? null,
    system,
  };
  const problem = scopeProblem(grant);
  if (problem !== undefined) throw new Error(problem);
  for (const warning of misspeltRoles(grant.roles)) printError(`bloomery: ${warning}`);
  await onTokens(setup, async ({ tokens, secrets }) => {
    const key = await secrets.shared(API_TOKEN_KEY, () => randomBytes(32).toString('hex'));
    const token = makeApiToken(key, randomBytes);
    const record = {
      name,
      user_name: user,
      roles: grant.roles,
      project: grant.project,
      domain: grant.domain,
      system,
      created_at: timestamp(systemClock.now()),
      expires_at: expires,
    };
    if (!(await tokens.create(record, apiTokenHash(token))))
      throw new Error(`there is a token ${name} already: choose another name, or revoke it first`);
    if (json) printJson({ ...record, token });
    else print(token);
    printError(`bloomery: token ${name}: ${expires === null ? 'it does not expire' : `it expires at ${expires}`}. It is shown only now.`);
  });
}

const scopeOf = ({ project, domain, system }: ApiTokenRecord): string =>
  system ? 'system' : project !== null ? `project ${project}` : domain !== null ? `domain ${domain}` : 'none';
const minute = (time: string | null, otherwise: string): string => time?.slice(0, 16).replace('T', ' ') ?? otherwise;
const HEADINGS = ['NAME', 'USER', 'ROLES', 'SCOPE', 'CREATED', 'EXPIRES', 'LAST USED'];
function tableOf(tokens: readonly ApiTokenRecord[]): string {
  const rows = tokens.map((token) => [
    token.name,
    token.user_name,
    token.roles.join(',') || '-',
    scopeOf(token),
    minute(token.created_at, ''),
    token.expires_at !== null && Date.parse(token.expires_at) <= systemClock.now() ? 'expired' : minute(token.expires_at, 'never'),
    minute(token.last_used_at, 'never'),
  ]);
  const all = [HEADINGS, ...rows];
  const widths = HEADINGS.map((_, column) => Math.max(...all.map((row) => row[column]!.length)));
  return all
    .map(
      (row) =>
        `${row
          .map((cell, column) => cell.padEnd(widths[column]!))
          .join('  ')
          .trimEnd()}\n`,
    )
    .join('');
}
const list = ({ json, ...setup }: SetupArguments & { readonly json?: boolean }): Promise<void> =>
  onTokens(setup, async ({ tokens }) => {
    const all = await tokens.list();
    if (json) printJson(all);
    else print(tableOf(all));
  });

const revoke = (name: string, setup: SetupArguments): Promise<void> =>
  onTokens(setup, async ({ tokens }) => {
    if (!(await tokens.remove(name))) throw new Error(`there is no token ${name}`);
    printError(`bloomery: token ${name} is revoked`);
  });

export function addTokenCommands(program: Command): void {
  const token = program.command('token').description('Manage tokens for machines and CI jobs that call the API ([api]enable_tokens).');
  withSetup(
    token
      .command('create')
      .description('Create a token, and print it. The database stores only its hash.')
      .requiredOption('--name <name>', 'name of the token, for lists and the audit log', checked('project'))
      .option('--user <name>', 'user that the token stands for (default: the name of the token)', checked('project'))
      .option('--role <role>', 'role; may be repeated; admin includes manager, manager member, member reader (default: none)', appendRole)
      .option('--project <id>', 'project scope: the ID of the project', checked('project'))
      .option('--domain <id>', 'domain scope: the ID of the domain', checked('domain'))
      .option('--system', 'system scope: the whole system')
      .requiredOption('--expires <duration>', 'time until the token expires (90d, 12h, 30m), or never; required', parseExpires)
      .option('--json', 'print the token and its data as JSON'),
  ).action(create);
  withSetup(token.command('list').description('List the tokens (not their values).').option('--json', 'print them as JSON')).action(list);
  withSetup(
    token.command('revoke').description('Revoke a token. Servers refuse it within seconds.').argument('<name>', 'name of the token'),
  ).action(revoke);
}
