/** The files by which a ramdisk knows the authorities of the API ([agent]api_ca_file). ironic-python-agent reads the same ones. */

/** From the root of the ramdisk or of its CD. */
export const AGENT_CA_PATH = 'etc/ironic-python-agent/ironic.crt';

/** Path → text. */
export const agentCaFiles = (pem: string): Readonly<Record<string, string>> => ({
  [AGENT_CA_PATH]: pem,
  'etc/ironic-python-agent.d/ironic-tls.conf': `[DEFAULT]\ncafile = /${AGENT_CA_PATH}\n`,
});
/** Whether a file of a CD belongs into the ramdisk, too. */
export const isForRamdisk = (path: string): boolean => path.startsWith('etc/');
