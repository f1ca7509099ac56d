/** The operator's rules: [oslo_policy]policy_file and the files of policy_dirs, YAML or JSON. Later files win. */
import { lstat, readdir, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { Composer, isAlias, isMap, isScalar, isSeq, Lexer, LineCounter, Parser, type Document, type Pair, type ParsedNode } from 'yaml';
import { suggestionFor } from '../config/suggestion';
import type { Options } from '../config/options';
import { reasonOf } from '../model/errors';
import { readRegularFile } from '../wire/authorities';
import { compilePolicies, effectiveRules, STEP_RULE, type FileRules, type PolicyOptions } from './enforcer';
import { parseRule, referencesOf, RuleError, type Rule } from './language';
import { RuleReferenceError } from './rule-set';
import { POLICIES } from './rules';
import { checkCredentials, unknownNames } from './vocabulary';

interface Place {
  readonly file: string;
  readonly line: number;
}
export interface PolicyFiles {
  readonly rules: FileRules;
  readonly places: ReadonlyMap<string, Place>;
  /** The files that exist. */
  readonly files: readonly string[];
}
/** Policy files that cannot be used; the message names file, line and rule. */
class PolicyFileError extends Error {}

const MAX_FILE_BYTES = 256 * 1024;
/** The most entries of a folder. Entries that are not files count, hidden ones do not. */
const MAX_FILES = 100;
/** What the YAML of a policy file may have: a rule with its comments has 10 to 20 lexemes, and is nested three times at most. */
const MAX_LEXEMES = 10_000;
const MAX_NESTING = 16;
/** Longer names in messages are cut. */
const SHOWN_NAME = 100;

const shown = (name: string): string => JSON.stringify(name.length > SHOWN_NAME ? `${name.slice(0, SHOWN_NAME)}…` : name);
const at = ({ file, line }: Place): string => `${file} line ${line}`;
const pointing = (place: Place, name: string, reason: string): PolicyFileError =>
  new PolicyFileError(`${at(place)}: rule ${shown(name)}: ${reason}`);

/** yaml parses deep nesting and long files slowly or not at all, so both are bounded before. @throws PolicyFileError */
function parseYaml(file: string, text: string, lines: LineCounter): Document.Parsed {
  const parser = new Parser(lines.addNewLine);
  lines.addNewLine(0);
  const tokens = [];
  let lexemes = 0;
  for (const lexeme of new Lexer().lex(text)) {
    tokens.push(...parser.next(lexeme));
    if (++lexemes > MAX_LEXEMES || parser.stack.length > MAX_NESTING) {
      const reason = lexemes > MAX_LEXEMES ? 'the file is too long' : 'this is nested too deeply';
      throw new PolicyFileError(`${at({ file, line: lines.linePos(parser.offset).line })}: ${reason} for a policy file`);
    }
  }
  tokens.push(...parser.end());
  const composer = new Composer({ lineCounter: lines, prettyErrors: false, uniqueKeys: false, logLevel: 'silent' });
  const [document, second] = [...composer.compose(tokens, true, text.length)];
  const error = document?.errors[0];
  if (error) throw new PolicyFileError(`${at({ file, line: lines.linePos(error.pos[0]).line })}: ${error.message}`);
  if (second) throw new PolicyFileError(`${at({ file, line: lines.linePos(second.range[0]).line })}: a second document begins`);
  return document as Document.Parsed;
}

/** @throws RuleError */
function valueOf(node: ParsedNode | null, document: Document.Parsed): unknown {
  const resolved = isAlias(node) ? node.resolve(document) : node;
  // Without quotes, ! is a tag and no value, which oslo.policy reads as a rule that allows everybody.
  if (resolved?.tag !== undefined) throw new RuleError(`it has the YAML tag ${resolved.tag}: put the rule in quotes`);
  if (isScalar(resolved)) return resolved.value;
  if (isSeq(resolved) && !isAlias(node)) return resolved.items.map((item) => valueOf(item as ParsedNode, document));
  return resolved;
}

/** @internal @throws PolicyFileError */
export function parsePolicyFile(
  file: string,
  text: string,
): { readonly rules: ReadonlyMap<string, Rule>; readonly places: ReadonlyMap<string, Place> } {
  const lines = new LineCounter();
  const document = parseYaml(file, text, lines);
  const [rules, places] = [new Map<string, Rule>(), new Map<string, Place>()];
  const { contents } = document;
  if (contents === null || (isScalar(contents) && contents.value === null && contents.source === '')) return { rules, places };
  const placeOf = (node: ParsedNode): Place => ({ file, line: lines.linePos(node.range[0]).line });
  if (!isMap(contents)) throw new PolicyFileError(`${at(placeOf(contents))}: a policy file has rules by name, as name: rule`);
  for (const { key, value } of contents.items as readonly Pair<ParsedNode, ParsedNode | null>[]) {
    const place = placeOf(key);
    if (!isScalar(key) || typeof key.value !== 'string' || key.value === '')
      throw new PolicyFileError(`${at(place)}: the name of the rule is not a text`);
    const name = key.value;
    const before = places.get(name);
    if (before) throw pointing(place, name, `it is in line ${before.line} too`);
    try {
      const rule = parseRule(valueOf(value, document));
      checkCredentials(rule);
      rules.set(name, rule);
    } catch (error) {
      if (error instanceof RuleError) throw pointing(place, name, error.message);
      throw error;
    }
    places.set(name, place);
  }
  return { rules, places };
}

export type PlaceOptions = Pick<Options, 'oslo_policy.policy_file' | 'oslo_policy.policy_dirs'>;
const isMissing = (error: unknown): boolean => ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');

/** A file that is removed meanwhile is not a link. */
const isLink = async (path: string): Promise<boolean> =>
  lstat(path).then(
    (found) => found.isSymbolicLink(),
    () => false,
  );

interface FoundFiles {
  readonly paths: readonly string[];
  /** Symbolic links whose target does not exist. */
  readonly dangling: readonly string[];
}
/** The files of a folder in order, without hidden ones; none if the folder does not exist. @throws PolicyFileError */
async function filesOf(folder: string): Promise<FoundFiles> {
  const [paths, dangling]: [string[], string[]] = [[], []];
  try {
    if (!(await stat(folder)).isDirectory()) throw new Error('it is not a folder');
    const names = (await readdir(folder)).filter((name) => !name.startsWith('.')).sort();
    if (names.length > MAX_FILES) throw new Error(`it has more than ${MAX_FILES} files`);
    for (const path of names.map((name) => join(folder, name))) {
      const target = await stat(path).catch((error: unknown) => {
        if (!isMissing(error)) throw error;
      });
      if (target?.isFile()) paths.push(path);
      else if (!target && (await isLink(path))) dangling.push(path);
    }
  } catch (error) {
    if (!isMissing(error)) throw new PolicyFileError(`[oslo_policy]policy_dirs: cannot read ${folder}: ${reasonOf(error)}`);
  }
  return { paths, dangling };
}

/** The paths of policy files that may exist: the file, and those that are in the folders now. @throws PolicyFileError */
export async function policyFilePaths(options: PlaceOptions): Promise<FoundFiles> {
  const folders = await Promise.all(options['oslo_policy.policy_dirs'].map(filesOf));
  return {
    paths: [options['oslo_policy.policy_file'], ...folders.flatMap(({ paths }) => paths)],
    dangling: folders.flatMap(({ dangling }) => dangling),
  };
}

/** Files that do not exist have no rules. @throws PolicyFileError */
export async function readPolicyFiles(paths: readonly string[]): Promise<PolicyFiles> {
  const [rules, places] = [new Map<string, Rule>(), new Map<string, Place>()];
  const files: string[] = [];
  for (const path of paths) {
    let text: string;
    try {
      text = await readRegularFile(path, MAX_FILE_BYTES);
    } catch (error) {
      if (isMissing(error)) continue;
      throw new PolicyFileError(`cannot read the policy file ${path}: ${reasonOf(error)}`);
    }
    files.push(path);
    const read = parsePolicyFile(path, text);
    for (const [name, rule] of read.rules) rules.set(name, rule);
    for (const [name, place] of read.places) places.set(name, place);
  }
  return { rules, places, files };
}

/** The name of Ironic's default: such a file is optional. */
const OPTIONAL = 'policy.yaml';
/**
 * Refuses to continue without a policy file that is gone, because its rules could have been stricter than the defaults.
 * @param before the files of the rules in effect
 * @throws PolicyFileError
 */
export function checkPresence({ 'oslo_policy.policy_file': file }: PlaceOptions, { files }: PolicyFiles, before: readonly string[]): void {
  if (files.includes(file)) return;
  if (before.includes(file)) throw new PolicyFileError(`${file} was removed: send SIGHUP to apply the defaults`);
  if (basename(file) !== OPTIONAL)
    throw new PolicyFileError(`[oslo_policy]policy_file: there is no file ${file}: make it, or remove the option`);
}

/** The policies of files, with an error that names the place. @throws PolicyFileError */
export function compileFiles(options: PolicyOptions, { rules, places }: PolicyFiles): ReturnType<typeof compilePolicies> {
  try {
    return compilePolicies(options, rules);
  } catch (error) {
    if (!(error instanceof RuleReferenceError)) throw error;
    const name = error.names.find((candidate) => places.has(candidate));
    throw name === undefined ? error : pointing(places.get(name)!, name, error.message);
  }
}

/** Warnings, one line each: valid rules that nothing uses, and names in rules that do not exist. */
export function warningsOf(options: PolicyOptions, { rules, places }: PolicyFiles): readonly string[] {
  const known = POLICIES.map(({ name }) => name);
  const set = effectiveRules(options, rules);
  const referred = new Set([...set.rules.values()].flatMap(referencesOf));
  const warnings: string[] = [];
  for (const [name, rule] of rules) {
    const warn = (message: string): void => void warnings.push(`${at(places.get(name)!)}: rule ${shown(name)}: ${message}`);
    if (!known.includes(name) && !name.startsWith(STEP_RULE) && !referred.has(name) && name !== set.defaultRule) {
      const meant = suggestionFor(name, known);
      warn(`nothing uses it${meant === undefined ? '' : `; did you mean ${meant}?`}`);
    }
    for (const reference of new Set(referencesOf(rule)))
      if (!set.rules.has(reference)) {
        const meant = suggestionFor(reference, [...set.rules.keys()]);
        warn(`rule:${shown(reference).slice(1, -1)} does not exist${meant === undefined ? '' : `; did you mean ${meant}?`}`);
      }
    for (const unknown of unknownNames(rule)) warn(`${shown(unknown).slice(1, -1)} has no value here, so that its check is never true`);
  }
  return warnings;
}
