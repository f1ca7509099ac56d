/** Walks a Redfish service by its links, for a recording. GET only, and within limits, however long the service links on. */
import { isObject } from '../../model/json';
import { RedfishError, isStatus, linkKey, rootPath } from '../../wire/redfish';
import { isTreePath, TREE_LIMITS, type RecordedResource } from '../../wire/redfish/recorded-tree';
import type { ProbedService } from './service';

/** Links from the root. */
const MAX_DEPTH = 14;
/** Requests at a time: BMCs are small. */
const WORKERS = 4;
/** Links of one resource. */
const MAX_LINKS = 2000;
/** Links that wait. */
const MAX_WAITING = 20_000;

/** What no driver needs, and what tells of people: it is not asked for. */
const LEFT_OUT: readonly RegExp[] = [
  /\/logservices\/[^/]+\/entries\b/i,
  /\/sessionservice\/sessions\/|\/redfish\/v1\/sessions\//i,
  /\/accounts(?:\/|$)|\/externalaccountproviders\b|\/roles\/|\/privilegemap\b|\/remoteaccountservice\b/i,
  /\/(?:certificates|certificatelocations|trustedcertificates|clientcertificates|certificatecollection)\b/i,
  /\/eventservice\/subscriptions\b|\/subscriptions\//i,
  /\/jsonschemas\b|\/\$metadata\b|\/schemas\b|\/redfish\/v1\/odata\b/i,
  /\/registries\/(?![^/]*(?:bios|attribute))|\/registrystore\b/i,
  /\/telemetryservice\/.+|\/metricreports?\b|\/(?:active)?healthsystem\b|\/jobs\/|\/tasks\/|\/licenseservice\/licenses\b|\/dumps?\/|\/securityservice\/.+/i,
  /\/signatures\b|\/keymanagement\b|\/secureboot(?:databases)?\/.+|\/federation\w*\b|\/measurements\b/i,
];
/** Read last, so that the limits leave them out first. */
const LATER =
  /\/oem\b|\/sensors\/|\/fabrics\b|\/componentintegrity\b|\/pciedevices\b|\/memory\b|\/metrics\b|\/assembly\b|\/environmentmetrics\b/i;
/** Some services (Inspur) have the members of collections as texts. */
const FOLLOWED = /^Members$|^@odata\.id$|@odata\.nextLink$|^@Redfish\.ActionInfo$|^Uri$/;

/** The links of a resource, without fragments. @param of the name of the property that has the value */
function linksIn(value: unknown, found: Set<string>, of = ''): void {
  if (found.size >= MAX_LINKS) return;
  if (Array.isArray(value)) for (const item of value) linksIn(item, found, of);
  else if (isObject(value)) for (const [name, item] of Object.entries(value)) linksIn(item, found, name);
  else if (typeof value === 'string' && FOLLOWED.test(of)) {
    const path = value.replace(/#.*/s, '');
    if (isTreePath(path)) found.add(path);
  }
}

export interface Walked {
  readonly resources: readonly RecordedResource[];
  /** False: limits or errors left something out. */
  readonly complete: boolean;
}
/** @param progress gets the number of resources so far */
export async function walkService({ ask, target }: ProbedService, signal: AbortSignal, progress: (count: number) => void): Promise<Walked> {
  const root = rootPath(target);
  const seen = new Set([linkKey(root)]);
  const soon: [string, number][] = [[root, 0]];
  const later: [string, number][] = [];
  const resources: RecordedResource[] = [];
  let bytes = 0;
  let complete = true;

  const enter = (path: string, depth: number): void => {
    const key = linkKey(path);
    if (seen.has(key)) return;
    if (depth > MAX_DEPTH || seen.size >= MAX_WAITING) {
      complete = false;
      return;
    }
    seen.add(key);
    if (LEFT_OUT.some((pattern) => pattern.test(path))) resources.push({ path, status: 200, left_out: true });
    else (LATER.test(path) ? later : soon).push([path, depth]);
  };
  const readOne = async (path: string, depth: number): Promise<void> => {
    try {
      const { body, headers } = await ask('GET', path);
      const size = JSON.stringify(body ?? null).length;
      if (bytes + size > TREE_LIMITS.bytes || resources.length >= TREE_LIMITS.resources) {
        complete = false;
        return;
      }
      bytes += size;
      if (!isObject(body)) return;
      const allow = headers['allow']
        ?.toUpperCase()
        .replace(/[^A-Z, ]/g, '')
        .slice(0, 100);
      resources.push({ path, status: 200, body, allow });
      const links = new Set<string>();
      linksIn(body, links);
      for (const link of links) enter(link, depth + 1);
    } catch (error) {
      if (isStatus(error) && error.status !== undefined && error.status !== 401) resources.push({ path, status: error.status });
      else if (error instanceof RedfishError) complete = false;
      else throw error;
    }
  };
  const running = new Set<Promise<void>>();
  try {
    for (;;) {
      signal.throwIfAborted();
      const next = resources.length < TREE_LIMITS.resources ? (soon.shift() ?? later.shift()) : undefined;
      if (next === undefined && running.size === 0) break;
      if (next) {
        const work: Promise<void> = readOne(...next).finally(() => running.delete(work));
        running.add(work);
        progress(resources.length);
      }
      if (next === undefined || running.size >= WORKERS) await Promise.race(running);
    }
  } catch (error) {
    await Promise.allSettled(running);
    // What was read before the end of the time is worth keeping.
    if (!signal.aborted) throw error;
    complete = false;
  }
  return { resources: resources.slice(0, TREE_LIMITS.resources), complete: complete && soon.length + later.length === 0 };
}
