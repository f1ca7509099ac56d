/**
 * `bloomery metal3 hardware-sync`: brings the records of recorders into HardwareData and the status of hosts (docs/metal3.md).
 * `bloomery metal3 recorder`: the manifests of a recorder for one machine (docs/recorder.md).
 */
import { InvalidArgumentError, type Command } from 'commander';
import { systemClock } from '../../model/clock';
import type { Log } from '../../model/log';
import { recordsOf } from '../../metal3/hardware-feed';
import { createHardwareSync } from '../../metal3/hardware-sync';
import { MANAGER } from '../../metal3/host-writer';
import { createKubernetes } from '../../metal3/kubernetes';
import { recorderManifest } from '../../metal3/recorder-manifest';
import { isObject } from '../../model/json';
import { endpoint, get, getTagged, post } from '../endpoint';
import { print, reported } from '../output';

interface Given {
  readonly url?: string;
  readonly namespace?: readonly string[];
  readonly interval: number;
  readonly relist: number;
  readonly kube?: string;
  readonly kubeTokenFile: string;
  readonly kubeCa?: string;
  readonly once?: boolean;
}
/** Where the cluster puts the identity of a pod's service account. */
const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';

function seconds(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= 1 && value <= 86_400)) throw new InvalidArgumentError('It is a number of seconds from 1 to 86400.');
  return value;
}
/** A label of RFC 1123, which may be in a path. */
function namespaces(name: string, before: readonly string[] | undefined): readonly string[] {
  if (!/^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(name)) throw new InvalidArgumentError('It is no name of a namespace.');
  return [...(before ?? []), name];
}
function clusterUrl({ KUBERNETES_SERVICE_HOST: host, KUBERNETES_SERVICE_PORT: port }: NodeJS.ProcessEnv): string {
  if (!host || !port) throw new Error('this is no pod of a cluster (KUBERNETES_SERVICE_HOST is not set): use --kube');
  return `https://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

async function sync(given: Given, signal: AbortSignal, log: Log): Promise<void> {
  const url = given.kube ?? clusterUrl(process.env);
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) throw new Error(`--kube ${url} is no URL`);
  // The token must not cross a network in the clear.
  if (new URL(url).protocol === 'http:' && !/^(?:127\.\d+\.\d+\.\d+|\[::1\]|localhost)$/.test(new URL(url).hostname))
    throw new Error('--kube is https://…, except on this host');
  const kubernetes = createKubernetes({
    url,
    tokenFile: given.kubeTokenFile,
    caFile: given.kubeCa ?? (given.kube === undefined ? `${ACCOUNT}/ca.crt` : undefined),
    manager: MANAGER,
  });
  try {
    const controller = createHardwareSync({
      records: recordsOf((path, tag, ending) => getTagged(given.url, path, tag, ending)),
      kubernetes,
      namespaces: given.namespace,
      intervalMs: given.interval * 1000,
      relistMs: given.relist * 1000,
      clock: systemClock,
      random: Math.random,
      log,
      signal,
    });
    if (!given.once) {
      print('bloomery: hardware-sync is ready');
      await controller.run();
      return;
    }
    const { written, failed } = await controller.round();
    print(`the hardware of ${written} hosts was written`);
    if (failed > 0) throw new Error(`the hardware of ${failed} hosts could not be written`);
  } finally {
    await kubernetes.close();
  }
}

interface RecorderGiven {
  readonly host: string;
  readonly image: string;
  readonly url?: string;
  readonly service?: string;
  readonly interval: number;
}
const textIn = (body: unknown, key: string): string | undefined => {
  const value = isObject(body) ? body[key] : undefined;
  return typeof value === 'string' ? value : undefined;
};
const recorder = (node: string, { host, image, url, service, interval }: RecorderGiven): Promise<void> =>
  reported(async () => {
    const settings = { url: service ?? endpoint(url, process.env), host, image, interval };
    // Before a token replaces the one in use.
    recorderManifest({ ...settings, node: '0'.repeat(36), token: '0'.repeat(20) });
    const uuid = await get(url, `nodes/${encodeURIComponent(node)}?fields=uuid`, (body) => textIn(body, 'uuid'));
    const token = await post(url, `nodes/${encodeURIComponent(uuid)}/hardware/token`, {}, (body) => textIn(body, 'token'));
    print(recorderManifest({ ...settings, node: uuid, token }));
  });

/** @param run calls the work with a signal that ends it, and a log */
export function addHardwareSync(metal3: Command, run: (work: (signal: AbortSignal, log: Log) => Promise<void>) => Promise<void>): void {
  metal3
    .command('hardware-sync')
    .description('Bring what recorders report into HardwareData and the status of BareMetalHosts, as a controller in the cluster.')
    .option('--url <url>', 'the server, as for bloomery why')
    .option('--namespace <name>', 'a namespace with hosts; may be repeated (default: all)', namespaces)
    .option('--interval <seconds>', 'between two questions whether a record changed', seconds, 30)
    .option('--relist <seconds>', 'between two lists of all hosts', seconds, 300)
    .option('--kube <url>', 'the Kubernetes API (default: that of the cluster of this pod)')
    .option('--kube-token-file <file>', 'the token of a service account', `${ACCOUNT}/token`)
    .option('--kube-ca <file>', 'the authorities of the Kubernetes API, PEM')
    .option('--once', 'one round; the status is 1 if a host could not be written')
    .action((given: Given) => run((signal, log) => sync(given, signal, log)));
  metal3
    .command('recorder')
    .description('Make a token for the recorder of a machine, and print the manifests that run it there. They contain the token.')
    .argument('<node>', 'UUID or name of the node')
    .requiredOption('--host <name>', 'the name of the machine in Kubernetes (its label kubernetes.io/hostname)')
    .requiredOption('--image <name>', 'the image with bloomery-agent')
    .option('--url <url>', 'the server, as for bloomery why')
    .option('--service <url>', 'the server as the machine reaches it (default: as this command does)')
    .option('--interval <seconds>', 'between two reports', seconds, 300)
    .action(recorder);
}
