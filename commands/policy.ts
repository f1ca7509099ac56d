/** `bloomery policy`: shows, explains and checks the rules of policies. */
import { InvalidArgumentError, type Command } from 'commander';
import type { LoadedOptions } from '../config/options';
import { suggestionFor } from '../config/suggestion';
import { NOBODY, type Caller } from '../policy/caller';
import { effectiveRules } from '../policy/enforcer';
import { explain, type Explanation } from '../policy/explain';
import { checkPresence, compileFiles, policyFilePaths, readPolicyFiles, warningsOf, type PolicyFiles } from '../policy/files';
import { ALWAYS_EVALUATED, ineffectiveness } from '../policy/ineffectiveness';
import { DEFAULT_ROLES, withImpliedRoles } from '../policy/implied-roles';
import { formatRule } from '../policy/language';
import { POLICIES, type PolicyRow } from '../policy/rules';
import type { Target } from '../policy/vocabulary';
import { get } from './endpoint';
import { readOptions, withConfigFiles, type SetupArguments } from './setup';
import { print, printError } from './output';

type ConfigArguments = Pick<SetupArguments, 'configFile' | 'configDir'>;
interface Policies {
  readonly options: LoadedOptions;
  readonly files: PolicyFiles;
}
/** @throws PolicyFileError */
async function readPolicies(given: ConfigArguments): Promise<Policies> {
  const { options } = readOptions(given);
  const files = await readPolicyFiles((await policyFilePaths(options)).paths);
  checkPresence(options, files, []);
  compileFiles(options, files);
  return { options, files };
}

/** The name of a rule with or without `baremetal:`. @throws Error for the operator */
function ruleNameOf(given: string, { options, files }: Policies): string {
  const { rules } = effectiveRules(options, files.rules);
  const found = [given, `baremetal:${given}`].find((name) => rules.has(name));
  if (found !== undefined) return found;
  const names = [...rules.keys()];
  const meant = suggestionFor(given, names) ?? suggestionFor(`baremetal:${given}`, names);
  throw new Error(`there is no rule ${given}${meant === undefined ? '' : `; did you mean ${meant}?`}`);
}

interface ListedRule extends Pick<PolicyRow, 'name' | 'scopes'> {
  readonly check: string;
  /** Absent: the default. */
  readonly from?: string | undefined;
}
function listedRules({ options, files }: Policies): readonly ListedRule[] {
  const { rules } = effectiveRules(options, files.rules);
  const own = [...files.rules.keys()].filter((name) => !POLICIES.some((row) => row.name === name));
  return [...POLICIES, ...own.map((name) => ({ name, scopes: [] }))].map(({ name, scopes }) => {
    const place = files.places.get(name);
    return { name, scopes, check: formatRule(rules.get(name)!), from: place ? `${place.file} line ${place.line}` : undefined };
  });
}
async function list(given: ConfigArguments & { readonly changed?: true; readonly json?: true }): Promise<string> {
  const rules = listedRules(await readPolicies(given)).filter(({ from }) => !given.changed || from !== undefined);
  if (given.json) return `${JSON.stringify(rules, null, 2)}\n`;
  return rules.map(({ name, check, from }) => `${name}${from === undefined ? '' : ` (${from})`}\n    ${check}\n`).join('');
}

async function show(rule: string, given: ConfigArguments): Promise<string> {
  const policies = await readPolicies(given);
  const name = ruleNameOf(rule, policies);
  const { check, from } = listedRules(policies).find((listedRule) => listedRule.name === name)!;
  const row = POLICIES.find((policy) => policy.name === name);
  const former = row?.former && `${row.former.check}${row.former.name === undefined ? '' : ` (as ${row.former.name})`}`;
  return [
    name,
    ...(row
      ? [
          `  ${row.help}`,
          `  scopes:  ${row.scopes.length === 0 ? 'any' : row.scopes.join(', ')}`,
          `  default: ${row.check || '"" (everybody)'}`,
        ]
      : []),
    ...(former === undefined ? [] : [`  former:  ${former}`]),
    `  counts:  ${check}`,
    `  from:    ${from ?? 'the default'}`,
    '',
  ].join('\n');
}

