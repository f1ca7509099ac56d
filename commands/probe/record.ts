/** `bloomery probe --record FILE`: the resources of a service, without what tells of a site. */
import { open } from 'node:fs/promises';
import { linkKey, type RedfishTarget } from '../../wire/redfish';
import { isTreePath, treeText, type RecordedResource } from '../../wire/redfish/recorded-tree';
import { createReplacer } from './replace';
import type { Walked } from './walk';

interface Recording {
  readonly text: string;
  readonly resources: number;
  readonly complete: boolean;
  readonly replaced: Readonly<Record<string, number>>;
}
interface About {
  readonly target: RedfishTarget;
  readonly program: string;
  readonly recorded: string;
  /** 32 random bytes. */
  readonly key: Buffer;
}

/** Rewrites what was walked, in memory. */
export function recordingOf({ resources, complete }: Walked, { target, program, recorded, key }: About): Recording {
  const { username, password, address } = target;
  const given = [
    password,
    ...(username !== undefined && password !== undefined ? [Buffer.from(`${username}:${password}`).toString('base64')] : []),
  ];
  const replacer = createReplacer({
    key,
    secrets: given.filter((secret) => secret !== undefined),
    accounts: username === undefined ? [] : [username],
    hosts: [new URL(address).hostname.replace(/^\[|\]$/g, '')],
  });
  for (const { body } of resources) replacer.learn(body);
  const lines: RecordedResource[] = [];
  const seen = new Set<string>();
  for (const resource of resources) {
    const path = replacer.text(resource.path);
    if (!isTreePath(path) || seen.has(linkKey(path))) continue;
    seen.add(linkKey(path));
    lines.push({ ...resource, path, ...(resource.body === undefined ? {} : { body: replacer.body(resource.body) }) });
  }
  const replaced = replacer.summary();
  return { text: treeText({ program, recorded, complete, replaced }, lines), resources: lines.length, complete, replaced };
}

/** Creates the file for its owner only. @throws Error: also if there is a file */
export async function writeNew(path: string, text: string): Promise<void> {
  const file = await open(path, 'wx', 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}
