/** The enforcer of a running server: reads the policy files at the start, and again when they change. */
import { reasonOf } from '../model/errors';
import type { Log } from '../model/log';
import { watchFiles, type FileWatch } from '../wire/watch-files';
import { enforcerOf, type Enforcer, type PolicyOptions, type ReplaceableEnforcer } from './enforcer';
import { checkPresence, compileFiles, policyFilePaths, readPolicyFiles, warningsOf, type PlaceOptions } from './files';
import { ineffectiveness, type StrategyOptions } from './ineffectiveness';
import { unknownRoles, type GrantOptions } from './unknown-roles';

interface LiveEnforcer {
  readonly enforcer: Enforcer;
  /** Reads the files now. If `policy_file` is gone, the defaults apply from then on. Without this call the previous rules still apply. */
  reload(): void;
  stop(): Promise<void>;
}

/** More than these are only counted. */
const MAX_WARNINGS = 50;

/**
 * @param checkMs milliseconds between checks of the files
 * @throws PolicyFileError for the operator
 */
export async function startEnforcer(
  options: PolicyOptions & PlaceOptions & StrategyOptions & GrantOptions,
  log: Log,
  checkMs?: number,
): Promise<LiveEnforcer> {
  let enforcer: ReplaceableEnforcer | undefined;
  let known: readonly string[] = [];
  let ofFolders: FileWatch | undefined;
  /** @param mayVanish the defaults apply if `policy_file` is gone */
  async function load(mayVanish: boolean): Promise<void> {
    const { paths, dangling } = await policyFilePaths(options);
    // Before the files are read, so that no change stays unnoticed.
    ofFolders?.stop();
    ofFolders = watchFiles([...paths, ...dangling], read, checkMs);
    const files = await readPolicyFiles(paths);
    checkPresence(options, files, mayVanish ? [] : known);
    const policies = compileFiles(options, files);
    if (enforcer) enforcer.replace(policies);
    else enforcer = enforcerOf(policies);
    const reason = ineffectiveness(options);
    if (reason !== undefined && known.length === 0 && files.files.length > 0) log.warn(`policy files: ${reason}`);
    for (const link of dangling) log.warn('a policy file is skipped: it is a symbolic link to a file that does not exist', { file: link });
    const warnings = warningsOf(options, files);
    for (const warning of unknownRoles(options, files.rules)) log.warn(warning);
    for (const warning of warnings.slice(0, MAX_WARNINGS)) log.warn(`policy: ${warning}`);
    if (warnings.length > MAX_WARNINGS) log.warn(`policy: and ${warnings.length - MAX_WARNINGS} warnings more`);
    for (const file of known)
      if (!files.files.includes(file)) log.warn('a policy file was removed: the defaults of its rules apply', { file });
    if (known.length > 0 || files.files.length > 0) log.info('policy files read', { files: files.files, rules: files.rules.size });
    known = files.files;
  }

  let running: Promise<void> | undefined;
  let again = false;
  let isAsked = false;
  let stopped = false;
  /** Changes while the files are read are read afterwards. */
  async function run(): Promise<void> {
    do {
      again = false;
      const mayVanish = isAsked;
      isAsked = false;
      await load(mayVanish).catch((error: unknown) => {
        log.error('the policy files cannot be used: the previous rules still apply', { error: reasonOf(error) });
      });
    } while (again && !stopped);
    running = undefined;
  }
  function read(): void {
    if (running) again = true;
    else if (!stopped) running = run();
  }
  const stop = async (): Promise<void> => {
    stopped = true;
    watch.stop();
    await running;
    ofFolders?.stop();
  };
  // Folders change when files come and go.
  const watch = watchFiles(options['oslo_policy.policy_dirs'], read, checkMs);
  try {
    await load(true);
  } catch (error) {
    await stop();
    throw error;
  }
  return {
    enforcer: enforcer!,
    reload() {
      isAsked = true;
      read();
    },
    stop,
  };
}