const sample = (): string =>
  POLICIES.map(({ name, check, scopes, help }) => {
    const scope = scopes.length === 0 ? '' : ` Scopes: ${scopes.join(', ')}.`;
    return `# ${help}${scope}\n#${JSON.stringify(name)}: ${JSON.stringify(check)}\n`;
  }).join('\n');

const SCOPES = ['system', 'owner', 'lessee', 'other'] as const;
interface Persona {
  readonly scope: (typeof SCOPES)[number];
  readonly roles: readonly string[];
}
function parsePersona(text: string): Persona {
  const [scope, role = ''] = text.split('-');
  const known = SCOPES.find((candidate) => candidate === scope);
  if (!known || !DEFAULT_ROLES.includes(role))
    throw new InvalidArgumentError(
      `It must be SCOPE-ROLE, such as owner-member. Scopes: ${SCOPES.join(', ')}. Roles: ${DEFAULT_ROLES.join(', ')}.`,
    );
  return { scope: known, roles: withImpliedRoles([role]) };
}
const parseNames = (text: string): readonly string[] => text.split(',').map((name) => name.trim().toLowerCase());

interface CheckArguments extends ConfigArguments {
  readonly rule: string;
  readonly node?: string;
  readonly owner?: string;
  readonly lessee?: string;
  readonly as?: Persona;
  readonly roles?: readonly string[];
  readonly user?: string;
  readonly project?: string;
  readonly projectName?: string;
  readonly system?: true;
  readonly url?: string;
  readonly json?: true;
}
function ownershipOf(body: unknown): Target | undefined {
  const { owner, lessee } = (body ?? {}) as Partial<Record<keyof Target, unknown>>;
  const isProject = (value: unknown): value is string | null => value === null || typeof value === 'string';
  return isProject(owner) && isProject(lessee) ? { owner, lessee } : undefined;
}
async function targetOf({ node, owner, lessee, as, url }: CheckArguments): Promise<Target | undefined> {
  if (node !== undefined) return get(url, `nodes/${encodeURIComponent(node)}`, ownershipOf);
  if (owner !== undefined || lessee !== undefined) return { owner: owner ?? null, lessee: lessee ?? null };
  return as && { owner: 'OWNER', lessee: 'LESSEE' };
}
/** @throws Error for the operator */
function callerOf(given: CheckArguments, target: Target | undefined): Caller {
  const { as: persona, roles = [], user = 'somebody', project = null, projectName = null, system = false } = given;
  const named = { ...NOBODY, user, projectName };
  if (!persona) return { ...named, project, system, roles };
  if (persona.scope === 'system') return { ...named, system: true, roles: persona.roles };
  const own = persona.scope === 'other' ? 'OTHER' : (target?.[persona.scope] ?? null);
  if (own === null) throw new Error(`the resource has no ${persona.scope}`);
  return { ...named, project: own, roles: persona.roles };
}

const noteLine = (note: string | undefined): string => (note === undefined ? '' : `  note: ${note}\n`);
function explanationPage(name: string, { allowed, rule, scope, clauses }: Explanation, note: string | undefined): string {
  const lines = clauses.map(
    ({ text, decided, passed }) =>
      `  ${passed ? '✓' : '✗'} ${text}${text === decided ? '' : `\n      ${passed ? 'passed' : 'failed'}: ${decided}`}`,
  );
  return [
    `${name}: ${allowed ? 'allowed' : 'denied'}`,
    `  rule: ${rule}`,
    ...(scope === undefined ? [] : [`  ✗ scope: ${scope}`]),
    ...lines,
    noteLine(note),
  ].join('\n');
}
async function check(given: CheckArguments): Promise<string> {
  const policies = await readPolicies(given);
  const isStep = /^(?:baremetal:)?step:execute:/.test(given.rule);
  const name = isStep ? `baremetal:${given.rule.replace(/^baremetal:/, '')}` : ruleNameOf(given.rule, policies);
  const target = await targetOf(given);
  const caller = callerOf(given, target);
  const note = ALWAYS_EVALUATED.has(name) ? undefined : ineffectiveness(policies.options);
  if (isStep && !policies.files.rules.has(name)) return `${name}: allowed\n  no file has a rule for this step\n${noteLine(note)}`;
  const explanation = explain(policies.options, policies.files.rules, name, caller, target);
  process.exitCode = explanation.allowed ? 0 : 1;
  return given.json
    ? `${JSON.stringify({ name, caller, target, ...explanation, note }, null, 2)}\n`
    : explanationPage(name, explanation, note);
}

