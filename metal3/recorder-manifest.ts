/**
 * The manifests of a recorder for one machine whose config drive has no token: a Secret, and a DaemonSet that only this machine runs. A kubelet
 * gets only the Secrets of pods on its own machine, so no machine can read the token of another one, and speak for it.
 */
interface RecorderSettings {
  /** UUID of the node. */
  readonly node: string;
  readonly token: string;
  /** The server as the machine reaches it. */
  readonly url: string;
  /** The name of the machine in Kubernetes. */
  readonly host: string;
  readonly image: string;
  /** Seconds. */
  readonly interval: number;
}
/** What the settings may be, so that they need no quoting in YAML beyond single quotes. */
const FORMS: Readonly<Record<string, RegExp>> = {
  node: /^[0-9a-f-]{36}$/,
  token: /^[\w-]{20,100}$/,
  url: /^https?:\/\/[\w.:[\]/-]+$/,
  // A DNS subdomain (RFC 1123), as names of nodes are.
  host: /^(?=.{1,63}$)[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*$/,
  image: /^[\w.:/@-]{1,255}$/,
};
const NAMESPACE = 'bloomery-recorder';

/** Needs the namespace, the service account and the authorities of docs/recorder/daemonset.yaml. @throws Error with the setting that is wrong */
export function recorderManifest(settings: RecorderSettings): string {
  for (const [name, form] of Object.entries(FORMS)) {
    const value = String(settings[name as keyof RecorderSettings]);
    if (!form.test(value))
      throw new Error(name === 'token' ? 'the server answers with an unusable token' : `${value} is no usable ${name}`);
  }
  const { node, token, url, host, image, interval } = settings;
  const name = `recorder-${node}`;
  const mounts = { sys: '/sys', proc: '/proc', dev: '/dev', udev: '/run/udev' };
  return `apiVersion: v1
kind: Secret
metadata: { name: ${name}, namespace: ${NAMESPACE} }
stringData: { token: '${token}' }
---
apiVersion: apps/v1
kind: DaemonSet
metadata: { name: ${name}, namespace: ${NAMESPACE}, labels: { app.kubernetes.io/name: ${name} } }
spec:
  selector: { matchLabels: { app.kubernetes.io/name: ${name} } }
  template:
    metadata: { labels: { app.kubernetes.io/name: ${name} } }
    spec:
      serviceAccountName: recorder
      automountServiceAccountToken: false
      nodeSelector: { kubernetes.io/hostname: '${host}' }
      tolerations: [{ operator: Exists }]
      hostNetwork: true
      dnsPolicy: ClusterFirstWithHostNet
      terminationGracePeriodSeconds: 5
      containers:
        - name: recorder
          image: '${image}'
          command: [bloomery-agent, record, --root, /host, --url, '${url}', --node, '${node}', --token-file, /token/token, --interval, '${interval}']
          env: [{ name: NODE_EXTRA_CA_CERTS, value: /certs/ca.crt }]
          securityContext: { privileged: true, runAsUser: 0, readOnlyRootFilesystem: true }
          resources:
            requests: { cpu: 5m, memory: 64Mi }
            limits: { cpu: 200m, memory: 256Mi }
          volumeMounts:
${Object.entries(mounts)
  .map(([mount, path]) => `            - { name: ${mount}, mountPath: /host${path}, readOnly: true }`)
  .join('\n')}
            - { name: token, mountPath: /token, readOnly: true }
            - { name: ca, mountPath: /certs, readOnly: true }
      volumes:
${Object.entries(mounts)
  .map(
    ([mount, path]) =>
      `        - { name: ${mount}, hostPath: { path: ${path}, type: ${mount === 'udev' ? 'DirectoryOrCreate' : 'Directory'} } }`,
  )
  .join('\n')}
        - { name: token, secret: { secretName: ${name}, defaultMode: 256 } }
        - { name: ca, configMap: { name: bloomery-ca } }
`;
}