async function validate(paths: readonly string[], given: ConfigArguments): Promise<string> {
  const { options } = readOptions(given);
  const configured = await policyFilePaths(options);
  const files = await readPolicyFiles(paths.length > 0 ? paths : configured.paths);
  const missing = paths.filter((path) => !files.files.includes(path));
  if (missing.length > 0) throw new Error(`there is no file ${missing.join(', ')}`);
  compileFiles(options, files);
  const skipped = paths.length > 0 ? [] : configured.dangling.map((link) => `${link} is a symbolic link to a file that does not exist`);
  const warnings = [...skipped, ...warningsOf(options, files)];
  process.exitCode = warnings.length > 0 ? 1 : 0;
  const count = `${files.rules.size} rules in ${files.files.length} files, ${warnings.length} warnings`;
  return [...warnings, count, ''].join('\n');
}

/** Prints what a command returns; an error has the exit status 2. */
const printing =
  <Arguments extends readonly unknown[]>(run: (...given: Arguments) => string | Promise<string>) =>
  async (...given: Arguments): Promise<void> => {
    try {
      print(await run(...given));
    } catch (error) {
      printError(`bloomery: ${(error as Error).message}`);
      process.exitCode = 2;
    }
  };

export function addPolicyCommands(program: Command): void {
  const policy = program.command('policy').description('Show, explain and check policy rules.');
  withConfigFiles(policy.command('list').description('Print all rules that are in effect.'))
    .option('--changed', 'print only the rules that policy files set')
    .option('--json', 'print JSON')
    .action(printing(list));
  withConfigFiles(policy.command('show').description('Print a rule, its default and where it comes from.'))
    .argument('<rule>', 'name of the rule, with or without baremetal:')
    .action(printing(show));
  withConfigFiles(
    policy
      .command('check')
      .description(
        'Show whether a rule allows the request of a caller, and which clause decides (exit status 0: allowed, 1: denied, 2: error).',
      ),
  )
    .requiredOption('--rule <name>', 'name of the rule, with or without baremetal:')
    .option(
      '--as <persona>',
      `the caller as SCOPE-ROLE, such as owner-member; scopes: ${SCOPES.join(', ')}; roles: ${DEFAULT_ROLES.join(', ')}`,
      parsePersona,
    )
    .option('--roles <list>', 'the roles of the caller, comma-separated', parseNames)
    .option('--project <id>', 'the ID of the project of the caller')
    .option('--project-name <name>', 'the name of the project of the caller')
    .option('--user <id>', 'the ID of the user')
    .option('--system', 'the caller has system scope')
    .option('--node <node>', 'UUID or name of a node of the server, whose owner and lessee are used')
    .option('--owner <project>', 'the owner of the resource')
    .option('--lessee <project>', 'the lessee of the resource')
    .option('--url <url>', 'the server that has the node, as for bloomery why')
    .option('--json', 'print JSON')
    .action(printing(check));
  policy.command('sample').description('Print a policy file with all defaults as comments.').action(printing(sample));
  withConfigFiles(
    policy.command('validate').description('Check policy files (exit status 0: all is well, 1: warnings, 2: they cannot be used).'),
  )
    .argument('[files...]', 'policy files (default: those of the configuration)')
    .action(printing(validate));
}
